//! Revocation (RFC 7009; Apple's "Token revocation"). The token for it comes from an authorization
//! code, which the app's SDK returns beside the `id_token`.

use std::borrow::Cow;

use reqwest::{RequestBuilder, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable, late};
use super::authorization_code::{Rejected, error, refused};
use super::error::Error;
use super::upstream::Provider;
use super::{attempt, credentials};
use crate::config::ClientAuthentication;
use crate::domain::id_token::Format;
use crate::domain::metadata::Endpoint;
use crate::domain::{IdToken, Object};
use crate::secret::Secret;

#[derive(Debug, Clone, Copy)]
pub struct Code<'a> {
    pub code: &'a str,
    /// The redirect URI of the request that it was issued for, if that had one.
    pub redirect_uri: Option<&'a str>,
    pub client_id: &'a str,
    pub subject: &'a str,
}

#[derive(Debug, Clone)]
pub struct Revocable {
    pub token: Secret<String>,
    /// True for an access token, where the provider has issued no refresh token.
    pub access: bool,
}

const fn kind(access: bool) -> &'static str {
    if access {
        "access_token"
    } else {
        "refresh_token"
    }
}

impl Provider {
    pub async fn redeem(&self, code: Code<'_>, now: i64) -> Result<Revocable, Error> {
        let exchanged = async {
            // A code is of no use if its token cannot be revoked.
            self.revocation_url(now).await?;
            let mut fields = vec![("code", code.code)];
            fields.extend(code.redirect_uri.map(|uri| ("redirect_uri", uri)));
            let answer = self.send_code(code.client_id, &fields, now).await;
            let answer = answer.map_err(|rejected| match rejected {
                Rejected::Code(name) if name == "invalid_grant" => refused(&name),
                other => self.rejected(other).into(),
            })?;
            self.check_subject(&answer, code.subject)?;
            let found = [false, true]
                .into_iter()
                .find_map(|access| Some((access, answer.str(kind(access))?)));
            let (access, token) = found.ok_or(Unavailable::new(Class::NoToken))?;
            Ok(Revocable {
                token: Secret::new(token.to_owned()),
                access,
            })
        };
        timeout(DEADLINE, exchanged)
            .await
            .unwrap_or_else(late)
            .map_err(|error: Error| error.named(&self.settings))
    }

    /// Revokes a token. A token that the provider no longer knows is revoked.
    pub async fn revoke(&self, token: &Revocable, client_id: &str, now: i64) -> Result<(), Error> {
        let revoked = async {
            let url = self.revocation_url(now).await?;
            let (_, authentication) = self.token_endpoint(now).await?;
            let fields = [
                ("token", token.token.expose().as_str()),
                ("token_type_hint", kind(token.access)),
            ];
            let request = self.authenticated(&url, authentication, client_id, &fields, now)?;
            let response = request.send().await.map_err(attempt::unreached)?;
            match response.status() {
                status if status.is_success() => Ok(()),
                StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => match error(response).await {
                    Rejected::Code(name) if matches!(&*name, "invalid_token" | "invalid_grant") => {
                        Ok(())
                    }
                    other => Err(self.rejected(other).into()),
                },
                _ => Err(attempt::unavailable(&response, "revocation_url").into()),
            }
        };
        timeout(DEADLINE, revoked)
            .await
            .unwrap_or_else(late)
            .map_err(|error: Error| error.named(&self.settings))
    }

    /// Checks that the answer to a code is about the user whose code it was. RFC 6749 knows no
    /// `id_token`; Apple always sends one.
    fn check_subject(&self, answer: &Object, subject: &str) -> Result<(), Error> {
        let Some(token) = answer.get("id_token") else {
            return if self.settings.preset.code_yields_id_token {
                Err(refused("its answer has no id_token"))
            } else {
                Ok(())
            };
        };
        let token = token
            .as_str()
            .and_then(|text| IdToken::parse(text, Format::Jwt).ok());
        match token
            .as_ref()
            .and_then(|token| token.unverified()?.claimed("sub"))
        {
            Some(claimed) if claimed == subject => Ok(()),
            Some(_) => Err(refused("it is another user's")),
            None => Err(refused("the id_token of its answer names nobody")),
        }
    }

    async fn revocation_url(&self, now: i64) -> Result<Cow<'_, Url>, Unavailable> {
        let configured = self.settings.revocation_url.as_ref();
        self.locate(configured, now, Endpoint::Revocation).await
    }

    pub(super) fn authenticated(
        &self,
        url: &Url,
        authentication: ClientAuthentication,
        client_id: &str,
        fields: &[(&str, &str)],
        now: i64,
    ) -> Result<RequestBuilder, Unavailable> {
        let client = &self.upstream.client;
        let Some(key) = &self.settings.client_key else {
            return Ok(credentials::post(
                client,
                &self.settings,
                authentication,
                url,
                fields,
            ));
        };
        let secret = key.secret(client_id, now);
        let secret = secret.map_err(|_| Unavailable::client_authentication(&["private_key"]))?;
        let own = [
            ("client_id", client_id),
            ("client_secret", secret.expose().as_str()),
        ];
        Ok(client.post(url.clone()).form(&[fields, &own].concat()))
    }

    /// Returns the settings by which we authenticate there.
    pub(super) const fn credentials(&self) -> [&'static str; 3] {
        if self.settings.client_key.is_some() {
            ["team_id", "key_id", "private_key"]
        } else {
            ["client_id", "client_secret", "token_auth"]
        }
    }

    /// Returns the failure of a request that the provider rejects, if the token or the code is not
    /// to blame.
    pub(super) fn rejected(&self, rejected: Rejected) -> Unavailable {
        let (name, unavailable) = match rejected {
            Rejected::Client(name) => (
                name,
                Unavailable::client_authentication(&self.credentials()),
            ),
            Rejected::Code(name) => (name, Unavailable::new(Class::Status4xx)),
            Rejected::Unavailable(unavailable) => return unavailable,
        };
        Unavailable {
            why: Some(format!("the provider's error is {name}")),
            ..unavailable
        }
    }
}
