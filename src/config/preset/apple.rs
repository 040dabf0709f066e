//! Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify
//! token signatures").
//!
//! There is nobody to ask: the signature is what there is. `email_verified` and `is_private_email`
//! are strings or Booleans. A private relay address is an address like any other, known to nobody
//! but the apps of one team. Apps hash their nonce with SHA-256 before Apple gets it, and only the hash is
//! in the token. Two issuers are Apple's: it answered with the second one overnight (supabase/auth #2051). `email` may be
//! missing, and `name` is never in the token. The sign-in of staff would take a client secret that
//! expires and an answer by POST; it is not supported.

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
