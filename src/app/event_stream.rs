//! Registration of the service's address for a provider's security events.

use crate::clock;
use crate::config::{Config, Preset};
use crate::domain::service_account::{NoKeyFile, ServiceAccount};
use crate::provider::{ClientError, Providers, StreamAccess, StreamError};
use crate::secret::Secret;

pub use crate::provider::StreamTask as Task;

/// The operator's right at the provider.
#[derive(Debug)]
pub struct Access(StreamAccess);

impl Access {
    /// Reads the JSON key of a service account.
    ///
    /// # Errors
    /// The file is none.
    pub fn key(file: &[u8]) -> Result<Self, NoKeyFile> {
        ServiceAccount::read(file).map(StreamAccess::ServiceAccount).map(Self)
    }

    /// Reads a token.
    #[must_use]
    pub fn token(file: &str) -> Self {
        Self(StreamAccess::Token(Secret::new(file.trim().to_owned())))
    }
}

/// The reason why nothing was registered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such provider.
    #[error("no provider with the name {0:?} is configured")]
    Unknown(String),
    /// The right to do it is missing.
    #[error("{0} is required for this provider")]
    NoAccess(&'static str),
    /// The provider did not do it.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The HTTP client cannot be built.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Does a task at a provider, and returns what to tell the operator.
pub async fn run(config: &Config, name: &str, task: Task, access: Option<Access>) -> Result<String, Error> {
    let providers = Providers::new(config.providers.clone())?;
    let provider = providers.get(name).ok_or_else(|| Error::Unknown(name.to_owned()))?;
    let below = format!("{}/api/v1/providers/{name}", config.public_url);
    let url = format!("{below}/events");
    let option = match provider.settings.kind {
        Preset::Apple => {
            return Ok(format!(
                "Enter {url} at developer.apple.com, Certificates, Identifiers & Profiles: the primary App ID, Sign in with \
                 Apple, Server-to-Server Notification Endpoint"
            ));
        }
        Preset::Facebook => {
            return Ok(format!(
                "Enter {url} at developers.facebook.com/apps, Facebook Login, Settings, as Deauthorize callback URL, and \
                 {below}/data-deletion at App settings, Basic, as Data deletion callback URL"
            ));
        }
        Preset::Google => "--key-file",
        _ => "--token-file",
    };
    let Access(access) = access.ok_or(Error::NoAccess(option))?;
    let said = provider.event_stream(task, &url, &access, clock::now()).await?;
    Ok(match task {
        Task::Register => format!("{name} sends its events to {url}; test it with --verify"),
        Task::Status => format!("{said:#}"),
        Task::Verify => {
            format!("{name} sends a verification event, which is in the audit once it has arrived")
        }
    })
}
