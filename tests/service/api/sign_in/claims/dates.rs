//! `exp`, `iat` and `nbf` (OIDC Core §3.1.3.7, 9 and 10; RFC 7519 §4.1.5).
//!
//! The service reads the clock after the test has. So a date just inside the leeway keeps some
//! seconds of distance, and one that must be refused may lie on the boundary.

use serde_json::{Value, json};
use vestibule::domain::claims::LEEWAY;

use super::{assert_accepted, assert_refused, changed, without};
use crate::support::app::App;
use crate::support::token::now;

const HOUR: i64 = 60 * 60;
/// More than a test takes between the two clock readings.
const MARGIN: i64 = 20;

/// A date in either of the spellings that providers use.
fn spellings(seconds: i64) -> [Value; 2] {
    [json!(seconds), json!(seconds.to_string())]
}

#[test]
fn clocks_may_differ_by_a_minute_at_most() {
    assert!((MARGIN + 1..=60).contains(&LEEWAY));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_token_has_expired_is_refused() {
    let app = App::start().await;
    for date in [now() - LEEWAY, now() - LEEWAY - 1, now() - HOUR, 0, -1, i64::MIN] {
        assert_refused(&app, "idp", &changed("exp", date), 401, "token_expired").await;
    }
    let text = changed("exp", (now() - LEEWAY).to_string());
    assert_refused(&app, "idp", &text, 401, "token_expired").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_within_the_leeway_is_accepted() {
    let app = App::start().await;
    for date in [now() + 1, now(), now() - LEEWAY + MARGIN].into_iter().flat_map(spellings) {
        assert_accepted(&app, "idp", &changed("exp", date)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_in_the_far_future_is_accepted_and_one_that_no_calendar_has_is_not() {
    const YEAR_9999: i64 = 253_402_300_799;
    let app = App::start().await;
    for date in [1 << 32, YEAR_9999].into_iter().flat_map(spellings) {
        assert_accepted(&app, "idp", &changed("exp", date)).await;
    }
    assert_accepted(&app, "idp", &changed("exp", 4_000_000_000.5)).await;
    for date in [YEAR_9999 + 1, 1 << 53, i64::MAX - LEEWAY, i64::MAX].into_iter().flat_map(spellings) {
        assert_refused(&app, "idp", &changed("exp", date), 401, "invalid_token").await;
    }
    for date in [json!(u64::MAX), json!(1e30), json!(1e300)] {
        assert_refused(&app, "idp", &changed("exp", date), 401, "invalid_token").await;
    }
    for date in [json!(-1e300), json!(f64::MIN_POSITIVE)] {
        assert_refused(&app, "idp", &changed("exp", date), 401, "token_expired").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_is_missing_is_refused_but_for_not_before() {
    let app = App::start().await;
    for name in ["exp", "iat"] {
        assert_refused(&app, "idp", &without(name), 401, "invalid_token").await;
        assert_refused(&app, "idp", &changed(name, Value::Null), 401, "invalid_token").await;
    }
    assert_accepted(&app, "idp", &changed("nbf", Value::Null)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_is_no_number_of_seconds_is_refused_and_never_skipped() {
    let app = App::start().await;
    let later = now() + HOUR;
    for name in ["exp", "iat", "nbf"] {
        for date in [
            json!(""),
            json!("soon"),
            json!(format!(" {later}")),
            json!(format!("+{later}")),
            json!(format!("{later}.0")),
            json!("0x7fffffff"),
            json!("9223372036854775808"),
            json!("2038-01-19T03:14:07Z"),
            json!(true),
            json!([later]),
            json!({ "seconds": later }),
        ] {
            assert_refused(&app, "idp", &changed(name, date), 401, "invalid_token").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_the_future_is_refused() {
    let app = App::start().await;
    for name in ["iat", "nbf"] {
        for date in [now() + LEEWAY + MARGIN, now() + HOUR, i64::MAX].into_iter().flat_map(spellings) {
            assert_refused(&app, "idp", &changed(name, date), 401, "invalid_token").await;
        }
        for date in spellings(now() + LEEWAY) {
            assert_accepted(&app, "idp", &changed(name, date)).await;
        }
        let refused = app.sign_in(&changed(name, now() + 120)).await.json();
        let detail =
            format!("`{name}` is in the future: the clock of the provider or of this service is wrong");
        assert_eq!(refused["detail"], detail, "a clock, and no mistake of the app");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_older_than_a_day_is_refused_though_it_has_not_expired() {
    let app = App::start().await;
    for date in [now() - 25 * HOUR, now() - 24 * HOUR - 1, 0, i64::MIN] {
        assert_refused(&app, "idp", &changed("iat", date), 401, "token_expired").await;
    }
    assert_accepted(&app, "idp", &changed("iat", now() - 24 * HOUR + MARGIN)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_age_of_a_token_is_a_setting() {
    let app = App::start_with(|figment| figment.merge(("idp.max_token_age", HOUR))).await;
    assert_refused(&app, "idp", &changed("iat", now() - HOUR - 1), 401, "token_expired").await;
    assert_accepted(&app, "idp", &changed("iat", now() - HOUR + MARGIN)).await;
}
