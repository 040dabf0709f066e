//! `iss` (OIDC Core §3.1.3.7, 2): exactly one of the spellings configured for the path.

use serde_json::{Value, json};

use super::{assert_accepted, assert_refused, changed, without};
use crate::support::app::App;
use crate::support::token::ISSUER;

#[tokio::test(flavor = "multi_thread")]
async fn two_spellings_of_one_issuer_are_one_identity() {
    let spellings = ["accounts.google.com", "https://accounts.google.com"];
    let app = App::start_with(|figment| figment.merge(("idp.issuers", spellings))).await;
    for issuer in spellings {
        assert_accepted(&app, "idp", &changed("iss", issuer)).await;
    }
    assert_eq!(app.database.rows().await, [1, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_only_resembles_the_configured_one_is_refused() {
    let app = App::start().await;
    let bare = ISSUER.strip_prefix("https://").unwrap();
    for issuer in [
        format!("{ISSUER}/"),
        format!("http://{bare}"),
        bare.to_owned(),
        ISSUER.to_uppercase(),
        format!("{ISSUER}.evil.example"),
        format!("https://evil.example#{bare}"),
        format!("https://evil.example/{bare}"),
        format!("{ISSUER}\0"),
        format!(" {ISSUER}"),
        "https://second.example".to_owned(),
    ] {
        assert_refused(&app, "idp", &changed("iss", issuer), 401, "issuer_mismatch").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_readable_issuer_is_refused() {
    let app = App::start().await;
    for issuer in [Value::Null, json!(""), json!(1), json!(true), json!([ISSUER]), json!({ "iss": ISSUER })] {
        assert_refused(&app, "idp", &changed("iss", issuer), 401, "issuer_mismatch").await;
    }
    assert_refused(&app, "idp", &without("iss"), 401, "issuer_mismatch").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_provider_is_refused_at_another() {
    let app =
        App::start_with(|figment| figment.merge(("providers.third.client_id", "client-3.example"))).await;
    let of_main = changed("iss", ISSUER);
    let of_second = changed("iss", "https://second.example");
    for (provider, claims) in [("second", &of_main), ("idp", &of_second), ("fourth", &of_second)] {
        assert_refused(&app, provider, claims, 401, "issuer_mismatch").await;
    }
    // The client ids, too, are the path's: the right issuer does not help another's audience.
    let for_others = changed("iss", "https://third.example");
    assert_refused(&app, "third", &for_others, 401, "audience_mismatch").await;
    assert_accepted(&app, "second", &of_second).await;
}
