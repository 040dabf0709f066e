//! Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify token
//! signatures").
//!
//! Apple has no token-information endpoint, so only the signature is checked. `email_verified` and
//! `is_private_email` are strings or Booleans. A private relay e-mail address is treated like any other; it
//! is known only to the apps of one team. Apps hash their nonce with SHA-256 before they hand it to Apple,
//! and only the hash is in the token. Apple has two issuers: it changed to the second one overnight
//! (supabase/auth #2051). `email` may be missing, and `name` is never in the token. Staff cannot sign in with
//! Apple: that would need a client secret that expires and a response by POST.

use super::{Defaults, Origin};
use crate::config::provider::Verify;
use crate::domain::claims::{NonceForm, NoncePolicy};

pub(super) const APPLE: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://appleid.apple.com/auth/keys"),
    issuers: Origin::Listed(&["https://appleid.apple.com", "https://account.apple.com"]),
    nonce: NoncePolicy { form: NonceForm::Sha256, ..Defaults::PLAIN.nonce },
    hosted_domains: false,
    ..Defaults::PLAIN
};
