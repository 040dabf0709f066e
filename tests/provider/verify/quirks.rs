//! Peculiarities of single providers.

use serde_json::json;
use vestibule::config::Config;
use vestibule::domain::id_token::IdToken;
use vestibule::provider::Providers;

use super::presets::{CLIENT_ID, preset};
use super::under_test::{NOW, ProviderUnderTest, basics, opaque, refusal, word};
use crate::support::provider::Behaviour;
use crate::support::signer::{Signer, hs256, jwks, signed};
use crate::support::token::with;

const TENANT: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";

#[tokio::test]
async fn google_has_two_spellings_of_its_issuer_and_asks_by_get() {
    let under_test = ProviderUnderTest::of(preset("google")).await;
    for issuer in ["accounts.google.com", "https://accounts.google.com"] {
        let verified = under_test
            .says(&under_test.changed("iss", issuer))
            .await
            .unwrap();
        assert_eq!(
            json!(verified.subject),
            under_test.claims()["sub"],
            "one identity by either"
        );
    }
    let request = under_test.endpoint.requests().remove(0);
    assert_eq!(
        (request.method.as_str(), request.parameters().len()),
        ("GET", 1)
    );
    assert_eq!(request.token().unwrap(), opaque());
}

#[tokio::test]
async fn line_is_asked_by_a_form_that_names_our_channel() {
    let under_test = ProviderUnderTest::with(
        preset("line"),
        &json!({ "additional_client_ids": "9999999999" }),
    )
    .await;
    assert_eq!(
        word(&under_test.says(&under_test.claims()).await),
        "accepted"
    );
    let request = under_test.endpoint.requests().remove(0);
    assert_eq!(
        (request.method.as_str(), request.query.as_str()),
        ("POST", "")
    );
    let sent = [("id_token", opaque().as_str()), ("client_id", CLIENT_ID)]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(request.parameters(), sent);
    // For a token of our other channel, the request names the other channel.
    let claims = under_test.changed("aud", "9999999999");
    under_test.endpoint.behave(Behaviour::Json(claims.clone()));
    let verified = under_test.verify(&Signer::Ec.token(&claims)).await.unwrap();
    assert_eq!(verified.client_id, "9999999999");
    assert_eq!(
        under_test.endpoint.requests()[1].parameters()[1].1,
        "9999999999"
    );
}

#[tokio::test]
async fn only_lines_endpoint_verifies_tokens_of_its_web_login() {
    let asked = ProviderUnderTest::of(preset("line")).await;
    let claims = asked.claims();
    let token = signed(
        r#"{"typ":"JWT","alg":"HS256"}"#,
        &claims.to_string(),
        |message| hs256(b"the channel secret", message),
    );
    asked.endpoint.behave(Behaviour::Json(claims));
    assert_eq!(word(&asked.verify(&token).await), "accepted");
    let signed = ProviderUnderTest::of(preset("line by its keys")).await;
    assert_eq!(word(&signed.verify(&token).await), "invalid_token");
}

#[tokio::test]
async fn apple_has_two_issuers_and_one_person_behind_both() {
    let under_test = ProviderUnderTest::of(preset("apple")).await;
    for (issuer, verdict) in [
        ("https://appleid.apple.com", "accepted"),
        ("https://account.apple.com", "accepted"),
        ("https://apple.com", "issuer_mismatch"),
    ] {
        assert_eq!(
            word(&under_test.says(&under_test.changed("iss", issuer)).await),
            verdict,
            "{issuer}"
        );
    }
}

#[tokio::test]
async fn microsofts_tenants_speak_for_themselves_only() {
    let any = ProviderUnderTest::of(preset("microsoft")).await;
    let of = |tenant: &str, tid: &str| {
        let issuer = format!("https://login.microsoftonline.com/{tenant}/v2.0");
        with(any.claims(), &json!({ "tid": tid, "iss": issuer }))
    };
    let personal = "9188040d-6c67-4c5b-b112-36a304b66dad";
    let upper = TENANT.to_uppercase();
    for (tenant, tid, verdict) in [
        (TENANT, TENANT, "accepted"),
        (personal, personal, "accepted"),
        (TENANT, personal, "issuer_mismatch"),
        (TENANT, "", "issuer_mismatch"),
        (upper.as_str(), upper.as_str(), "issuer_mismatch"),
        ("common", "common", "issuer_mismatch"),
        ("{tenantid}", "{tenantid}", "issuer_mismatch"),
        ("..", "..", "issuer_mismatch"),
    ] {
        assert_eq!(
            word(&any.says(&of(tenant, tid)).await),
            verdict,
            "{tenant} {tid}"
        );
    }
    for iss in [
        "https://login.microsoftonline.com/{}/v2.0/",
        "https://login.microsoftonline.com/{}/v2.0#/v2.0",
        "http://login.microsoftonline.com/{}/v2.0",
        "https://login.microsoftonline.com.evil.example/{}/v2.0",
        "https://sts.windows.net/{}/",
    ] {
        let claims = any.changed("iss", iss.replace("{}", personal));
        assert_eq!(word(&any.says(&claims).await), "issuer_mismatch", "{iss}");
    }
    let without = with(of(TENANT, TENANT), &json!({ "tid": null }));
    assert_eq!(word(&any.says(&without).await), "issuer_mismatch");
    let other = "00000000-0000-0000-0000-000000000001";
    for (tenants, organisation, person) in [
        ("common", "accepted", "accepted"),
        ("organizations", "accepted", "issuer_mismatch"),
        ("consumers", "issuer_mismatch", "accepted"),
        (upper.as_str(), "accepted", "issuer_mismatch"),
        (&format!("{other},{TENANT}"), "accepted", "issuer_mismatch"),
        (other, "issuer_mismatch", "issuer_mismatch"),
    ] {
        let under_test =
            ProviderUnderTest::with(preset("microsoft"), &json!({ "tenants": tenants })).await;
        assert_eq!(
            word(&under_test.says(&of(TENANT, TENANT)).await),
            organisation,
            "{tenants}"
        );
        assert_eq!(
            word(&under_test.says(&of(personal, personal)).await),
            person,
            "{tenants}"
        );
    }
}

#[tokio::test]
async fn a_microsoft_key_verifies_only_tokens_of_its_issuer() {
    let under_test = ProviderUnderTest::of(preset("microsoft")).await;
    let personal = "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0";
    let keyed = |issuer: &str| with(Signer::Rsa.jwk(), &json!({ "issuer": issuer }));
    let issuer = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
    let work = with(
        under_test.claims(),
        &json!({ "tid": TENANT, "iss": issuer }),
    );
    for (issuer, of_person, of_work) in [
        (
            "https://login.microsoftonline.com/{tenantid}/v2.0",
            "accepted",
            "accepted",
        ),
        (personal, "accepted", "invalid_token"),
        (
            "https://login.microsoftonline.us/{tenantid}/v2.0",
            "invalid_token",
            "invalid_token",
        ),
    ] {
        let under_test = ProviderUnderTest::of(preset("microsoft")).await;
        under_test
            .keys
            .behave(Behaviour::Json(jwks(&[keyed(issuer)])));
        assert_eq!(
            word(&under_test.says(&under_test.claims()).await),
            of_person,
            "{issuer}"
        );
        assert_eq!(word(&under_test.says(&work).await), of_work, "{issuer}");
    }
    // Microsoft publishes one key for both issuers.
    let both = [
        personal,
        "https://login.microsoftonline.com/{tenantid}/v2.0",
    ]
    .map(keyed);
    under_test.keys.behave(Behaviour::Json(jwks(&both)));
    assert_eq!(word(&under_test.says(&work).await), "accepted");
}

#[tokio::test]
async fn only_the_log_names_an_audience_missing_from_the_settings() {
    for (name, key) in [
        ("under-test", "`providers.under-test.additional_client_ids`"),
        (
            "main",
            "`IDP_ADDITIONAL_CLIENT_IDS` / `idp.additional_client_ids`",
        ),
    ] {
        let under_test = ProviderUnderTest::of(preset("google")).await;
        let main = json!({
            "client_id": CLIENT_ID, "name": "main", "preset": "google", "tokeninfo_url": under_test.endpoint.tokeninfo_url(),
        });
        let main = Config::read(basics().merge(("idp", main))).unwrap();
        let main = Providers::new(main.providers).unwrap();
        let providers = if name == "main" {
            &main
        } else {
            &under_test.providers
        };
        let android = "4242-android.apps.googleusercontent.com\n\u{1b}[31m";
        let other = "4243-other.apps.googleusercontent.com";
        let claims = with(
            under_test.claims(),
            &json!({ "aud": android, "azp": other }),
        );
        under_test.endpoint.behave(Behaviour::Json(claims.clone()));
        let provider = providers.get(name).unwrap();
        for token in [opaque(), Signer::Rsa.token(&claims)] {
            let token = IdToken::parse(&token, provider.settings.token_format).unwrap();
            let refusal = refusal(provider.verify(&token, None, NOW).await);
            assert_eq!(refusal.reason.to_string(), "audience_mismatch");
            let log = refusal.log.clone().unwrap();
            for word in [key, "4242-android.apps.googleusercontent.com", other] {
                assert!(log.contains(word), "{word}: {log}");
            }
            assert!(
                log.chars().all(|c| c == ' ' || c.is_ascii_graphic()),
                "{log:?}"
            );
            assert!(!refusal.to_string().contains("4242") && !refusal.detail.contains("4242"));
        }
    }
}
