//! Token introspection (RFC 7662): the request, and the blame for an error.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::presets::{CLIENT_ID, PRESETS, Preset, preset};
use super::under_test::{NOW, ProviderUnderTest, class, refusal, word};
use crate::support::provider::Behaviour;
use crate::support::signer::Signer;
use crate::support::token::with;

fn introspecting() -> impl Iterator<Item = Preset> {
    PRESETS.into_iter().filter(Preset::introspects)
}

#[tokio::test]
async fn introspection_sends_the_token_as_form_and_secret_as_basic() {
    for preset in introspecting() {
        let under_test =
            ProviderUnderTest::with(preset, &json!({ "client_secret": "a:b c/ü" })).await;
        assert_eq!(
            word(&under_test.says(&under_test.claims()).await),
            "accepted",
            "{}",
            preset.name
        );
        let requests = under_test.endpoint.requests();
        let [request] = requests.as_slice() else {
            panic!("{} requests", requests.len())
        };
        assert_eq!(
            (request.method.as_str(), request.query.as_str()),
            ("POST", "")
        );
        let names: Vec<_> = request
            .parameters()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["token"]);
        let basic = request
            .header("authorization")
            .unwrap()
            .strip_prefix("Basic ")
            .unwrap();
        let basic = String::from_utf8(STANDARD.decode(basic).unwrap()).unwrap();
        assert_eq!(
            basic,
            format!("{CLIENT_ID}:a%3Ab+c%2F%C3%BC"),
            "encoded as RFC 6749 §2.3.1 wants it"
        );
    }
}

#[tokio::test]
async fn the_secret_may_also_go_by_the_form() {
    let rfc7662 = preset("rfc7662");
    let under_test =
        ProviderUnderTest::with(rfc7662, &json!({ "token_auth": "client_secret_post" })).await;
    assert_eq!(
        word(&under_test.says(&under_test.claims()).await),
        "accepted"
    );
    let request = under_test.endpoint.requests().remove(0);
    assert_eq!(request.header("authorization"), None);
    let parameters = request.parameters();
    assert_eq!(
        parameters[1..],
        [("client_id", CLIENT_ID), ("client_secret", "hush")]
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
    );
}

#[tokio::test]
async fn a_token_that_is_not_a_jwt_is_asked_about_unread() {
    let under_test = ProviderUnderTest::of(preset("rfc7662")).await;
    under_test.vouch(&under_test.claims());
    for token in [
        "mF_9.B5f-4.1JqM",
        "2YotnFZFEjr1zCsicMWpAA",
        "..",
        "{\"sub\":1}",
    ] {
        assert_eq!(word(&under_test.verify(token).await), "accepted", "{token}");
        assert_eq!(
            under_test.endpoint.requests().last().unwrap().parameters()[0].1,
            token
        );
    }
}

#[tokio::test]
async fn only_true_means_active() {
    for preset in introspecting() {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims();
        for (active, verdict) in [
            (json!(true), "accepted"),
            (json!(false), "invalid_token"),
            (json!("true"), "unavailable"),
            (json!(1), "unavailable"),
            (json!(null), "unavailable"),
            (json!([true]), "unavailable"),
        ] {
            under_test.endpoint.behave(Behaviour::Json(
                under_test.changed("active", active.clone()),
            ));
            let token = preset.token(&claims);
            let said = under_test.verify(&token).await;
            assert_eq!(word(&said), verdict, "{} {active}: {said:?}", preset.name);
        }
        under_test.endpoint.behave(Behaviour::Json(claims.clone()));
        let token = preset.token(&claims);
        assert_eq!(
            class(&under_test.verify(&token).await),
            "not_introspection",
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn a_denied_introspection_is_unavailable_and_names_the_settings() {
    let unknown =
        |status, error: &str| Behaviour::json(status, json!({ "error": error }).to_string());
    let client = "`providers.under-test.client_id` and `providers.under-test.client_secret`";
    for preset in introspecting() {
        let address = if preset.discovers {
            "issuer"
        } else {
            "tokeninfo_url"
        };
        let address = format!("`providers.under-test.{address}`");
        for (behaviour, expected, settings) in [
            (Behaviour::status(401), "client_authentication", client),
            (
                unknown(401, "invalid_client"),
                "client_authentication",
                client,
            ),
            (
                unknown(401, "invalid_request"),
                "client_authentication",
                client,
            ),
            (
                unknown(400, "invalid_client"),
                "client_authentication",
                client,
            ),
            (
                unknown(400, "unauthorized_client"),
                "client_authentication",
                client,
            ),
            // Keycloak's response to a public client.
            (Behaviour::status(403), "status_4xx", &address),
        ] {
            let under_test = ProviderUnderTest::of(preset).await;
            under_test.endpoint.behave(behaviour.clone());
            let verdict = under_test.verify(&preset.token(&under_test.claims())).await;
            assert_eq!(class(&verdict), expected, "{} {behaviour:?}", preset.name);
            let said = verdict.unwrap_err().to_string();
            assert!(
                said.contains(settings) && !said.contains("hush"),
                "{}: {said}",
                preset.name
            );
            assert_eq!(
                said.contains("a confidential client"),
                expected == "status_4xx",
                "{said}"
            );
        }
    }
}

#[tokio::test]
async fn keycloaks_introspection_vouches_for_the_token_and_not_for_its_audiences() {
    for preset in introspecting().filter(|preset| preset.is_of("keycloak")) {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims();
        // A default realm's response about an id_token: `aud` is the audience of the user's roles.
        let answer = json!({
            "aud": "account", "active": true, "scope": "openid email profile", "token_type": "Bearer",
            "client_id": CLIENT_ID, "username": "jason",
        });
        under_test
            .endpoint
            .behave(Behaviour::Json(with(claims.clone(), &answer)));
        let verified = under_test.verify(&preset.token(&claims)).await.unwrap();
        assert_eq!(
            (&json!(verified.subject), verified.client_id.as_str()),
            (&claims["sub"], CLIENT_ID)
        );
        // The token's own audience counts; a foreign one is rejected without a call.
        let calls = under_test.calls();
        let verdict = under_test
            .verify(&preset.token(&under_test.changed("aud", "account")))
            .await;
        assert_eq!(word(&verdict), "audience_mismatch", "{}", preset.name);
        assert_eq!(under_test.calls(), calls, "{}", preset.name);
    }
}

#[tokio::test]
async fn an_introspection_may_omit_claims_but_not_contradict_the_jwt() {
    let oidc = Preset {
        name: "oidc by introspection",
        settings: || json!({ "preset": "oidc", "verify": "tokeninfo", "client_secret": "hush" }),
        ..preset("keycloak by introspection")
    };
    for preset in introspecting().chain([oidc]) {
        let under_test = ProviderUnderTest::with(
            preset,
            &json!({ "additional_client_ids": "android.example" }),
        )
        .await;
        let own = with(
            under_test.without("scope"),
            &json!({ "client_id": null, "azp": CLIENT_ID, "email": "jason@example.com", "email_verified": true,
                     "name": "Jason B" }),
        );
        let ask = async |token: &Value, answer: Value| {
            under_test
                .endpoint
                .behave(Behaviour::Json(with(answer, &json!({ "active": true }))));
            under_test.verify(&Signer::Rsa.token(token)).await
        };
        let of_roles = if preset.is_of("keycloak") {
            "accepted"
        } else {
            "audience_mismatch"
        };
        for (changes, verdict) in [
            (json!({ "exp": NOW - 3600 }), "token_expired"),
            (json!({ "exp": "soon" }), "invalid_token"),
            (json!({ "exp": (NOW + 60).to_string() }), "accepted"),
            (json!({ "iat": NOW + 3600 }), "invalid_token"),
            (json!({ "iat": "soon" }), "invalid_token"),
            (json!({ "iat": NOW - 90_000 }), "token_expired"),
            (json!({ "iat": NOW - 60 }), "accepted"),
            (json!({ "nbf": NOW + 3600 }), "invalid_token"),
            (json!({ "nbf": "soon" }), "invalid_token"),
            (json!({ "nbf": NOW - 60 }), "accepted"),
            (json!({ "nonce": "another" }), "nonce_mismatch"),
            (json!({ "typ": "Bearer" }), "invalid_token"),
            (json!({ "typ": "Logout" }), "invalid_token"),
            (json!({ "typ": "ID" }), "accepted"),
            (json!({ "token_use": "access" }), "invalid_token"),
            (json!({ "token_use": "id" }), "accepted"),
            // `token_type` says how to use the token (RFC 6749 §7.1), not its kind.
            (json!({ "token_type": "Bearer" }), "accepted"),
            (json!({ "token_type": "N_A" }), "accepted"),
            (json!({ "iss": "https://other.example" }), "issuer_mismatch"),
            (json!({ "iss": 1 }), "issuer_mismatch"),
            (json!({ "sub": "somebody-else" }), "invalid_token"),
            (json!({ "email": "eve@example.com" }), "invalid_token"),
            (json!({ "email": ["jason@example.com"] }), "invalid_token"),
            (json!({ "email": "Jason@Example.com" }), "accepted"),
            (json!({ "email_verified": false }), "invalid_token"),
            (json!({ "email_verified": "true" }), "accepted"),
            (json!({ "azp": "foreign.example" }), "audience_mismatch"),
            (json!({ "azp": "android.example" }), "audience_mismatch"),
            (
                json!({ "client_id": "foreign.example" }),
                "audience_mismatch",
            ),
            (
                json!({ "client_id": "android.example" }),
                "audience_mismatch",
            ),
            (json!({ "client_id": CLIENT_ID }), "accepted"),
            (json!({ "aud": "account" }), of_roles),
            (json!({ "aud": [CLIENT_ID, "android.example"] }), of_roles),
            (json!({ "aud": [CLIENT_ID] }), "accepted"),
        ] {
            let said = ask(&own, with(own.clone(), &changes)).await;
            assert_eq!(word(&said), verdict, "{} {changes}: {said:?}", preset.name);
        }
        // `with` would remove a member that is `null`.
        let mut unproven = own.clone();
        unproven["email_verified"] = Value::Null;
        assert_eq!(
            word(&ask(&own, unproven).await),
            "invalid_token",
            "{}",
            preset.name
        );
        let younger = ask(
            &with(own.clone(), &json!({ "iat": NOW - 600 })),
            json!({ "iat": NOW }),
        )
        .await;
        assert_eq!(
            younger.unwrap().issued_at.unix_timestamp(),
            NOW - 600,
            "{}",
            preset.name
        );
        let verified = async |token: &Value, answer: Value| {
            let verified = ask(token, answer)
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            let email = verified.email.map(|email| email.as_given().to_owned());
            (
                email,
                verified.email_verified,
                verified.name,
                verified.client_id,
            )
        };
        let told = |email: &str, proven, name: &str, client: &str| {
            (
                Some(email.to_owned()),
                proven,
                Some(name.to_owned()),
                client.to_owned(),
            )
        };
        let its_own = told("jason@example.com", true, "Jason B", CLIENT_ID);
        assert_eq!(verified(&own, json!({})).await, its_own, "{}", preset.name);
        assert_eq!(
            verified(&own, json!({ "sub": null, "email": null })).await,
            its_own,
            "{}",
            preset.name
        );
        // If only the JWT or only the introspection has a claim, there is no contradiction.
        let bare = with(own.clone(), &json!({ "email": null, "azp": null }));
        let more =
            json!({ "email": "jay@example.com", "name": "Jay", "client_id": "android.example" });
        let its_word = told("jay@example.com", false, "Jay", "android.example");
        assert_eq!(
            verified(&bare, more.clone()).await,
            its_word,
            "{}",
            preset.name
        );
        let proven = with(more, &json!({ "email_verified": true }));
        let its_word = told("jay@example.com", true, "Jay", "android.example");
        assert_eq!(
            verified(&with(bare, &json!({ "email_verified": null })), proven).await,
            its_word
        );
    }
}

#[tokio::test]
async fn the_error_names_verify_if_the_endpoint_introspects_no_id_tokens() {
    for preset in introspecting() {
        let under_test = ProviderUnderTest::of(preset).await;
        // The response of node's oidc-provider about every JWT.
        under_test.endpoint.behave(Behaviour::json(
            400,
            r#"{"error":"unsupported_token_type"}"#,
        ));
        for _ in 0..20 {
            let verdict = under_test.verify(&preset.token(&under_test.claims())).await;
            assert_eq!(class(&verdict), "not_introspected", "{}", preset.name);
            assert!(
                verdict
                    .unwrap_err()
                    .to_string()
                    .contains("providers.under-test.verify")
            );
        }
    }
}

#[tokio::test]
async fn an_audience_from_introspection_of_an_opaque_token_suggests_no_setting() {
    let under_test = ProviderUnderTest::of(preset("rfc7662")).await;
    let verdict = under_test
        .says(&under_test.changed("aud", "resource-server"))
        .await;
    let refusal = refusal(verdict);
    let log = refusal.log.unwrap();
    assert!(
        log.contains("resource-server") && !log.contains("additional_client_ids"),
        "{log}"
    );
}
