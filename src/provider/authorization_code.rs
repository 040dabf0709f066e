//! The token endpoint: exchanges an authorization code for an `id_token` (RFC 6749 §4.1.3, RFC 7636, OpenID
//! Connect Core §3.1.3). There is no retry, because a code can be used only once.

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::answer::{self, Class, DEADLINE, Unavailable};
use super::{Error, attempt, credentials};
use crate::config::{ClientAuthentication, Provider};
use crate::domain::metadata::Metadata;
use crate::domain::refusal::{Reason, Refusal};

/// An authorization code, with the parameters of the request that it was issued for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant<'a> {
    pub code: &'a str,
    pub code_verifier: &'a str,
    pub redirect_uri: &'a str,
}

/// Selects our authentication at the token endpoint: as it is set, otherwise as the provider publishes,
/// otherwise HTTP Basic, which every server with client secrets supports (RFC 6749 §2.3.1).
pub(super) fn authentication(
    provider: &Provider,
    published: Option<&Metadata>,
) -> Result<ClientAuthentication, Unavailable> {
    let basic = ClientAuthentication::ClientSecretBasic;
    let published = published.and_then(|metadata| metadata.token_auth_methods.as_ref());
    let offers = |method: &str| published.is_none_or(|methods| methods.iter().any(|one| one == method));
    match provider.token_auth {
        Some(set) => Ok(set),
        None if offers("client_secret_basic") => Ok(basic),
        None if offers("client_secret_post") => Ok(ClientAuthentication::ClientSecretPost),
        None => Err(Unavailable::misconfigured(Class::NoClientSecretAccepted, "token_auth")),
    }
}

/// Builds the request that exchanges a code.
pub(super) fn request(
    client: &Client,
    provider: &Provider,
    authentication: ClientAuthentication,
    url: &Url,
    grant: Grant<'_>,
) -> RequestBuilder {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", grant.code),
        ("redirect_uri", grant.redirect_uri),
        ("code_verifier", grant.code_verifier),
    ];
    credentials::post(client, provider, authentication, url, &fields)
}

/// Exchanges the code. `setting` is the one that is likely to be wrong if the URL is.
pub(super) async fn exchange(request: RequestBuilder, setting: &'static str) -> Result<String, Error> {
    let call = async {
        let response = request.send().await.map_err(attempt::unreached)?;
        match response.status() {
            StatusCode::OK => {
                let answer = answer::json(response).await?;
                let id_token = answer.str("id_token").map(str::to_owned);
                id_token.ok_or_else(|| Unavailable::new(Class::NoIdToken).into())
            }
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => Err(match error(response).await {
                ErrorResponse::Client(error) => {
                    let settings = ["client_id", "client_secret", "token_auth"];
                    let why = Some(format!("the provider's error is {error}"));
                    Unavailable { why, ..Unavailable::client_authentication(&settings) }.into()
                }
                ErrorResponse::Code(error) => {
                    let refusal = Refusal::new(Reason::InvalidToken, "the provider rejected the code");
                    let log = Some(format!("the provider rejected the code: {error}"));
                    Refusal { log, ..refusal }.into()
                }
            }),
            _ => Err(attempt::unusable(&response, setting).into()),
        }
    };
    timeout(DEADLINE, call).await?
}

/// An error response of a token endpoint (RFC 6749 §5.2).
pub(super) enum ErrorResponse {
    /// The provider rejects our client credentials, with this error.
    Client(String),
    /// Any other error, with its code if it has a valid one.
    Code(String),
}

/// Reads a 400 or 401. A wrong client secret must not be blamed on the code: every sign-in would then fail
/// without a hint at the cause.
pub(super) async fn error(response: Response) -> ErrorResponse {
    let status = response.status();
    let error = answer::json(response).await.ok();
    let error = error.as_ref().and_then(|error| error.str("error")).unwrap_or_default();
    if matches!(error, "invalid_client" | "unauthorized_client")
        || status == StatusCode::UNAUTHORIZED && error != "invalid_grant"
    {
        return ErrorResponse::Client(error_name(error).to_owned());
    }
    ErrorResponse::Code(error_name(error).to_owned())
}

/// Returns the name of a provider's error as it may go into a line of the log (RFC 6749 §4.1.2.1, §5.2).
#[must_use]
pub fn error_name(error: &str) -> &str {
    let named = (1..=40).contains(&error.len()) && error.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if named { error } else { "no known reason" }
}
