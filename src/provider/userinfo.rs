//! The userinfo endpoint (OpenID Connect Core §5.3), which is asked for the e-mail address of staff
//! alone: some providers put it there and not into the `id_token`.

use reqwest::StatusCode;
use tokio::time::timeout;

use super::answer::{self, Class, DEADLINE, Unavailable, late};
use super::attempt;
use super::authorization_code::Exchanged;
use super::error::Error;
use super::upstream::Provider;
use crate::domain::id_token::Unverified;
use crate::domain::metadata::Endpoint;
use crate::domain::{IdToken, Object, VerifiedClaims};

impl Provider {
    /// Completes the claims of a verified `id_token`. If the token does not state an e-mail
    /// address, or its proof, the userinfo endpoint supplies it, if the provider publishes one. The
    /// endpoint is not asked for claims that the token states.
    ///
    /// # Errors
    /// The endpoint does not answer, or answers about another subject (§5.3.2).
    pub async fn with_userinfo(
        &self,
        claims: VerifiedClaims,
        id_token: &IdToken,
        tokens: &Exchanged,
        now: i64,
    ) -> Result<VerifiedClaims, Error> {
        let proof = self.settings.dialect().email_proof;
        let stated = id_token
            .unverified()
            .map(Unverified::claims)
            .and_then(|own| proof.given(own))
            .is_some();
        if claims.email.is_some() && (claims.email_verified || stated) {
            return Ok(claims);
        }
        let answer = timeout(DEADLINE, self.userinfo(tokens, now))
            .await
            .unwrap_or_else(late);
        let answer =
            answer.map_err(|unavailable: Unavailable| unavailable.named(&self.settings))?;
        let Some(answer) = answer else {
            return Ok(claims);
        };
        if answer.str("sub") != Some(claims.subject.as_str()) {
            let why = "userinfo is about another subject than the id_token".to_owned();
            return Err(Unavailable {
                why: Some(why),
                ..Unavailable::new(Class::Disagreement)
            }
            .into());
        }
        Ok(claims.completed_by(&answer, proof, self.settings.trust_email))
    }

    /// Returns the endpoint's claims; `None` if there is no endpoint, or no access token for it.
    async fn userinfo(&self, tokens: &Exchanged, now: i64) -> Result<Option<Object>, Unavailable> {
        let (Some(discovery), Some(access_token)) =
            (&self.settings.discovery, &tokens.access_token)
        else {
            return Ok(None);
        };
        let metadata = self.upstream.metadata.get(discovery, now).await?;
        // An endpoint that cannot be used counts as absent: the log has named it by now.
        let Ok(Some(url)) = metadata.value.url(Endpoint::Userinfo) else {
            return Ok(None);
        };
        let answer = attempt::retry_once(|| async {
            let request = self
                .upstream
                .client
                .get(url.clone())
                .bearer_auth(access_token.expose());
            let response = attempt::send(request).await?;
            if response.status() != StatusCode::OK {
                return Err(attempt::unusable(&response, "issuer"));
            }
            Ok(answer::json(response).await?)
        });
        answer.await.map(Some)
    }
}
