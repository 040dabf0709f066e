//! Users, their identities and their sessions: the operations of users on their accounts, with
//! their SQL.

pub mod account;
pub mod identities;
pub mod lanes;
pub mod merging;
pub mod reauthentication;
pub mod refresh;
#[cfg(debug_assertions)]
pub mod seed;
pub mod sessions;
pub mod sign_in;
pub mod sign_out;
pub mod tokens;
pub mod users;

pub use self::lanes::SharedStatements;
pub use self::tokens::{Issuer, OpaqueToken, ProofNonces};
