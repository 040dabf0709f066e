//! The call to a provider's token-information endpoint, such as Google's
//! `https://oauth2.googleapis.com/tokeninfo?id_token=…`, or to one for introspection (RFC 7662).
//!
//! Each failure is blamed on the token, on the service's credentials, or on the provider: see
//! `classify`.

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use url::{Position, Url};

use super::answer::{self, Class, Unavailable};
use super::attempt::{self, Failure};
use super::credentials;
use super::error::Error;
use crate::config::{ClientAuthentication, Provider};
use crate::domain::presets::Protocol;
use crate::domain::{IdToken, Object, Reason, Refusal, introspection};

/// The likely reason for which an introspection endpoint forbids the request.
pub(super) const CONFIDENTIAL: &str =
    "introspection requires a confidential client with its own secret";

/// The longest path and query that are sent. Most servers accept a request line of 8 KiB and answer
/// 414 to a longer one (RFC 9110 §4.1 recommends 8,000 bytes).
const MAX_TARGET: usize = 8_000;

/// Asks the provider about a token, and retries once after a transient failure.
pub(super) async fn ask(
    client: &Client,
    provider: &Provider,
    url: &Url,
    token: &IdToken,
) -> Result<Object, Error> {
    attempt::retry_once(|| async {
        let response = attempt::send(request(client, provider, url, token)).await?;
        classify(provider, response).await
    })
    .await
}

/// Classifies a response: claims, the token's fault, or the provider's.
pub(super) async fn classify(
    provider: &Provider,
    response: Response,
) -> Result<Object, Failure<Error>> {
    match (response.status(), provider.preset.protocol) {
        (StatusCode::OK, Protocol::Introspection) => introspected(provider, response).await,
        (StatusCode::FORBIDDEN, Protocol::Introspection) => {
            let why = Some(CONFIDENTIAL.to_owned());
            Err(Unavailable {
                why,
                ..attempt::unavailable(&response, endpoint_setting(provider))
            }
            .into())
        }
        (StatusCode::OK, _) => claims(response).await,
        (
            status @ (StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED),
            Protocol::Introspection,
        ) => Err(client_or_token(status, response)
            .await
            .unwrap_or_else(refused)),
        (StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED, _) => {
            // reqwest reuses a connection only after its body was read to the end.
            let _ = answer::body(response).await;
            Err(refused())
        }
        // The token is too long, or has bytes that the provider's server does not accept.
        (
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _,
        ) => Err(refused()),
        _ => Err(attempt::unusable(&response, endpoint_setting(provider))),
    }
}

/// Returns the setting to look at when the endpoint does not understand us. An address that was
/// discovered is changed by the issuer.
pub(super) const fn endpoint_setting(provider: &Provider) -> &'static str {
    if provider.tokeninfo_url.is_some() {
        "tokeninfo_url"
    } else {
        "issuer"
    }
}

pub(super) fn request(
    client: &Client,
    provider: &Provider,
    url: &Url,
    token: &IdToken,
) -> RequestBuilder {
    let id_token = ("id_token", token.expose());
    match provider.preset.protocol {
        Protocol::Tokeninfo => {
            let mut target = url.clone();
            target.query_pairs_mut().extend_pairs([id_token]);
            // Google's endpoint takes the same parameter from a form.
            let fits = target[Position::BeforePath..].len() <= MAX_TARGET;
            if fits {
                client.get(target)
            } else {
                client.post(url.clone()).form(&[id_token])
            }
        }
        Protocol::TokeninfoForClient => {
            let client_id = ("client_id", intended_client(provider, token));
            client.post(url.clone()).form(&[id_token, client_id])
        }
        Protocol::Introspection => {
            let authentication = provider
                .token_auth
                .unwrap_or(ClientAuthentication::ClientSecretBasic);
            credentials::post(
                client,
                provider,
                authentication,
                url,
                &[("token", token.expose())],
            )
        }
    }
}

/// Returns the client id that the token claims to be for. It is a configured one, or the token
/// would have been refused before; the endpoint confirms the claim or refuses the token.
fn intended_client<'p>(provider: &'p Provider, token: &IdToken) -> &'p str {
    let claimed = token.unverified().and_then(|token| token.claimed("aud"));
    let known = claimed.and_then(|claimed| provider.client_ids.iter().find(|id| *id == claimed));
    known.unwrap_or(&provider.client_ids[0])
}

fn refused() -> Failure<Error> {
    Failure::Final(Refusal::new(Reason::InvalidToken, "the provider rejected the token").into())
}

async fn claims(response: Response) -> Result<Object, Failure<Error>> {
    let claims = answer::json(response)
        .await
        .map_err(Unavailable::about_token)?;
    match claims.str("error") {
        None if claims.get("error").is_none() => Ok(claims),
        Some("server_error" | "temporarily_unavailable") => {
            Err(Unavailable::new(Class::ErrorIn200).into())
        }
        _ => Err(refused()),
    }
}

async fn introspected(provider: &Provider, response: Response) -> Result<Object, Failure<Error>> {
    let claims = claims(response).await?;
    match introspection::active(&claims) {
        Some(true) => Ok(introspection::claims(claims)),
        Some(false) => Err(refused()),
        None => Err(Unavailable::misconfigured(
            Class::NotIntrospection,
            endpoint_setting(provider),
        )
        .into()),
    }
}

/// Decides if a 400 or 401 is the token's fault. An introspection endpoint answers an invalid token
/// with a
/// 200. A 401, and some errors of a 400, mean that it rejects our client credentials (RFC 7662 §2.3, RFC 6749
/// §5.2). If the token were blamed for that, every sign-in would be refused until the secret is
/// corrected.
///
/// Returns `None` for a 400 that does not state its reason.
pub(super) async fn client_or_token(
    status: StatusCode,
    response: Response,
) -> Option<Failure<Error>> {
    let error = answer::json(response).await.ok();
    let client_rejected =
        || Unavailable::client_authentication(&["client_id", "client_secret"]).into();
    match error.as_ref().and_then(|error| error.str("error")) {
        Some("invalid_token") => Some(refused()),
        Some("invalid_client" | "unauthorized_client") => Some(client_rejected()),
        Some(introspection::NOT_INTROSPECTED) => Some(Unavailable::not_introspected().into()),
        _ => (status == StatusCode::UNAUTHORIZED).then(client_rejected),
    }
}
