//! Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify token
//! signatures").
//!
//! Apple has no token-information endpoint, so only the signature is checked. `email_verified` and
//! `is_private_email` are strings or Booleans. A private relay e-mail address is treated like any other; it
//! is known only to the apps of one team. Apps hash their nonce with SHA-256 before they hand it to Apple,
//! and only the hash is in the token. Apple has two issuers: it changed to the second one overnight
//! (supabase/auth #2051). `email` may be missing, and `name` is never in the token. Staff cannot sign in with
//! Apple: that would need a response by POST.
//!
//! Apple's tokens have to be revoked when a user deletes the account (technical note TN3194). The client secret for that
//! is a JWT that a key of the team signs ("Token validation", "Token revocation").

use super::{Defaults, Origin};
use crate::config::provider::{ClientAuthentication, Verify};
use crate::domain::claims::{NonceForm, NoncePolicy};

pub(super) const APPLE: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://appleid.apple.com/auth/keys"),
    token_url: Some("https://appleid.apple.com/auth/token"),
    token_auth: Some(ClientAuthentication::ClientSecretPost),
    revocation_url: Some("https://appleid.apple.com/auth/revoke"),
    issuers: Origin::Listed(&["https://appleid.apple.com", "https://account.apple.com"]),
    nonce: NoncePolicy { form: NonceForm::Sha256, ..Defaults::PLAIN.nonce },
    hosted_domains: false,
    ..Defaults::PLAIN
};
