//! The domain: claims and their validation, e-mail addresses, users, identities. No I/O and no
//! framework.

pub mod actor;
pub mod api_key;
pub mod claims;
pub mod custom_claims;
pub mod database_url;
pub mod dpop;
pub mod email;
pub mod id_token;
pub mod introspection;
pub mod issuer;
pub mod json;
pub mod jwk;
pub mod jws;
mod kind;
pub mod linking;
pub mod message_type;
pub mod metadata;
pub mod network;
pub mod presets;
pub mod refusal;
pub mod report;
pub mod secure_url;
pub mod security_event;
pub mod spreadsheet;
pub mod staff;
pub mod text;
pub mod user;

pub use self::actor::{Actor, Author, Origin};
pub use self::api_key::{KeyName, KeyRole};
pub(crate) use self::claims::is_subject;
pub use self::claims::{NonceForm, NoncePolicy, NonceRule, VerifiedClaims};
pub use self::custom_claims::CustomClaims;
pub use self::dpop::{Binding, Thumbprint};
pub use self::email::Email;
pub use self::id_token::IdToken;
pub use self::issuer::Issuers;
pub use self::json::Object;
pub use self::linking::Link;
pub use self::message_type::MessageType;
pub use self::refusal::{EndReason, Reason, Refusal};
pub use self::staff::{Access, Role};
pub use self::text::printable;
pub use self::user::{LinkedIdentity, User, UserState, merged};
