//! Request and data guards: the facts on which a handler may rely. No guard forwards.

pub mod bearer;
pub mod client_address;
pub mod event_sender;
pub mod form_body;
pub mod json_body;
pub mod origin;
pub mod page;
pub mod proof;
pub mod rate_limited;
pub mod reauthenticated;
pub(crate) mod shared;
pub mod sign_out_proof;
pub mod verified_identity;

pub use self::bearer::{Bearer, Renaming, SignedIn};
pub use self::event_sender::EventSender;
pub use self::form_body::FormBody;
pub use self::json_body::JsonBody;
pub use self::origin::ClientOrigin;
pub use self::page::{Page, PresentedToken};
pub use self::proof::{NewKey, Proof};
pub use self::rate_limited::RateLimited;
pub use self::reauthenticated::{NewIdentity, OtherAccount, Reauthenticated};
pub use self::sign_out_proof::SignOutProof;
pub use self::verified_identity::VerifiedIdentity;
