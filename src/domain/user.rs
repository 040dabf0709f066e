//! Users and their identities, as they are stored and returned.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct User {
    /// The user's id, which is the `sub` of access tokens and is never reused. Other services should store only this
    /// id.
    pub id: Uuid,
    /// The e-mail address in lower case, unique among users; `null` if there is none.
    #[schema(required = true, example = "ada@example.com")]
    pub email: Option<String>,
    /// True if a provider, an import or a backend has verified the e-mail address.
    #[schema(example = true)]
    pub email_verified: bool,
    /// The name to be shown: the user's own word, or the name at the provider.
    #[schema(required = true, example = "Ada Lovelace")]
    pub name: Option<String>,
    /// The URL of a picture.
    #[schema(required = true)]
    pub picture: Option<String>,
    /// The time of the first sign-in.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The identity that signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SignedInIdentity)]
pub struct Identity {
    /// The identity's id.
    pub id: Uuid,
    /// The provider's name, as in the path.
    pub provider: String,
    /// The token's `sub`.
    pub subject: String,
    /// The token's e-mail address, as the provider spells it.
    #[schema(required = true)]
    pub email: Option<String>,
}
