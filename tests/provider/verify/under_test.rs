//! A service's providers, with the one under test and its servers.

use figment::Figment;
use serde_json::{Value, json};
use vestibule::config::{self, Config};
use vestibule::domain::claims::VerifiedClaims;
use vestibule::domain::id_token::IdToken;
use vestibule::domain::refusal::Refusal;
use vestibule::provider::{Error, Providers, Unavailable};

use super::presets::{CLIENT_ID, Preset};
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::{Signer, base64, jwks};
use crate::support::token::with;

/// The time of the tests. Nothing reads a clock.
pub const NOW: i64 = 2_000_000_000;

/// Complete settings without providers.
pub fn basics() -> Figment {
    config::defaults()
        .merge(("public_url", "http://127.0.0.1:8000"))
        .merge(("secret_key", "a secret key that only the tests use"))
        .merge(("databases.vestibule.url", "postgres://localhost/none"))
}

/// Reads valid settings with these for the provider `under-test`, which may be invalid.
pub fn read(settings: &Value) -> Result<Config, config::Error> {
    let idp = ("idp.client_id", "google.example");
    Config::read(
        basics()
            .merge(idp)
            .merge(("providers.under-test", settings)),
    )
}

/// The providers and the servers behind the one under test.
pub struct ProviderUnderTest {
    pub preset: Preset,
    pub endpoint: Provider,
    pub keys: Provider,
    pub metadata: Provider,
    pub providers: Providers,
}

impl ProviderUnderTest {
    pub async fn of(preset: Preset) -> Self {
        Self::with(preset, &json!({})).await
    }

    /// Starts a provider with further settings for the preset.
    pub async fn with(preset: Preset, more: &Value) -> Self {
        let servers = [
            Provider::start().await,
            Provider::start().await,
            Provider::start().await,
        ];
        let [endpoint, keys, metadata] = servers;
        let mut settings = (preset.settings)();
        settings["client_id"] = CLIENT_ID.into();
        if preset.discovers {
            settings["issuer"] = metadata.url().into();
        } else {
            if preset.asks {
                settings["tokeninfo_url"] = endpoint.tokeninfo_url().into();
            }
            if preset.signs() {
                settings["jwks_url"] = format!("{}/keys", keys.url()).into();
            }
        }
        let config =
            read(&with(settings, more)).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        let providers = Providers::new(config.providers).unwrap();
        let under_test = Self {
            preset,
            endpoint,
            keys,
            metadata,
            providers,
        };
        under_test.recover();
        under_test
    }

    /// Makes the servers publish correct documents.
    pub fn recover(&self) {
        let Self {
            endpoint,
            keys,
            metadata,
            ..
        } = self;
        metadata.behave(Behaviour::Json(json!({
            "issuer": metadata.url(), "jwks_uri": format!("{}/keys", keys.url()),
            "introspection_endpoint": endpoint.tokeninfo_url(),
            "authorization_endpoint": format!("{}/authorize", metadata.url()),
            "token_endpoint": format!("{}/token", metadata.url()),
        })));
        keys.behave(Behaviour::Json(jwks(&[
            Signer::Ec.jwk(),
            Signer::Rsa.jwk(),
        ])));
    }

    /// The claims of this provider's correct response, with the issuer under test.
    pub fn claims(&self) -> Value {
        let mut claims = (self.preset.claims)();
        if self.preset.discovers {
            claims["iss"] = self.metadata.url().into();
        }
        claims
    }

    /// These claims with one of them replaced.
    pub fn changed(&self, name: &str, value: impl Into<Value>) -> Value {
        let mut claims = self.claims();
        claims[name] = value.into();
        claims
    }

    /// These claims without one of them.
    pub fn without(&self, name: &str) -> Value {
        with(self.claims(), &json!({ name: null }))
    }

    pub fn provider(&self) -> &vestibule::provider::Provider {
        self.providers.get("under-test").unwrap()
    }

    /// The endpoint's response about a token with these claims.
    pub fn answer(&self, claims: &Value) -> Behaviour {
        self.answer_text(&claims.to_string())
    }

    fn answer_text(&self, claims: &str) -> Behaviour {
        Behaviour::body("application/json", (self.preset.answer)(claims))
    }

    /// Makes the endpoint return these claims for every token.
    pub fn vouch(&self, claims: &Value) {
        self.endpoint.behave(self.answer(claims));
    }

    /// Verifies a token for which the provider states these claims.
    pub async fn says(&self, claims: &Value) -> Result<VerifiedClaims, Error> {
        self.says_text(&claims.to_string()).await
    }

    /// Does the same for a text that may be unusual JSON.
    pub async fn says_text(&self, claims: &str) -> Result<VerifiedClaims, Error> {
        if self.preset.asks {
            self.endpoint.behave(self.answer_text(claims));
        }
        self.verify(&self.preset.token_of(claims)).await
    }

    pub async fn verify(&self, token: &str) -> Result<VerifiedClaims, Error> {
        self.verify_at(token, NOW).await
    }

    pub async fn verify_at(&self, token: &str, now: i64) -> Result<VerifiedClaims, Error> {
        self.verify_with(token, None, now).await
    }

    pub async fn verify_with(
        &self,
        token: &str,
        nonce: Option<&str>,
        now: i64,
    ) -> Result<VerifiedClaims, Error> {
        let provider = self.provider();
        let token = IdToken::parse(token, provider.settings.token_format).unwrap();
        provider.verify(&token, nonce, now).await
    }

    /// The number of requests to all servers.
    pub fn calls(&self) -> usize {
        self.endpoint.calls() + self.keys.calls() + self.metadata.calls()
    }
}

/// A token without claims, for presets that ask an endpoint about it.
pub fn opaque() -> String {
    opaque_of(0)
}

/// One of many such tokens.
pub fn opaque_of(number: usize) -> String {
    format!(
        "{}.{}.{}",
        base64(r#"{"alg":"RS256"}"#),
        base64("{}"),
        base64(number.to_string())
    )
}

/// A verdict as one word.
pub fn word(verdict: &Result<VerifiedClaims, Error>) -> &'static str {
    match verdict {
        Ok(_) => "accepted",
        Err(Error::Refused(refusal)) => refusal.reason.into(),
        Err(Error::Unavailable(_)) => "unavailable",
    }
}

/// The reason why a provider is unavailable, as one word.
#[track_caller]
pub fn class(verdict: &Result<VerifiedClaims, Error>) -> &'static str {
    unavailable(verdict).class()
}

#[track_caller]
pub fn unavailable(verdict: &Result<VerifiedClaims, Error>) -> &Unavailable {
    match verdict {
        Err(Error::Unavailable(unavailable)) => unavailable,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub fn refusal(verdict: Result<VerifiedClaims, Error>) -> Refusal {
    match verdict {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}
