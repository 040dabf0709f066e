//! Discovery documents (OpenID Connect Discovery 1.0 §4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vestibule::provider::Error;

use super::presets::{CLIENT_ID, PRESETS, Preset, preset};
use super::under_test::{NOW, ProviderUnderTest, class, read, word};
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::{Signer, jwks};

fn discovering() -> impl Iterator<Item = Preset> {
    PRESETS.into_iter().filter(|preset| preset.discovers)
}

#[tokio::test]
async fn endpoints_are_discovered_once_and_requests_name_vestibule_as_user_agent() {
    for preset in discovering() {
        let under_test = ProviderUnderTest::of(preset).await;
        for _ in 0..3 {
            assert_eq!(
                word(&under_test.says(&under_test.claims()).await),
                "accepted",
                "{}",
                preset.name
            );
        }
        let requests = under_test.metadata.requests();
        assert_eq!(requests.len(), 1, "{}", preset.name);
        assert_eq!(requests[0].path, "/.well-known/openid-configuration");
        assert!(
            under_test
                .keys
                .requests()
                .iter()
                .all(|request| request.path == "/keys")
        );
        assert!(
            under_test
                .endpoint
                .requests()
                .iter()
                .all(|request| request.path == "/tokeninfo")
        );
        let asked = [&under_test.metadata, &under_test.keys, &under_test.endpoint];
        for request in asked.into_iter().flat_map(Provider::requests) {
            let agent = request.header("user-agent").unwrap_or_default();
            assert!(
                agent.starts_with("Vestibule/"),
                "{}: {request:?}",
                preset.name
            );
        }
    }
}

/// A provider with these settings. Its token endpoint is on the endpoint's server and authenticates
/// clients by these methods.
async fn exchanging(settings: &Value, methods: Option<&Value>) -> ProviderUnderTest {
    let under_test = ProviderUnderTest::with(preset("oidc"), settings).await;
    let mut document = json!({
        "issuer": under_test.metadata.url(), "token_endpoint": format!("{}/token", under_test.endpoint.url()),
    });
    if let Some(methods) = methods {
        document["token_endpoint_auth_methods_supported"] = methods.clone();
    }
    under_test.metadata.behave(Behaviour::Json(document));
    under_test
        .endpoint
        .behave(Behaviour::Json(json!({ "id_token": "e30.e30.c2ln" })));
    under_test
}

async fn exchange(under_test: &ProviderUnderTest) -> Result<String, Error> {
    let exchanged = under_test
        .provider()
        .exchange("code", "verifier", "https://x.example/", NOW)
        .await;
    exchanged.map(|tokens| tokens.id_token.expose().clone())
}

#[tokio::test]
async fn where_staff_sign_in_comes_from_it_too() {
    let under_test = ProviderUnderTest::of(preset("oidc")).await;
    let url = under_test.provider().authorization_url(NOW).await.unwrap();
    assert_eq!(
        url.as_str(),
        format!("{}/authorize", under_test.metadata.url())
    );
    let under_test = exchanging(&json!({ "client_secret": "hush" }), None).await;
    assert_eq!(exchange(&under_test).await.unwrap(), "e30.e30.c2ln");
    assert_eq!(under_test.endpoint.requests()[0].path, "/token");
}

#[tokio::test]
async fn the_token_endpoint_is_told_who_asks_as_it_wants_it() {
    let basic = json!(["private_key_jwt", "client_secret_basic"]);
    let post = json!(["client_secret_post"]);
    for (published, set, in_form) in [
        (None, None, Some(false)),
        (Some(&basic), None, Some(false)),
        (Some(&post), None, Some(true)),
        (Some(&basic), Some("client_secret_post"), Some(true)),
        (Some(&json!(["private_key_jwt"])), None, None),
    ] {
        let mut settings = json!({ "client_secret": "a:b c/ü" });
        if let Some(set) = set {
            settings["token_auth"] = set.into();
        }
        let under_test = exchanging(&settings, published).await;
        let exchanged = exchange(&under_test).await;
        let Some(in_form) = in_form else {
            let error = exchanged.unwrap_err().to_string();
            assert!(
                error.ends_with("check `providers.under-test.token_auth`"),
                "{error}"
            );
            assert_eq!(under_test.endpoint.calls(), 0);
            continue;
        };
        assert_eq!(exchanged.unwrap(), "e30.e30.c2ln");
        let request = under_test.endpoint.requests().remove(0);
        let basic = request.header("authorization").map(|header| {
            let text = STANDARD
                .decode(header.strip_prefix("Basic ").unwrap())
                .unwrap();
            String::from_utf8(text).unwrap()
        });
        let form = request.parameters();
        let sent = |name: &str| {
            form.iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value.as_str())
        };
        if in_form {
            let proof = (sent("client_id"), sent("client_secret"));
            assert_eq!(
                (basic, proof),
                (None, (Some(CLIENT_ID), Some("a:b c/ü"))),
                "{published:?} {set:?}"
            );
        } else {
            assert_eq!(
                basic,
                Some(format!("{CLIENT_ID}:a%3Ab+c%2F%C3%BC")),
                "{published:?}"
            );
            assert_eq!((sent("client_id"), sent("client_secret")), (None, None));
        }
        assert_eq!(
            (sent("grant_type"), sent("code")),
            (Some("authorization_code"), Some("code"))
        );
    }
}

#[tokio::test]
async fn a_fully_configured_token_endpoint_needs_no_discovery() {
    let endpoint = Provider::start().await;
    endpoint.behave(Behaviour::Json(json!({ "id_token": "e30.e30.c2ln" })));
    let settings = json!({
        "client_secret": "hush", "token_url": endpoint.url(), "token_auth": "client_secret_post",
    });
    let under_test = ProviderUnderTest::with(preset("oidc"), &settings).await;
    let exchanged = exchange(&under_test).await;
    assert_eq!(
        (exchanged.unwrap().as_str(), under_test.metadata.calls()),
        ("e30.e30.c2ln", 0)
    );
}

#[tokio::test]
async fn wrong_secrets_and_wrong_codes_differ_and_logs_name_the_error() {
    let under_test = exchanging(&json!({ "client_secret": "hush" }), None).await;
    let longest = "e".repeat(40);
    let unnamed = Some("no known reason");
    for (status, error, told) in [
        (
            401,
            json!({ "error": "invalid_client", "error_description": "hush" }),
            None,
        ),
        (400, json!({ "error": "invalid_client" }), None),
        (401, json!({ "error": "unauthorized_client" }), None),
        (401, json!({}), None),
        (
            400,
            json!({ "error": "invalid_grant" }),
            Some("invalid_grant"),
        ),
        (
            401,
            json!({ "error": "invalid_grant" }),
            Some("invalid_grant"),
        ),
        (
            400,
            json!({ "error": "redirect_uri_mismatch" }),
            Some("redirect_uri_mismatch"),
        ),
        (400, json!({ "error": longest }), Some(longest.as_str())),
        (400, json!({ "error": format!("{longest}e") }), unnamed),
        (400, json!({ "error": "\n<svg> hush" }), unnamed),
        (400, json!({ "error": "" }), unnamed),
        (400, json!({}), unnamed),
    ] {
        under_test
            .endpoint
            .behave(Behaviour::json(status, error.to_string()));
        let exchanged = exchange(&under_test).await;
        match exchanged.unwrap_err() {
            Error::Unavailable(unavailable) => {
                assert_eq!(told, None, "{error}");
                let said = unavailable.to_string();
                let settings = ["client_id", "client_secret", "token_auth"]
                    .map(|setting| format!("`providers.under-test.{setting}`"));
                let name = error["error"].as_str().unwrap_or("no known reason");
                let expected = format!(
                    "client_authentication (the provider's error is {name}); check {}",
                    settings.join(" and ")
                );
                assert!(said.ends_with(&expected), "{said}");
            }
            Error::Refused(refusal) => {
                let expected = told.map(|told| format!("the provider rejected the code: {told}"));
                assert_eq!(refusal.log, expected, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_token_endpoint_is_reported_with_its_setting() {
    let under_test = exchanging(&json!({ "client_secret": "hush" }), None).await;
    let settings = json!({ "client_secret": "hush", "token_url": under_test.endpoint.url(), "token_auth": "client_secret_post" });
    let set = ProviderUnderTest::with(preset("oidc"), &settings).await;
    // Both ask the endpoint of the first provider.
    for (asking, setting) in [(&under_test, "issuer"), (&set, "token_url")] {
        let wrong = format!("; check `providers.under-test.{setting}`");
        for (status, class, remedy) in [
            (404, "status_4xx", wrong.as_str()),
            (405, "status_4xx", &wrong),
            (302, "status_3xx", &wrong),
            (429, "status_429", ""),
            (503, "status_5xx", ""),
        ] {
            under_test.endpoint.behave(Behaviour::status(status));
            let said = exchange(asking).await.unwrap_err().to_string();
            assert!(
                said.ends_with(&format!("{class}{remedy}")),
                "{status}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn a_path_in_the_issuer_goes_before_the_well_known_one() {
    let under_test = ProviderUnderTest::of(preset("keycloak")).await;
    let path = "/realms/people/.well-known/openid-configuration";
    for end in ["", "/"] {
        let issuer = format!("{}/realms/people{end}", under_test.metadata.url());
        let settings = json!({ "preset": "keycloak", "client_id": CLIENT_ID, "issuer": issuer });
        let providers =
            vestibule::provider::Providers::new(read(&settings).unwrap().providers).unwrap();
        let provider = providers.get("under-test").unwrap();
        assert!(
            provider.authorization_url(NOW).await.is_err(),
            "this one is another issuer's"
        );
        assert_eq!(under_test.metadata.requests().last().unwrap().path, path);
    }
}

#[tokio::test]
async fn another_issuers_document_is_refused() {
    for preset in discovering() {
        for change in [
            ("issuer", json!("https://id.example.com")),
            ("issuer", json!(null)),
            ("issuer", json!([])),
            ("issuer", json!("/")),
        ] {
            let under_test = ProviderUnderTest::of(preset).await;
            let mut document = document(&under_test);
            document[change.0] = match &change {
                ("issuer", Value::String(slash)) if slash == "/" => {
                    format!("{}/", under_test.metadata.url()).into()
                }
                (_, value) => value.clone(),
            };
            under_test.metadata.behave(Behaviour::Json(document));
            let verdict = under_test.says(&under_test.claims()).await;
            assert_eq!(
                class(&verdict),
                "metadata",
                "{} {change:?}: {verdict:?}",
                preset.name
            );
            let said = verdict.unwrap_err().to_string();
            assert!(said.contains("providers.under-test.issuer"), "{said}");
            if let ("issuer", Value::String(found)) = &change {
                assert!(
                    said.contains(found.as_str()),
                    "the issuer that was found: {said}"
                );
            }
            assert_eq!(
                (under_test.keys.calls(), under_test.endpoint.calls()),
                (0, 0),
                "{} {change:?}",
                preset.name
            );
        }
    }
}

#[tokio::test]
async fn only_metadata_that_a_sign_in_uses_is_validated() {
    let unusable = [
        json!(""),
        json!("jwks"),
        json!("/oauth2/revoke"),
        json!("http://id.example.com/keys"),
        json!("file:///etc/passwd"),
        json!("https://user:password@id.example.com/"),
        json!(7),
        json!(["https://id.example.com/"]),
    ];
    let members = [
        "jwks_uri",
        "introspection_endpoint",
        "authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
        "userinfo_endpoint",
        "end_session_endpoint",
        "registration_endpoint",
        "token_endpoint_auth_methods_supported",
        "id_token_signing_alg_values_supported",
        "scopes_supported",
    ];
    for preset in discovering() {
        for member in members {
            let used = match member {
                "jwks_uri" => preset.signs(),
                "introspection_endpoint" => preset.asks,
                _ => false,
            };
            for value in &unusable {
                let under_test = ProviderUnderTest::of(preset).await;
                let mut document = document(&under_test);
                document[member] = value.clone();
                under_test.metadata.behave(Behaviour::Json(document));
                let verdict = under_test.says(&under_test.claims()).await;
                if !used {
                    assert_eq!(
                        word(&verdict),
                        "accepted",
                        "{} {member} {value}: {verdict:?}",
                        preset.name
                    );
                    continue;
                }
                assert_eq!(
                    class(&verdict),
                    "metadata",
                    "{} {member} {value}: {verdict:?}",
                    preset.name
                );
                let said = verdict.unwrap_err().to_string();
                assert!(
                    said.contains(member) && said.contains("providers.under-test.issuer"),
                    "{said}"
                );
                let called = if member == "jwks_uri" {
                    under_test.keys.calls()
                } else {
                    under_test.endpoint.calls()
                };
                assert_eq!(called, 0, "{} {member} {value}", preset.name);
            }
        }
    }
}

#[tokio::test]
async fn a_token_endpoint_without_methods_for_clients_is_the_standards() {
    for methods in [
        json!([]),
        json!(null),
        json!("client_secret_post"),
        json!([7]),
    ] {
        let under_test = exchanging(&json!({ "client_secret": "hush" }), Some(&methods)).await;
        exchange(&under_test).await.unwrap();
        let request = under_test.endpoint.requests().remove(0);
        assert!(request.header("authorization").is_some(), "{methods}");
    }
}

fn document(under_test: &ProviderUnderTest) -> Value {
    json!({
        "issuer": under_test.metadata.url(), "jwks_uri": format!("{}/keys", under_test.keys.url()),
        "introspection_endpoint": under_test.endpoint.tokeninfo_url(),
    })
}

#[tokio::test]
async fn a_missing_endpoint_fails_only_presets_that_need_it() {
    for preset in discovering() {
        for (missing, needed) in [
            ("jwks_uri", preset.signs()),
            ("introspection_endpoint", preset.asks),
        ] {
            let under_test = ProviderUnderTest::of(preset).await;
            let mut document = document(&under_test);
            document.as_object_mut().unwrap().remove(missing);
            under_test.metadata.behave(Behaviour::Json(document));
            let verdict = under_test.says(&under_test.claims()).await;
            let expected = if needed { "unavailable" } else { "accepted" };
            assert_eq!(
                word(&verdict),
                expected,
                "{} {missing}: {verdict:?}",
                preset.name
            );
        }
    }
}

#[tokio::test]
async fn an_address_that_is_set_goes_before_one_that_is_published() {
    let elsewhere = Provider::start().await;
    elsewhere.behave(Behaviour::Json(jwks(&[Signer::Rsa.jwk()])));
    let under_test =
        ProviderUnderTest::with(preset("oidc"), &json!({ "jwks_url": elsewhere.url() })).await;
    assert_eq!(
        word(&under_test.says(&under_test.claims()).await),
        "accepted"
    );
    assert_eq!(
        (
            elsewhere.calls(),
            under_test.keys.calls(),
            under_test.metadata.calls()
        ),
        (1, 0, 0)
    );
}

#[tokio::test]
async fn keys_that_move_are_followed() {
    let under_test = ProviderUnderTest::of(preset("oidc")).await;
    assert_eq!(
        word(&under_test.says(&under_test.claims()).await),
        "accepted"
    );
    let elsewhere = Provider::start().await;
    elsewhere.behave(Behaviour::Json(jwks(&[Signer::OtherRsa.jwk()])));
    let mut moved = document(&under_test);
    moved["jwks_uri"] = format!("{}/keys", elsewhere.url()).into();
    under_test.metadata.behave(Behaviour::Json(moved));
    let claims = under_test.claims();
    let later = NOW + 700;
    let verdict = under_test
        .verify_at(&Signer::OtherRsa.token(&claims), later)
        .await;
    assert_eq!(word(&verdict), "accepted", "{verdict:?}");
    assert_eq!(
        word(
            &under_test
                .verify_at(&Signer::Rsa.token(&claims), later)
                .await
        ),
        "invalid_token"
    );
}
