//! Request and data guards: what a handler may rely on.

pub mod bearer;
pub mod departing;
pub mod json_body;
pub mod origin;
pub mod verified_identity;

pub use self::bearer::{Bearer, SignedIn};
pub use self::departing::Departing;
pub use self::json_body::JsonBody;
pub use self::origin::ClientOrigin;
pub use self::verified_identity::VerifiedIdentity;
