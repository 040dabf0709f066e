//! Users and their identities, as they are stored and answered.

use time::OffsetDateTime;
use uuid::Uuid;

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Never reused, and all that other services should keep.
    pub id: Uuid,
    /// ASCII case-folded; unique among users.
    pub email: Option<String>,
    /// Whether a provider has vouched that the address is this person's.
    pub email_verified: bool,
    /// Display name.
    pub name: Option<String>,
    /// Address of a picture.
    pub picture: Option<String>,
    /// When the user was created.
    pub created_at: OffsetDateTime,
}

/// What a user signs in with: a subject at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Key of the identity.
    pub id: Uuid,
    /// Name of the provider, as configured.
    pub provider: String,
    /// `sub` at that provider; case-sensitive.
    pub subject: String,
    /// The provider's latest address for it, as the provider spelt it.
    pub email: Option<String>,
}
