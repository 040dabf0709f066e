//! The domain: claims and their validation, e-mail addresses, users, identities. No I/O and no framework.

pub mod actor;
pub mod api_key;
pub mod claims;
pub mod client_key;
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
pub mod merging;
pub mod message_type;
pub mod metadata;
pub mod network;
pub mod refusal;
pub mod secure_url;
pub mod security_event;
pub mod session;
pub mod staff;
pub mod text;
pub mod user;
