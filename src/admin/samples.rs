//! The values in the samples of the pages.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::domain::custom_claims::CustomClaims;
use crate::domain::merging::{LinkedIdentity, UserState};

/// A hostile name that a user may choose.
pub(super) const NASTY: &str =
    "<script>alert(1)</script> \"'><img src=x onerror=1> <b>{{ 7*7 }} {% include \"x\" %} \u{202e}é🦀";
pub(super) const TIME: &str = "2026-07-01T22:30:05Z";

/// Returns a user with all fields and one identity.
pub(super) fn user(disabled: bool) -> UserState {
    let identity = LinkedIdentity {
        id: Uuid::max(),
        provider: NASTY.into(),
        subject: NASTY.into(),
        email: Some("ada@example.com".into()),
        email_verified: true,
        suspended: true,
        held: true,
        hijacked: true,
        tokens_from: None,
        sessions: 2,
    };
    UserState {
        email: Some("ada@example.com".into()),
        email_verified: !disabled,
        name: Some(NASTY.into()),
        picture: Some(NASTY.into()),
        disabled_at: disabled.then_some(OffsetDateTime::UNIX_EPOCH),
        claims: CustomClaims::stored(Some(r#"{"roles": ["editor"]}"#)).unwrap_or_default(),
        identities: vec![identity],
        ..user_without_data()
    }
}

/// Returns a user with nothing but an id.
pub(super) fn user_without_data() -> UserState {
    UserState {
        id: Uuid::max(),
        email: None,
        email_verified: false,
        email_vouched: false,
        name: None,
        own_name: false,
        picture: None,
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
        disabled_at: None,
        claims: CustomClaims::default(),
        last_seen_on: None,
        notes: 0,
        identities: Vec::new(),
    }
}
