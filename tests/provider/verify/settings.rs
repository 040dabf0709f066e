//! Combinations of settings, and each preset's defaults with only a client id.

use figment::providers::{Format, Toml};
use serde_json::{Value, json};
use vestibule::config::{self, Config, Verify};

use super::presets::CLIENT_ID;
use super::under_test::{basics, read};
use crate::support::token::with;

#[test]
fn the_documented_example_is_accepted() {
    let page = include_str!("../../../docs/configuration.md").lines();
    let example: Vec<_> = page
        .skip_while(|line| !line.starts_with("    [default.providers."))
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .collect();
    let figment = basics()
        .merge(("idp.client_id", "google.example"))
        .merge(Toml::string(&example.join("\n")).nested());
    let config = Config::read(figment).unwrap();
    let names: Vec<_> = config.providers.keys().map(String::as_str).collect();
    assert_eq!(names, ["idp", "staff"]);
    let staff = config.providers["staff"]
        .discovery
        .as_ref()
        .unwrap()
        .as_str();
    assert_eq!(
        staff,
        "https://id.example.com/realms/people/.well-known/openid-configuration"
    );
}

fn settings(preset: &str, more: &Value) -> Value {
    with(json!({ "preset": preset, "client_id": CLIENT_ID }), more)
}

fn sound(preset: &str, more: &Value) -> config::Provider {
    read(&settings(preset, more))
        .unwrap()
        .providers
        .remove("under-test")
        .unwrap()
}

#[test]
fn a_preset_and_a_client_id_are_enough() {
    let line = "https://api.line.me/oauth2/v2.1";
    for (name, tokeninfo, keys) in [
        (
            "google",
            "https://oauth2.googleapis.com/tokeninfo",
            "https://www.googleapis.com/oauth2/v3/certs",
        ),
        ("line", &format!("{line}/verify"), &format!("{line}/certs")),
        ("apple", "", "https://appleid.apple.com/auth/keys"),
        (
            "microsoft",
            "",
            "https://login.microsoftonline.com/common/discovery/v2.0/keys",
        ),
        (
            "facebook",
            "",
            "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
        ),
    ] {
        let provider = sound(name, &json!({}));
        let verify = if tokeninfo.is_empty() {
            Verify::Jwks
        } else {
            Verify::Tokeninfo
        };
        assert_eq!(provider.verify, verify, "{name}");
        assert_eq!(
            provider.tokeninfo_url.as_ref().map_or("", url::Url::as_str),
            tokeninfo,
            "{name}"
        );
        assert_eq!(provider.jwks_url.as_ref().unwrap().as_str(), keys, "{name}");
    }
    let tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47";
    let keys = sound("microsoft", &json!({ "tenants": tenant }))
        .jwks_url
        .unwrap();
    assert_eq!(
        keys.as_str(),
        format!("https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys")
    );
}

#[test]
fn what_is_set_goes_before_what_is_known() {
    let line = json!({
        "tokeninfo_url": "https://proxy.example/verify", "issuers": "https://other.example",
        "nonce": "both_or_neither", "token_format": "any",
    });
    let provider = sound("line", &line);
    assert_eq!(
        provider.tokeninfo_url.as_ref().unwrap().as_str(),
        "https://proxy.example/verify"
    );
    assert!(
        provider.issuers.include("https://other.example")
            && !provider.issuers.include("https://access.line.me")
    );
    let google = sound(
        "google",
        &json!({ "verify": "both", "jwks_url": "https://proxy.example/keys" }),
    );
    assert_eq!(
        google.jwks_url.unwrap().as_str(),
        "https://proxy.example/keys"
    );
}

#[test]
fn conflicting_settings_are_rejected_with_their_key_and_a_remedy() {
    let issuer = "https://id.example.com/realms/people";
    for (preset, more, key) in [
        ("gogle", json!({}), "preset"),
        ("Google", json!({}), "preset"),
        ("google", json!({ "verify": "signature" }), "verify"),
        (
            "google",
            json!({ "verify": "jwks", "tokeninfo_url": "https://x.example/" }),
            "tokeninfo_url",
        ),
        (
            "google",
            json!({ "jwks_url": "https://x.example/" }),
            "jwks_url",
        ),
        (
            "google",
            json!({ "verify": "jwks", "jwks_url": "http://x.example/" }),
            "jwks_url",
        ),
        (
            "google",
            json!({ "verify": "jwks", "token_format": "any" }),
            "token_format",
        ),
        ("google", json!({ "issuer": issuer }), "issuer"),
        ("google", json!({ "tenants": "common" }), "tenants"),
        ("google", json!({ "token_auth": "none" }), "token_auth"),
        (
            "line",
            json!({ "allowed_domains": "corp.example" }),
            "allowed_domains",
        ),
        ("line", json!({ "link": "authoritative" }), "link"),
        ("apple", json!({ "verify": "tokeninfo" }), "verify"),
        (
            "apple",
            json!({ "verify": "both", "tokeninfo_url": "https://x.example/" }),
            "verify",
        ),
        (
            "apple",
            json!({ "tokeninfo_url": "https://x.example/" }),
            "tokeninfo_url",
        ),
        ("microsoft", json!({ "verify": "tokeninfo" }), "verify"),
        ("microsoft", json!({ "tenants": "everybody" }), "tenants"),
        (
            "microsoft",
            json!({ "tenants": "common,organizations" }),
            "tenants",
        ),
        ("facebook", json!({ "verify": "both" }), "verify"),
        ("rfc7662", json!({}), "issuers"),
        ("rfc7662", json!({ "issuers": issuer }), "tokeninfo_url"),
        (
            "rfc7662",
            json!({ "issuers": issuer, "tokeninfo_url": "https://x.example/" }),
            "client_secret",
        ),
        (
            "rfc7662",
            json!({ "issuers": issuer, "tokeninfo_url": "https://x.example/?token=x", "client_secret": "hush" }),
            "tokeninfo_url",
        ),
        (
            "rfc7662",
            json!({ "issuers": issuer, "verify": "jwks" }),
            "jwks_url",
        ),
        ("keycloak", json!({}), "issuer"),
        ("keycloak", json!({ "issuer": "id.example.com" }), "issuer"),
        (
            "keycloak",
            json!({ "issuer": "http://id.example.com" }),
            "issuer",
        ),
        (
            "keycloak",
            json!({ "issuer": "https://id.example.com/?realm=people" }),
            "issuer",
        ),
        (
            "keycloak",
            json!({ "issuer": issuer, "verify": "tokeninfo" }),
            "client_secret",
        ),
        (
            "oidc",
            json!({ "issuer": issuer, "verify": "both" }),
            "client_secret",
        ),
        (
            "oidc",
            json!({ "issuer": format!("{issuer}/.well-known/openid-configuration") }),
            "issuer",
        ),
        (
            "oidc",
            json!({ "issuer": issuer, "nonce": "sometimes" }),
            "nonce",
        ),
        (
            "oidc",
            json!({ "issuer": issuer, "nonce_form": "either" }),
            "nonce_form",
        ),
        (
            "oidc",
            json!({ "issuer": issuer, "clients": { "foreign": { "nonce": "always" } } }),
            "clients",
        ),
        (
            "oidc",
            json!({ "issuer": issuer, "clients": { CLIENT_ID: { "link": "never" } } }),
            "clients",
        ),
    ] {
        let error = read(&settings(preset, &more))
            .expect_err(preset)
            .to_string();
        assert!(error.starts_with("configuration: "), "{error}");
        assert!(
            error.contains(&format!("providers.under-test.{key}")),
            "{preset} {more}: {error}"
        );
        assert!(
            error.contains("; ") && !error.contains("hush"),
            "{preset} {more}: {error}"
        );
    }
}
