//! The mistakes that a start for development reports.

use std::path::PathBuf;

use super::postgres;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    #[error("`{0}` is not a key of this program; delete it, and the next start creates a new one")]
    Key(PathBuf),
    #[error("{0}: {1}; check the permissions of the folder")]
    File(PathBuf, #[source] std::io::Error),
    /// The development provider signs in every client, so the service must listen on this machine
    /// only.
    #[error(
        "configuration: `ROCKET_ADDRESS` / `address` must be a loopback address while the development identity \
         provider is enabled; set it to 127.0.0.1, or configure a provider with IDP_CLIENT_ID"
    )]
    Exposed,
    #[error(
        "configuration: a provider is configured, so there is no development identity provider; ask the provider"
    )]
    Real,
    #[error(
        "configuration: `ROCKET_PROFILE` is `release`, which has no development setup; set it to `debug`"
    )]
    Release,
}
