//! The task for one provider, which exchanges codes and revokes tokens. A provider that is down
//! delays no other's.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::store::{self, Claimed, State};
use super::{Contents, schedule};
use crate::clock;
use crate::database::{Database, Error};
use crate::keys::seal::{Seal, Unopened};
use crate::provider::{self, Code, Provider, Revocable};
use crate::queue::{Attempts, Readings, Worker};
use crate::secret::Secret;

/// Seconds after which another instance may take over a row without a recorded result. It is longer
/// than a call.
const LEASE: u32 = 60;
/// Attempts to store a token, with a pause between them: the provider issues it only once.
const STORED: u32 = 60;

#[derive(Debug, Clone, Copy, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Exchange {
    Stored,
    Lost,
    Refused,
    Failed,
    /// The attempt failed, and the code is too old for another one.
    Expired,
}

#[derive(Debug, Clone, Copy, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Revocation {
    Revoked,
    /// Its identity was linked again.
    Kept,
    Failed,
    /// The attempt failed, and it was the last one for now.
    Parked,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub database: Database,
    pub provider: Provider,
    pub seal: Arc<Seal>,
    pub exchanges: Attempts,
    pub revocations: Attempts,
    pub readings: Arc<Readings>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Provider(#[from] provider::Error),
    #[error("the stored value {0}")]
    Sealed(#[from] Unopened),
    /// The credentials are another client's.
    #[error(
        "it was issued to the client {client}, and the credentials in the settings are another's: {setting} has to be that client"
    )]
    Client { client: String, setting: String },
}

/// A token that the provider issued and only this process has. If it is dropped with a reason, the
/// token is lost.
struct Unstored<'t> {
    task: &'t Task,
    id: Uuid,
    lost: Option<String>,
}

impl Drop for Unstored<'_> {
    fn drop(&mut self) {
        let Self { task, id, lost } = self;
        if let Some(error) = lost {
            let provider = task.name();
            tracing::error!(provider, %id, error, "a provider's token was lost, and cannot be revoked later");
            task.exchanges.count(provider, Exchange::Lost);
        }
    }
}

impl Task {
    fn name(&self) -> &str {
        &self.provider.settings.name
    }

    async fn exchange(&self, row: &Claimed) -> Result<(), Error> {
        let provider = self.name();
        let id = row.id;
        match self.redeem(row).await {
            Ok(token) => {
                let lost = Some("the service stopped before it was stored".to_owned());
                let mut unstored = Unstored {
                    task: self,
                    id,
                    lost,
                };
                let contents = Contents::Token {
                    token: token.token.expose().clone(),
                };
                let stored = match contents.seal(&self.seal, id) {
                    Ok(sealed) => self.store(row, &sealed, token.access).await,
                    Err(unopened) => Err(Error::unexpected(&unopened.to_string())),
                };
                unstored.lost = stored.err().map(|error| error.to_string());
                if unstored.lost.is_none() {
                    self.exchanges.count(provider, Exchange::Stored);
                }
                Ok(())
            }
            Err(Failure::Provider(provider::Error::Refused(refusal))) => {
                let why = refusal.log.unwrap_or_default();
                tracing::warn!(provider, %id, why, "an authorization code was refused, so no token can be revoked later");
                self.exchanges.count(provider, Exchange::Refused);
                self.database
                    .run(|_| store::delete(&self.database, row))
                    .await
            }
            Err(failure) => {
                let failure = failure.to_string();
                let pause = schedule::after_exchange(row.attempts);
                let given_up = self.fail(row, &failure, pause).await?;
                let outcome: &str = if given_up {
                    Exchange::Expired
                } else {
                    Exchange::Failed
                }
                .into();
                tracing::warn!(provider, %id, failure, outcome, "an authorization code was not exchanged");
                self.exchanges.count(provider, outcome);
                Ok(())
            }
        }
    }

    fn has_credentials(&self, row: &Claimed) -> Result<(), Failure> {
        let settings = &self.provider.settings;
        let client = &row.owner.client_id;
        if settings.revokes(client) {
            return Ok(());
        }
        Err(Failure::Client {
            client: client.clone(),
            setting: settings.setting("client_id"),
        })
    }

    async fn redeem(&self, row: &Claimed) -> Result<Revocable, Failure> {
        self.has_credentials(row)?;
        let Contents::Code { code, redirect_uri } =
            Contents::open(&self.seal, row.id, &row.sealed)?
        else {
            return Err(Unopened.into());
        };
        let code = Code {
            code: &code,
            redirect_uri: redirect_uri.as_deref(),
            client_id: &row.owner.client_id,
            subject: &row.owner.subject,
        };
        Ok(self.provider.redeem(code, clock::now()).await?)
    }

    /// Stores a token. If the database is away, this is tried again for some minutes.
    async fn store(&self, row: &Claimed, sealed: &[u8], access: bool) -> Result<(), Error> {
        let mut others = 1..STORED;
        loop {
            let keep = || store::keep_token(&self.database, row.id, &row.owner, sealed, access);
            match self.database.run(|_| keep()).await {
                Err(_) if !self.database.is_closed() && others.next().is_some() => {
                    sleep(Self::PAUSE).await;
                }
                stored => return stored.map(drop),
            }
        }
    }

    async fn revoke(&self, row: &Claimed) -> Result<(), Error> {
        let provider = self.name();
        let id = row.id;
        match self.try_to_revoke(row).await {
            Ok(()) => {
                tracing::info!(provider, %id, "a provider has revoked a token");
                self.revocations.count(provider, Revocation::Revoked);
                self.database
                    .run(|_| store::delete(&self.database, row))
                    .await
            }
            Err(failure) => {
                let failure = failure.to_string();
                let attempts = row.attempts;
                let given_up = self
                    .fail(row, &failure, schedule::after_revocation(attempts))
                    .await?;
                let outcome: &str = if given_up {
                    Revocation::Parked
                } else {
                    Revocation::Failed
                }
                .into();
                tracing::warn!(provider, %id, attempts, failure, outcome, "a token was not revoked");
                self.revocations.count(provider, outcome);
                Ok(())
            }
        }
    }

    async fn try_to_revoke(&self, row: &Claimed) -> Result<(), Failure> {
        self.has_credentials(row)?;
        let Contents::Token { token } = Contents::open(&self.seal, row.id, &row.sealed)? else {
            return Err(Unopened.into());
        };
        let token = Revocable {
            token: Secret::new(token),
            access: row.access,
        };
        Ok(self
            .provider
            .revoke(&token, &row.owner.client_id, clock::now())
            .await?)
    }

    /// Returns true if there is no further attempt.
    async fn fail(&self, row: &Claimed, failure: &str, pause: u32) -> Result<bool, Error> {
        self.database
            .run(|_| store::fail(&self.database, row, failure, pause))
            .await
    }
}

impl Worker for Task {
    type Row = Claimed;
    /// Each attempt records its own end: a token that was issued is stored at once.
    type Ended = ();

    const IN_FLIGHT: usize = 8;
    /// No request waits for the queue, and a code lives for minutes.
    const PAUSE: Duration = Duration::from_secs(3);
    /// For a call, and its result.
    const GRACE: Duration = Duration::from_millis(4_800);

    fn database(&self) -> &Database {
        &self.database
    }

    async fn claim(&mut self, room: usize) -> Vec<Claimed> {
        let provider = self.name();
        let since = self.readings.since(provider);
        self.database.run(|_| store::claim(&self.database, provider, since, room, LEASE)).await.unwrap_or_else(|error| {
            tracing::warn!(provider, %error, "reading a provider's tokens failed and will be retried");
            Vec::new()
        })
    }

    async fn attempt(self, row: Claimed) {
        let done = match row.state {
            State::Code => self.exchange(&row).await,
            State::Due => self.revoke(&row).await,
            State::Kept => {
                self.revocations.count(self.name(), Revocation::Kept);
                Ok(())
            }
        };
        if let Err(error) = done {
            let provider = self.name();
            let id = row.id;
            tracing::warn!(provider, %id, %error, "the result of a call about a token was not recorded, so it will be repeated");
        }
    }

    fn abandon(&self) {
        let provider = self.name();
        tracing::warn!(
            provider,
            "some calls about tokens were not answered before the shutdown"
        );
    }
}
