//! `verify = "both"`: the service verifies the signature, then asks the endpoint, and both must
//! agree.

use serde_json::json;

use super::presets::{PRESETS, Preset};
use super::under_test::{NOW, ProviderUnderTest, class, word};
use crate::support::provider::Behaviour;
use crate::support::signer::Signer;

fn doubting() -> impl Iterator<Item = Preset> {
    PRESETS
        .into_iter()
        .filter(|preset| preset.asks && preset.signs())
}

#[tokio::test]
async fn two_answers_that_differ_in_whom_they_mean_are_none() {
    for preset in doubting().filter(|preset| !preset.introspects()) {
        let under_test = ProviderUnderTest::with(
            preset,
            &json!({ "additional_client_ids": "android.example" }),
        )
        .await;
        let token = Signer::Rsa.token(&under_test.claims());
        for (name, value) in [("sub", "somebody-else"), ("aud", "android.example")] {
            under_test.vouch(&under_test.changed(name, value));
            assert_eq!(
                class(&under_test.verify(&token).await),
                "disagreement",
                "{} {name}",
                preset.name
            );
        }
        under_test.vouch(&under_test.without("sub"));
        assert_eq!(
            class(&under_test.verify(&token).await),
            "disagreement",
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn two_spellings_of_one_thing_agree() {
    for preset in doubting() {
        let under_test = ProviderUnderTest::of(preset).await;
        let token = Signer::Rsa.token(&under_test.claims());
        let mut spelt = under_test.claims();
        spelt["aud"] = json!([spelt["aud"]]);
        spelt["exp"] = spelt["exp"].to_string().into();
        if preset.is_of("google") {
            spelt["iss"] = "accounts.google.com".into();
        }
        under_test.vouch(&spelt);
        let verdict = under_test.verify(&token).await;
        assert_eq!(word(&verdict), "accepted", "{}: {verdict:?}", preset.name);
    }
}

#[tokio::test]
async fn neither_answer_stands_in_for_the_other() {
    for preset in doubting() {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims();
        let token = Signer::Rsa.token(&claims);
        // The endpoint would accept anything; the signature is wrong.
        under_test.vouch(&claims);
        let forged = Signer::OtherRsa.token_with(&Signer::Rsa.header(), &claims);
        assert_eq!(
            word(&under_test.verify(&forged).await),
            "invalid_token",
            "{}",
            preset.name
        );
        // Correctly signed, but too old: the endpoint is not asked either.
        let late = under_test.changed("iat", NOW - 48 * 3600);
        assert_eq!(
            word(&under_test.verify(&Signer::Rsa.token(&late)).await),
            "token_expired",
            "{}",
            preset.name
        );
        assert_eq!(under_test.endpoint.calls(), 0, "{}", preset.name);
        // The signature is right; the endpoint says no, or nothing.
        under_test.endpoint.behave(Behaviour::status(400));
        assert_eq!(
            word(&under_test.verify(&token).await),
            "invalid_token",
            "{}",
            preset.name
        );
        under_test.endpoint.behave(Behaviour::status(503));
        assert_eq!(
            word(&under_test.verify(&token).await),
            "unavailable",
            "{}",
            preset.name
        );
        under_test.vouch(&claims);
        assert_eq!(
            word(&under_test.verify(&token).await),
            "accepted",
            "{}",
            preset.name
        );
    }
}
