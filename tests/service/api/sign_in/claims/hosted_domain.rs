//! `hd`: which organisation manages the account. The address's suffix says nothing.

use serde_json::{Value, json};

use super::{assert_accepted, assert_refused, changed};
use crate::support::app::App;

#[tokio::test(flavor = "multi_thread")]
async fn an_account_outside_the_allowed_domains_is_refused() {
    let app =
        App::start_with(|figment| figment.merge(("idp.allowed_domains", "example.com,Corp.example"))).await;
    for domain in [
        json!("evil.example"),
        json!("sub.example.com"),
        json!("example.com.evil.example"),
        json!("example.com "),
        json!("example.com,corp.example"),
        json!(""),
        json!(["example.com"]),
        json!(true),
        Value::Null,
    ] {
        assert_refused(&app, "idp", &changed("hd", domain), 403, "domain_not_allowed").await;
    }
    let without_domain = changed("email", "ada@example.com");
    assert_refused(&app, "idp", &without_domain, 403, "domain_not_allowed").await;
    for domain in ["example.com", "Example.COM", "corp.example", "CORP.example"] {
        assert_accepted(&app, "idp", &changed("hd", domain)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_allowed_domains_every_account_may_sign_in() {
    let app = App::start().await;
    for domain in [json!("anywhere.example"), json!(7), Value::Null] {
        assert_accepted(&app, "idp", &changed("hd", domain)).await;
    }
}
