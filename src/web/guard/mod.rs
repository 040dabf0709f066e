//! Request and data guards: what a handler may rely on.

pub mod json_body;
pub mod origin;
pub mod verified_identity;

pub use self::origin::ClientOrigin;
pub use self::verified_identity::VerifiedIdentity;
