//! Signatures (RFC 7515, RFC 8725), each wrong in one way, with every preset that verifies them.

use serde_json::{Value, json};

use super::presets::{PRESETS, Preset, preset};
use super::under_test::{NOW, ProviderUnderTest, refusal, word};
use crate::support::provider::Behaviour;
use crate::support::signer::{Signer, base64, hs256, jwks, signed};
use crate::support::token::{self, with};

fn signing() -> impl Iterator<Item = Preset> {
    PRESETS.into_iter().filter(Preset::signs)
}

/// A provider that publishes these keys, and whose endpoint accepts every token.
async fn publishing(preset: Preset, keys: &[Value]) -> ProviderUnderTest {
    let under_test = ProviderUnderTest::of(preset).await;
    under_test.keys.behave(Behaviour::Json(jwks(keys)));
    under_test.vouch(&under_test.claims());
    under_test
}

#[tokio::test]
async fn every_accepted_algorithm_is_verified() {
    for preset in signing() {
        let under_test = publishing(preset, &Signer::ALL.map(Signer::jwk)).await;
        for signer in Signer::ALL {
            let verdict = under_test.verify(&signer.token(&under_test.claims())).await;
            assert_eq!(
                word(&verdict),
                "accepted",
                "{} {signer:?}: {verdict:?}",
                preset.name
            );
        }
        assert_eq!(
            under_test.keys.calls(),
            1,
            "{}: and the keys are fetched once",
            preset.name
        );
    }
}

#[tokio::test]
async fn a_signature_by_another_key_is_refused_and_shown_to_nobody() {
    for preset in signing() {
        let under_test = publishing(preset, &Signer::ALL.map(Signer::jwk)).await;
        let claims = under_test.claims();
        for (signer, named) in [
            (Signer::OtherRsa, Signer::Rsa),
            (Signer::Rsa, Signer::OtherRsa),
            (Signer::OtherEc, Signer::Ec),
            (Signer::Pss, Signer::Rsa),
            (Signer::Rsa, Signer::Pss),
            (Signer::Ec, Signer::Rsa),
            (Signer::Ed, Signer::Ec),
            (Signer::Ec, Signer::Ec384),
            (Signer::Ec384, Signer::Ec521),
            (Signer::Rsa, Signer::Rsa512),
            (Signer::Pss512, Signer::Pss384),
            (Signer::Ec521, Signer::Rsa512),
        ] {
            let verdict = under_test
                .verify(&signer.token_with(&named.header(), &claims))
                .await;
            assert_eq!(
                word(&verdict),
                "invalid_token",
                "{} {signer:?}: {verdict:?}",
                preset.name
            );
            // The header names the right algorithm, but another key.
            let header = signer.header_with(&json!({ "kid": named.kid() }));
            let verdict = under_test
                .verify(&signer.token_with(&header, &claims))
                .await;
            assert_eq!(
                word(&verdict),
                "invalid_token",
                "{} {signer:?}: {verdict:?}",
                preset.name
            );
        }
        // The header names the right key, but another algorithm.
        for signer in Signer::ALL {
            let others = Signer::ALL
                .map(Signer::alg)
                .into_iter()
                .filter(|alg| *alg != signer.alg());
            for alg in others {
                let header = signer.header_with(&json!({ "alg": alg }));
                let verdict = under_test
                    .verify(&signer.token_with(&header, &claims))
                    .await;
                assert_eq!(
                    word(&verdict),
                    "invalid_token",
                    "{} {signer:?} {alg}",
                    preset.name
                );
                let detail = refusal(verdict).detail;
                assert_eq!(
                    detail, "`alg` does not match the key's algorithm",
                    "{signer:?} {alg}"
                );
            }
        }
        assert_eq!(
            under_test.endpoint.calls(),
            0,
            "{}: a forgery is sent to the provider",
            preset.name
        );
    }
}

#[tokio::test]
async fn the_public_key_is_no_shared_secret() {
    for preset in signing() {
        let under_test = publishing(preset, &[Signer::Rsa.jwk()]).await;
        let claims = under_test.claims().to_string();
        let jwk = Signer::Rsa.jwk();
        let secrets = [
            Signer::Rsa.public_der(),
            format!(
                "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
                base64(Signer::Rsa.public_der())
            )
            .into_bytes(),
            jwk.to_string().into_bytes(),
            jwk["n"].as_str().unwrap().as_bytes().to_vec(),
            Vec::new(),
        ];
        for secret in secrets {
            for alg in ["HS256", "RS256", "hs256"] {
                let header = json!({ "alg": alg, "kid": "rsa-1", "typ": "JWT" }).to_string();
                let token = signed(&header, &claims, |message| hs256(&secret, message));
                assert_eq!(
                    word(&under_test.verify(&token).await),
                    "invalid_token",
                    "{} {alg}",
                    preset.name
                );
            }
        }
        let secret_published =
            json!({ "kty": "oct", "k": base64("secret"), "kid": "oct-1", "alg": "HS256" });
        let under_test = publishing(preset, &[secret_published, Signer::Rsa.jwk()]).await;
        let header = json!({ "alg": "HS256", "kid": "oct-1", "typ": "JWT" }).to_string();
        let token = signed(&header, &claims, |message| hs256(b"secret", message));
        assert_ne!(
            word(&under_test.verify(&token).await),
            "accepted",
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn a_header_that_asks_for_more_than_a_signature_is_refused() {
    let preset = preset("apple");
    let under_test = publishing(preset, &[Signer::Rsa.jwk(), Signer::Ec.jwk()]).await;
    let claims = under_test.claims();
    let with = |name: &str, value: Value| {
        let mut header = Signer::Rsa.header();
        header[name] = value;
        header
    };
    for header in [
        with("crit", json!(["exp"])),
        with("crit", json!([])),
        with("crit", json!(null)),
        with("typ", json!("JOSE")),
        with("typ", json!(7)),
        with("kid", json!(1)),
        with("kid", json!(["rsa-1"])),
        with("alg", json!(null)),
        with("alg", json!("HS512")),
        with("alg", json!("ES256K")),
        with("alg", json!("Ed448")),
        with("alg", json!("rs256")),
        with("alg", json!(["RS256"])),
        with("alg", json!("")),
        with("alg", json!("RSA-OAEP")),
    ] {
        let verdict = under_test
            .verify(&Signer::Rsa.token_with(&header, &claims))
            .await;
        assert_eq!(word(&verdict), "invalid_token", "{header}: {verdict:?}");
    }
    assert_eq!(under_test.calls(), 0, "nobody had to be asked");
    for header in [
        with("typ", json!("jwt")),
        with("typ", json!(null)),
        with("x", json!("y")),
        json!({ "alg": "RS256", "kid": "rsa-1" }),
        // A key in the token's header is ignored.
        with("jwk", Signer::OtherRsa.jwk()),
        with("jku", json!("http://127.0.0.1:1/keys")),
    ] {
        let verdict = under_test
            .verify(&Signer::Rsa.token_with(&header, &claims))
            .await;
        assert_eq!(word(&verdict), "accepted", "{header}: {verdict:?}");
        let verdict = under_test
            .verify(&Signer::OtherRsa.token_with(&header, &claims))
            .await;
        assert_eq!(word(&verdict), "invalid_token", "{header}: {verdict:?}");
    }
    assert_eq!(under_test.calls(), 1);
}

#[tokio::test]
async fn a_key_is_chosen_by_kid_unless_there_is_just_one() {
    let under_test = publishing(
        preset("apple"),
        &[Signer::Rsa.jwk(), Signer::OtherRsa.jwk()],
    )
    .await;
    let claims = under_test.claims();
    let none = json!({ "kid": null });
    let nameless = |signer: Signer| signer.token_with(&signer.header_with(&none), &claims);
    assert_eq!(
        word(&under_test.verify(&nameless(Signer::Rsa)).await),
        "invalid_token"
    );

    let under_test = publishing(preset("apple"), &[with(Signer::Rsa.jwk(), &none)]).await;
    assert_eq!(
        word(&under_test.verify(&nameless(Signer::Rsa)).await),
        "accepted"
    );
    assert_eq!(
        word(&under_test.verify(&nameless(Signer::OtherRsa)).await),
        "invalid_token"
    );
    // A published key without `kid` does not match a token that names one.
    let verdict = under_test
        .verify_at(&Signer::Rsa.token(&claims), NOW + 10)
        .await;
    assert_eq!(word(&verdict), "invalid_token");

    // Several keys share a name: each of them may have signed, but no other key.
    let shared = json!({ "kid": "shared" });
    let keys =
        [Signer::Rsa, Signer::OtherRsa, Signer::Ec].map(|signer| with(signer.jwk(), &shared));
    let under_test = publishing(preset("apple"), &keys).await;
    for (signer, verdict) in [
        (Signer::Rsa, "accepted"),
        (Signer::OtherRsa, "accepted"),
        (Signer::Ec, "accepted"),
        (Signer::OtherEc, "invalid_token"),
    ] {
        let token = signer.token_with(&signer.header_with(&shared), &claims);
        assert_eq!(
            word(&under_test.verify(&token).await),
            verdict,
            "{signer:?}"
        );
    }
}

#[tokio::test]
async fn keys_for_other_uses_and_of_other_kinds_are_left_out() {
    let with = |name: &str, value: Value| {
        let mut jwk = Signer::Rsa.jwk();
        jwk[name] = value;
        jwk
    };
    let without = |name: &str| token::with(Signer::Rsa.jwk(), &json!({ name: null }));
    let good = Signer::Ec.jwk();
    for odd in [
        token::with(
            Signer::OtherEc.jwk(),
            &json!({ "crv": "secp256k1", "kid": "rsa-1" }),
        ),
        with("use", json!("enc")),
        with("use", json!(7)),
        with("key_ops", json!(["encrypt"])),
        with("key_ops", json!("verify")),
        with("alg", json!("RS1")),
        with("alg", json!("RSA-OAEP")),
        with("alg", json!("ES256")),
        with("alg", json!("HS256")),
        with("kty", json!("EC")),
        with("kty", json!("unknown")),
        with("kty", json!(null)),
        with("n", json!("AQAB")),
        with("n", json!("")),
        with("n", json!("+/==")),
        with("n", json!(base64(vec![0xff; 1025]))),
        with("e", json!("")),
        with("e", json!("AA")),
        with("e", json!("Ag")),
        with("e", json!("AQ")),
        with("e", json!(base64([0xff; 9]))),
        json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA", "kid": "rsa-1" }),
        // Each curve has one algorithm, and a point of one curve is not on another.
        token::with(
            Signer::Ec384.jwk(),
            &json!({ "alg": "ES256", "kid": "rsa-1" }),
        ),
        token::with(Signer::Ec.jwk(), &json!({ "alg": "ES384", "kid": "rsa-1" })),
        token::with(
            Signer::Ec384.jwk(),
            &json!({ "crv": "P-256", "alg": null, "kid": "rsa-1" }),
        ),
        token::with(
            Signer::Ec521.jwk(),
            &json!({ "crv": "P-384", "alg": null, "kid": "rsa-1" }),
        ),
        token::with(Signer::Ed.jwk(), &json!({ "alg": "ES512", "kid": "rsa-1" })),
        json!({ "kty": "EC", "crv": "P-256", "x": base64([1; 32]), "y": base64([1; 32]), "kid": "rsa-1" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": base64([1; 32]), "kid": "rsa-1" }),
        json!({ "kty": "OKP", "crv": "Ed25519", "x": base64([1; 31]), "kid": "rsa-1" }),
        json!("rsa-1"),
        json!(null),
        json!([]),
        json!({}),
    ] {
        let under_test = publishing(preset("apple"), &[odd.clone(), good.clone()]).await;
        let claims = under_test.claims();
        let verdict = under_test.verify(&Signer::Rsa.token(&claims)).await;
        assert_eq!(word(&verdict), "invalid_token", "{odd}: {verdict:?}");
        assert_eq!(
            word(&under_test.verify(&Signer::Ec.token(&claims)).await),
            "accepted",
            "{odd}"
        );
        // A set with only this key is as useless as no set.
        let under_test = publishing(preset("apple"), std::slice::from_ref(&odd)).await;
        assert_eq!(
            word(&under_test.verify(&Signer::Rsa.token(&claims)).await),
            "unavailable",
            "{odd}"
        );
    }
    for usual in [
        without("use"),
        with("key_ops", json!(["verify"])),
        with("x5c", json!(["x"])),
        without("alg"),
    ] {
        let under_test = publishing(preset("apple"), std::slice::from_ref(&usual)).await;
        assert_eq!(
            word(
                &under_test
                    .verify(&Signer::Rsa.token(&under_test.claims()))
                    .await
            ),
            "accepted",
            "{usual}"
        );
    }
}

#[tokio::test]
async fn a_key_without_alg_verifies_every_algorithm_of_its_type() {
    let rsa = [
        Signer::Rsa,
        Signer::Rsa384,
        Signer::Rsa512,
        Signer::Pss,
        Signer::Pss384,
        Signer::Pss512,
    ];
    for (published, signers) in [
        (Signer::Rsa, &rsa[..]),
        (Signer::Ec384, &[Signer::Ec384]),
        (Signer::Ec521, &[Signer::Ec521]),
        (Signer::Ed, &[Signer::Ed]),
    ] {
        let bare = with(published.jwk(), &json!({ "alg": null }));
        let under_test = publishing(preset("oidc"), &[bare]).await;
        for signer in Signer::ALL {
            let header = signer.header_with(&json!({ "kid": published.kid() }));
            let verdict = under_test
                .verify(&signer.token_with(&header, &under_test.claims()))
                .await;
            let expected = if signers.contains(&signer) {
                "accepted"
            } else {
                "invalid_token"
            };
            assert_eq!(
                word(&verdict),
                expected,
                "{published:?} {signer:?}: {verdict:?}"
            );
        }
    }
    // `Ed25519` is the name of RFC 9864.
    let header = Signer::Ed.header_with(&json!({ "alg": "Ed25519" }));
    let under_test = publishing(preset("oidc"), &[Signer::Ed.jwk()]).await;
    assert_eq!(
        word(
            &under_test
                .verify(&Signer::Ed.token_with(&header, &under_test.claims()))
                .await
        ),
        "accepted"
    );
}

#[tokio::test]
async fn an_rsa_key_verifies_both_paddings_unless_it_names_one() {
    let bare = with(Signer::Rsa.jwk(), &json!({ "alg": null }));
    for preset in signing() {
        for (jwk, expected) in [
            (bare.clone(), "accepted"),
            (Signer::Rsa.jwk(), "invalid_token"),
        ] {
            let under_test = publishing(preset, &[jwk]).await;
            let header = json!({ "alg": "PS256", "kid": "rsa-1" });
            let verdict = under_test
                .verify(&Signer::Pss.token_with(&header, &under_test.claims()))
                .await;
            assert_eq!(word(&verdict), expected, "{}: {verdict:?}", preset.name);
            assert_eq!(
                word(
                    &under_test
                        .verify(&Signer::Rsa.token(&under_test.claims()))
                        .await
                ),
                "accepted"
            );
            // A signature with one padding fails as the other.
            let verdict = under_test
                .verify(&Signer::Rsa.token_with(&header, &under_test.claims()))
                .await;
            assert_eq!(word(&verdict), "invalid_token", "{}", preset.name);
        }
    }
}

#[tokio::test]
async fn the_log_names_a_rejected_algorithm_and_the_accepted_ones() {
    let under_test = publishing(preset("oidc"), &[Signer::Rsa.jwk()]).await;
    let header = Signer::Rsa.header_with(&json!({ "alg": "HS512\n" }));
    let refusal = refusal(
        under_test
            .verify(&Signer::Rsa.token_with(&header, &under_test.claims()))
            .await,
    );
    let log = refusal.log.unwrap();
    let accepted = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA";
    assert!(log.contains("HS512?") && log.contains(accepted), "{log}");
    assert!(!refusal.detail.contains("HS512"), "{}", refusal.detail);
}
