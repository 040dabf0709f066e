//! The token endpoint: an authorization code for an `id_token` (RFC 6749 §4.1.3, RFC 7636,
//! OpenID Connect Core §3.1.3). Not tried twice: a code is good once.

use reqwest::{Client, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::Error;
use super::answer::{self, DEADLINE, Unavailable};
use crate::config::Provider;
use crate::domain::refusal::{Reason, Refusal};

pub(super) async fn exchange(
    client: &Client,
    provider: &Provider,
    url: &Url,
    code: &str,
    code_verifier: &str,
    redirect_uri: &str,
) -> Result<String, Error> {
    let refused = |detail| Error::from(Refusal::new(Reason::InvalidToken, detail));
    let secret = provider.client_secret.as_ref().ok_or(refused("the provider has no client secret"))?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", code_verifier),
        ("client_id", &provider.client_ids[0]),
        ("client_secret", secret.expose()),
    ];
    let call = async {
        let response =
            client.post(url.clone()).form(&form).send().await.map_err(|_| Unavailable::new("connection"))?;
        match response.status() {
            StatusCode::OK => {
                let answer = answer::json(response).await?;
                let id_token = answer.str("id_token").map(str::to_owned);
                id_token.ok_or_else(|| Unavailable::new("no_id_token").into())
            }
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                Err(refused("the provider does not accept the code"))
            }
            _ => Err(Unavailable::new("status_other").into()),
        }
    };
    timeout(DEADLINE, call).await.unwrap_or_else(|_| Err(Unavailable::new("timeout").into()))
}
