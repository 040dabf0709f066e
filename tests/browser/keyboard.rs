//! Pages by keyboard alone.

use serde_json::Value;

use crate::browser::chromium::{Scripts, Window};

/// Keys as `WebDriver` writes them.
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';

/// The element with the focus: its number among all focusable elements, in the order of the page,
/// and whether its outline is visible.
const FOCUS: &str = "
const stops = [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter(stop => stop.type !== 'hidden' && (stop.type !== 'radio' || stop.checked) && stop.checkVisibility());
const stop = document.activeElement, style = getComputedStyle(stop), box = stop.getBoundingClientRect();
return {
    number: stops.indexOf(stop),
    count: stops.length,
    html: stop.outerHTML,
    outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    seen: box.left >= 0 && box.right < innerWidth + 1 && box.top > -1 && box.bottom < innerHeight + 1,
    content: document.querySelector('main').contains(stop),
}
";

/// More than the stops inside any field: a date has its day, month, year and calendar.
const PARTS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn tab_moves_the_focus_in_order_and_it_stays_visible() {
    let Some((window, staff_app, people)) = Window::at_work(Scripts::On).await else {
        return;
    };
    for width in [390, 1280] {
        window.resize(width).await;
        for path in [
            "/admin/users?q=ada".to_owned(),
            format!("/admin/users/{}", people.ada),
            "/admin/audit".into(),
            "/admin/staff".into(),
            "/admin/webhooks/shop".into(),
        ] {
            window
                .client
                .goto(&format!("{}{path}", staff_app.app.url))
                .await
                .unwrap();
            let mut focus = window.evaluate(FOCUS).await;
            let count = focus["count"].as_i64().unwrap();
            assert!(count > 5, "{path}: {focus}");
            for number in 0..count {
                for _ in 0..PARTS {
                    window.client.strike(TAB).await.unwrap();
                    focus = window.evaluate(FOCUS).await;
                    if focus["number"] != number - 1 {
                        break;
                    }
                }
                let expected = (Some(number), Some(true), Some(true));
                let found = (
                    focus["number"].as_i64(),
                    focus["outlined"].as_bool(),
                    focus["seen"].as_bool(),
                );
                assert_eq!(found, expected, "{path}, {width} px: {focus}");
            }
        }
    }
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_stop_leads_past_the_navigation() {
    let Some((window, staff_app, _people)) = Window::at_work(Scripts::Off).await else {
        return;
    };
    window
        .client
        .goto(&format!("{}/admin/users", staff_app.app.url))
        .await
        .unwrap();
    window.client.strike(TAB).await.unwrap();
    assert_eq!(
        window
            .evaluate("return document.activeElement.innerText")
            .await,
        "Skip to the content"
    );
    window.client.strike(ENTER).await.unwrap();
    window.client.strike(TAB).await.unwrap();
    let focus = window.evaluate(FOCUS).await;
    assert_eq!(focus["content"], Value::Bool(true), "{focus}");
    window.close().await;
}
