//! The keys that sign access tokens: their life, their rotation, their storage and the commands for
//! them.

pub(crate) mod command;
pub mod life;
pub mod ring;
pub mod rotation;
pub mod seal;
pub mod signing_key;
pub mod store;

pub use self::ring::KeyRing;
pub use self::rotation::Rotation;
