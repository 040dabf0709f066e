//! Facebook Limited Login (developers.facebook.com, "OIDC Token for Limited Login", "Validating the Limited
//! Login OIDC Token"). Classic Facebook Login has access tokens only and is not supported.
//!
//! Facebook has no endpoint for these tokens, so only the signature (RS256) is checked. There is no
//! `email_verified`, and `email` is present only if the user grants it.

use super::{Defaults, Origin};
use crate::config::provider::Verify;
use crate::domain::claims::{NoncePolicy, NonceRule};

pub(super) const FACEBOOK: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://limited.facebook.com/.well-known/oauth/openid/jwks/"),
    issuers: Origin::Listed(&["https://www.facebook.com"]),
    // The SDK makes up a nonce if the app gives none.
    nonce: NoncePolicy { rule: NonceRule::IfSent, ..Defaults::PLAIN.nonce },
    hosted_domains: false,
    ..Defaults::PLAIN
};
