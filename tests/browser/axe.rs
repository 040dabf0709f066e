//! axe-core, which finds barriers for people with disabilities (WCAG 2.2 A and AA, and its own best
//! practices).

use std::fs;

use serde_json::{Value, json};

use crate::browser::chromium::{Scripts, Window};
use crate::browser::tools::npm;

const TAGS: [&str; 7] = [
    "wcag2a",
    "wcag2aa",
    "wcag21a",
    "wcag21aa",
    "wcag22a",
    "wcag22aa",
    "best-practice",
];

/// Rules of these standards that axe-core turns off by default.
const ASKED: [&str; 1] = ["target-size"];

/// Rules that axe-core must have checked, or its verdict means nothing.
const NEEDED: [&str; 4] = [
    "color-contrast",
    "document-title",
    "html-has-lang",
    "target-size",
];

const RUN: &str = "
const [options, done] = arguments;
axe.run(document, options).then(done, error => done({ failed: String(error) }));
";

/// Finds text (WCAG 1.4.3) and shapes (1.4.11) of pictures with too little contrast to the
/// picture's background. axe-core does not check the colours of pictures.
const PICTURES: &str = "
const read = css => {
    const colour = new axe.commons.color.Color();
    colour.parseString(css);
    return colour;
};
const behind = element => {
    const colour = read(element ? getComputedStyle(element).backgroundColor : 'white');
    return colour.alpha ? colour : behind(element.parentElement);
};
return [...document.querySelectorAll('svg text, svg rect, svg circle, svg path')].flatMap(shape => {
    const { fill: paint } = getComputedStyle(shape);
    // Shapes without a fill (lines) and transparent fills have no contrast to measure.
    const fill = paint === 'none' ? undefined : read(paint);
    if (!fill?.alpha) return [];
    const contrast = axe.commons.color.getContrast(behind(shape.closest('svg')), fill);
    return contrast < (shape.tagName === 'text' ? 4.5 : 3) ? [`contrast of ${contrast}: ${shape.outerHTML}`] : [];
});
";

/// The library, as a script.
pub struct Axe(String);

impl Axe {
    pub fn find() -> Option<Self> {
        Some(Self(
            fs::read_to_string(npm("axe-core/axe.min.js")?).unwrap(),
        ))
    }

    /// Returns the faults of the page in the window. The driver runs the script, so the page's
    /// policies do not apply.
    pub async fn judge(&self, window: &Window) -> Vec<String> {
        window.client.execute(&self.0, Vec::new()).await.unwrap();
        let rules: serde_json::Map<_, _> = ASKED
            .iter()
            .map(|rule| ((*rule).to_owned(), json!({ "enabled": true })))
            .collect();
        let options =
            json!({ "runOnly": TAGS, "rules": rules, "resultTypes": ["violations", "incomplete"] });
        let verdict = window
            .client
            .execute_async(RUN, vec![options])
            .await
            .unwrap();
        let rules = |kind: &str| {
            verdict[kind]
                .as_array()
                .cloned()
                .unwrap_or_else(|| panic!("{verdict}"))
        };
        let looked_at: Vec<Value> = ["violations", "passes", "incomplete", "inapplicable"]
            .into_iter()
            .flat_map(rules)
            .collect();
        for needed in NEEDED {
            assert!(
                looked_at.iter().any(|rule| rule["id"] == needed),
                "axe-core did not look at {needed}"
            );
        }
        let found = ["violations", "incomplete"]
            .into_iter()
            .flat_map(rules)
            .flat_map(|rule| found(&rule));
        let in_pictures = window.evaluate(PICTURES).await;
        let in_pictures = in_pictures
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string);
        found.chain(in_pictures).collect()
    }
}

/// A broken rule, once for each element. Colours of pictures are left out.
fn found(rule: &Value) -> Vec<String> {
    let told = |node: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!(
            "{}: {} ({})",
            text(&rule["id"]),
            text(&node["failureSummary"]),
            node["target"]
        )
    };
    let in_picture = |node: &&Value| {
        rule["id"] == "color-contrast" && node["html"].as_str().unwrap().starts_with("<text")
    };
    rule["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|node| !in_picture(node))
        .map(told)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_people_out_is_found() {
    let Some(axe) = Axe::find() else { return };
    let Some(window) = Window::open(Scripts::On).await else {
        return;
    };
    let page = "data:text/html,<main><h1>x</h1><p style='color:silver'>hardly to be read</p>\
                <svg width='9' height='9'><rect fill='silver' width='9' height='9'/></svg></main>";
    window.client.goto(page).await.unwrap();
    let found = axe.judge(&window).await;
    for rule in [
        "color-contrast",
        "document-title",
        "html-has-lang",
        "\"contrast of 1.",
    ] {
        assert!(
            found.iter().any(|what| what.starts_with(rule)),
            "{rule}: {found:?}"
        );
    }
    window.close().await;
}
