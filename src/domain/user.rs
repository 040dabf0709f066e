//! Users and their identities, as they are stored and returned.

use time::OffsetDateTime;
use uuid::Uuid;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The id, never reused. Other services should store only this.
    pub id: Uuid,
    /// The e-mail address, ASCII case-folded; unique among users.
    pub email: Option<String>,
    /// True if a provider has verified that the e-mail address belongs to this user.
    pub email_verified: bool,
    pub name: Option<String>,
    /// URL of a picture.
    pub picture: Option<String>,
    pub created_at: OffsetDateTime,
}

/// An identity that a user signs in with: a subject at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub id: Uuid,
    /// Name of the provider, as configured.
    pub provider: String,
    /// `sub` at that provider; case-sensitive.
    pub subject: String,
    /// The provider's latest e-mail address for it, as the provider wrote it.
    pub email: Option<String>,
}
