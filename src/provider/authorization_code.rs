//! The token endpoint: exchanges an authorization code for an `id_token` (RFC 6749 §4.1.3, RFC
//! 7636, OpenID Connect Core §3.1.3). There is no retry, because a code can be used only once.

use std::borrow::Cow;

use reqwest::{Response, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::answer::{self, Class, DEADLINE, Unavailable, late};
use super::attempt;
use super::error::Error;
use super::upstream::Provider;
use crate::config::{self, ClientAuthentication};
use crate::domain::metadata::{Endpoint, Metadata};
use crate::domain::{Object, Reason, Refusal};
use crate::secret::Secret;

/// The tokens that a code was exchanged for.
#[derive(Debug)]
pub struct Exchanged {
    pub id_token: Secret<String>,
    /// For the userinfo endpoint.
    pub access_token: Option<Secret<String>>,
}

impl Provider {
    /// Returns the authorization endpoint, for the authorization-code flow.
    pub async fn authorization_url(&self, now: i64) -> Result<Url, Error> {
        let configured = self.settings.authorization_url.as_ref();
        let url = self.locate(configured, now, Endpoint::Authorization);
        url.await
            .map(Cow::into_owned)
            .map_err(|unavailable| unavailable.named(&self.settings).into())
    }

    /// Exchanges an authorization code for tokens (RFC 6749 §4.1.3 with RFC 7636), within five
    /// seconds.
    pub async fn exchange(
        &self,
        code: &str,
        code_verifier: &str,
        redirect_uri: &str,
        now: i64,
    ) -> Result<Exchanged, Error> {
        let exchanged = async {
            let fields = [
                ("code", code),
                ("redirect_uri", redirect_uri),
                ("code_verifier", code_verifier),
            ];
            let answer = self
                .send_code(&self.settings.client_ids[0], &fields, now)
                .await;
            let answer = answer.map_err(|rejected| match rejected {
                Rejected::Code(error) => refused(&error),
                other => self.rejected(other).into(),
            })?;
            let token = |name| answer.str(name).map(|token| Secret::new(token.to_owned()));
            let id_token = token("id_token").ok_or_else(|| Unavailable::new(Class::NoIdToken))?;
            Ok(Exchanged {
                id_token,
                access_token: token("access_token"),
            })
        };
        let exchanged = timeout(DEADLINE, exchanged).await.unwrap_or_else(late);
        exchanged.map_err(|error: Error| error.named(&self.settings))
    }

    /// Sends an authorization code of this client to the token endpoint.
    pub(super) async fn send_code(
        &self,
        client_id: &str,
        fields: &[(&str, &str)],
        now: i64,
    ) -> Result<Object, Rejected> {
        let (url, authentication) = self.token_endpoint(now).await?;
        let fields = [&[("grant_type", "authorization_code")], fields].concat();
        let request = self.authenticated(&url, authentication, client_id, &fields, now)?;
        let response = request.send().await.map_err(attempt::unreached)?;
        match response.status() {
            StatusCode::OK => Ok(answer::json(response).await?),
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => Err(error(response).await),
            _ => Err(attempt::unavailable(&response, self.token_setting()).into()),
        }
    }

    /// Returns the setting to look at when the token endpoint does not understand us.
    pub(super) const fn token_setting(&self) -> &'static str {
        if self.settings.token_url.is_some() {
            "token_url"
        } else {
            "issuer"
        }
    }
}

/// Selects our authentication at the token endpoint: as it is set, otherwise as the provider
/// publishes, otherwise HTTP Basic, which every server with client secrets supports (RFC 6749
/// §2.3.1).
pub(super) fn authentication(
    provider: &config::Provider,
    published: Option<&Metadata>,
) -> Result<ClientAuthentication, Unavailable> {
    let published = published.and_then(|metadata| metadata.token_auth_methods.as_ref());
    let offers =
        |method: &str| published.is_none_or(|methods| methods.iter().any(|one| one == method));
    match provider.token_auth {
        Some(set) => Ok(set),
        None if offers("client_secret_basic") => Ok(ClientAuthentication::ClientSecretBasic),
        None if offers("client_secret_post") => Ok(ClientAuthentication::ClientSecretPost),
        None => Err(Unavailable::misconfigured(
            Class::NoClientSecretAccepted,
            "token_auth",
        )),
    }
}

pub(super) enum Rejected {
    Client(String),
    /// Any other error, with its code if it has a valid one.
    Code(String),
    Unavailable(Unavailable),
}

impl From<Unavailable> for Rejected {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

/// Reads a 400 or 401 (RFC 6749 §5.2). A wrong client secret must not be blamed on the code: every
/// sign-in would then fail without a hint at the cause.
pub(super) async fn error(response: Response) -> Rejected {
    let status = response.status();
    let error = answer::json(response).await.ok();
    let error = error
        .as_ref()
        .and_then(|error| error.str("error"))
        .unwrap_or_default();
    if matches!(error, "invalid_client" | "unauthorized_client")
        || status == StatusCode::UNAUTHORIZED && error != "invalid_grant"
    {
        return Rejected::Client(error_name(error).to_owned());
    }
    Rejected::Code(error_name(error).to_owned())
}

pub(super) fn refused(why: &str) -> Error {
    let refusal = Refusal::new(Reason::InvalidToken, "the provider rejected the code");
    Refusal {
        log: Some(format!("the provider rejected the code: {why}")),
        ..refusal
    }
    .into()
}

/// Returns the name of a provider's error as it may go into a line of the log (RFC 6749 §4.1.2.1,
/// §5.2).
pub fn error_name(error: &str) -> &str {
    let named = (1..=40).contains(&error.len())
        && error.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if named { error } else { "no known reason" }
}
