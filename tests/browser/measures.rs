//! Measurements of pages: words, borders, the header and a list, from the narrowest phone to a
//! desktop.

use serde_json::{Value, json};

use crate::browser::chromium::{Scripts, Window};

/// Words of up to twenty characters on more than one line. Chinese and Japanese may break between
/// any two.
const BROKEN: &str = r"
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), broken = [];
while (texts.nextNode()) {
    const text = texts.currentNode, holder = text.parentElement;
    const clipped = element => element && (getComputedStyle(element).clipPath !== 'none' || clipped(element.parentElement));
    if (!holder.checkVisibility() || holder.closest('svg, select, script') || clipped(holder)) continue;
    for (const word of text.data.matchAll(/[^\s\-–—\u2e80-\u9fff]+/gu)) {
        if (word[0].length > 20) continue;
        const range = new Range();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const boxes = [...range.getClientRects()].filter(box => box.width > 0);
        if (boxes.some(box => box.top > boxes[0].bottom - 2 || box.bottom < boxes[0].top + 2))
            broken.push(`${word[0]} in ${holder.outerHTML.slice(0, 120)}`);
    }
}
return broken;
";

/// Fields and buttons whose edge has too little contrast to its surroundings (WCAG 1.4.11). Buttons
/// with only an icon are left out: the icon identifies them.
const FAINT: &str = r"
const read = css => css.match(/[\d.]+/g).map(Number);
const light = css => {
    const [r, g, b] = read(css).slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
};
const opaque = css => (read(css)[3] ?? 1) > 0;
const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + .05) / (low + .05);
};
const behind = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return opaque(colour) ? colour : behind(element.parentElement);
};
const shown = [...document.querySelectorAll('input:not([type=hidden], [type=checkbox], [type=radio]), select, button, .button')];
return shown.filter(one => one.checkVisibility()).flatMap(one => {
    const style = getComputedStyle(one), around = behind(one.parentElement);
    const drawn = parseFloat(style.borderTopWidth) > 0 && opaque(style.borderTopColor);
    const icon = !one.innerText?.trim() && one.querySelector('.icon');
    const edge = drawn ? contrast(style.borderTopColor, around) : icon ? contrast(getComputedStyle(icon).stroke, around) : 1;
    return edge < 3 ? [`${edge.toFixed(2)}: ${one.outerHTML.slice(0, 120)}`] : [];
});
";

/// Elements that are useless on paper, and rows of tables that are not displayed as rows.
const ON_PAPER: &str = "
const seen = [...document.querySelectorAll('header.top, form, button, .button, .acts')].filter(one => one.checkVisibility());
const rows = [...document.querySelectorAll('main tr')].filter(row => row.checkVisibility());
const torn = rows.filter(row => getComputedStyle(row).display !== 'table-row');
return [...seen, ...torn].map(one => one.outerHTML.slice(0, 120));
";

/// The header, with its menu open.
const HEADER: &str = "
const header = document.querySelector('header'), home = header.querySelector('a');
const height = header.getBoundingClientRect().height;
header.querySelector('details').open = true;
const menu = header.querySelector('details div').getBoundingClientRect();
const targets = [...header.querySelectorAll('a, summary, button')].filter(one => one.checkVisibility());
return {
    height,
    home: home.textContent.trim() + ' ' + home.pathname,
    inside: menu.left >= 0 && menu.right <= innerWidth,
    small: targets.filter(one => {
        const box = one.getBoundingClientRect();
        return box.width < 24 || box.height < 24;
    }).map(one => one.outerHTML),
};
";

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
}

/// Returns the faults that measurements of the page in the window show, on screens of all widths,
/// light and dark, and on paper.
pub async fn measure(window: &Window) -> Vec<String> {
    let mut wrong = Vec::new();
    for width in [320, 360, 390, 768, 1280] {
        window.resize(width).await;
        let broken = window.evaluate(BROKEN).await;
        wrong.extend(texts(&broken).map(|text| format!("{width} px: torn: {text}")));
        let needed = window
            .evaluate("return document.scrollingElement.scrollWidth")
            .await;
        if needed.as_u64().unwrap() > u64::from(width) {
            wrong.push(format!("it needs {needed} px of {width}"));
        }
    }
    for scheme in ["light", "dark"] {
        window.prefer(scheme).await;
        let faint = window.evaluate(FAINT).await;
        wrong.extend(texts(&faint).map(|text| format!("{scheme}: faint: {text}")));
    }
    if window.path().await.starts_with("/admin") {
        window.resize(640).await;
        window
            .devtools("Emulation.setEmulatedMedia", json!({ "media": "print" }))
            .await;
        let found = window.evaluate(ON_PAPER).await;
        window
            .devtools("Emulation.setEmulatedMedia", json!({ "media": "" }))
            .await;
        wrong.extend(texts(&found).map(|text| format!("on paper: {text}")));
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_and_a_list_of_fifty_users_stay_short() {
    let Some((window, staff_app, _people)) = Window::at_work(Scripts::On).await else {
        return;
    };
    window
        .client
        .goto(&format!("{}/admin/users", staff_app.app.url))
        .await
        .unwrap();
    for (width, header, list) in [(320, 112, 6_500), (390, 112, 5_000), (1280, 64, 3_500)] {
        window.resize(width).await;
        let found = window.evaluate(HEADER).await;
        assert!(
            found["height"].as_f64().unwrap() <= f64::from(header),
            "{width} px: {found}"
        );
        assert_eq!(found["home"], json!("Vestibule /admin"), "{width} px");
        assert_eq!(
            (&found["inside"], &found["small"]),
            (&json!(true), &json!([])),
            "{width} px"
        );
        let height = window
            .evaluate("return document.scrollingElement.scrollHeight")
            .await
            .as_u64()
            .unwrap();
        assert!(
            height <= list,
            "{width} px: the list of fifty is {height} px long"
        );
    }
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_torn_or_faint_is_found() {
    let Some(window) = Window::open(Scripts::On).await else {
        return;
    };
    let page = "data:text/html,<body style='background:white'><p style='width:3em;overflow-wrap:anywhere'>facebookpages</p>\
                <p style='width:3em'>two words</p><button style='border:1px solid silver'>x</button>\
                <button style='border:1px solid black'>y</button>";
    window.client.goto(page).await.unwrap();
    let broken = window.evaluate(BROKEN).await;
    let faint = window.evaluate(FAINT).await;
    assert!(
        texts(&broken).count() == 1 && broken[0].as_str().unwrap().starts_with("facebookpages"),
        "{broken}"
    );
    assert!(
        texts(&faint).count() == 1 && faint[0].as_str().unwrap().contains("silver"),
        "{faint}"
    );
    window.close().await;
}
