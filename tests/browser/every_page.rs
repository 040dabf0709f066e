//! Every page in Chromium, in the widths of a phone and of a desktop, light and dark: it is
//! accessible, nothing overflows or is torn, and a screenshot is kept for people to look at.

use std::path::Path;

use serde_json::json;

use crate::browser::axe::Axe;
use crate::browser::chromium::{Scripts, Window};
use crate::browser::measures::measure;
use crate::support::pages::{self, Address, Content, Viewer};
use crate::support::people::People;
use crate::support::staff_app::StaffApp;

/// The folder of the screenshots.
const PICTURES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/screenshots");

#[tokio::test(flavor = "multi_thread")]
async fn pages_pass_accessibility_and_layout_checks_on_every_medium() {
    let Some(axe) = Axe::find() else { return };
    let Some(window) = Window::open(Scripts::On).await else {
        return;
    };
    let staff_app = StaffApp::open().await;
    let people = People::arrive(&staff_app).await;
    let pages = pages::all(&staff_app, &people).await;
    // A zone with a long abbreviation.
    window
        .devtools(
            "Emulation.setTimezoneOverride",
            json!({ "timezoneId": "Asia/Kolkata" }),
        )
        .await;
    let mut wrong = Vec::new();
    let mut zoned = 0;
    for viewer in [Viewer::Anyone, Viewer::Support, Viewer::Admin] {
        window.client.delete_all_cookies().await.unwrap();
        if let Some(email) = viewer.email() {
            window
                .sign_in(&format!("{}/admin", staff_app.app.url), email)
                .await;
            window.arrive("Overview").await;
        }
        for page in pages
            .iter()
            .filter(|page| page.content == Content::Page && page.viewer == viewer)
        {
            for (width, scheme) in [
                (390, "light"),
                (390, "dark"),
                (1280, "light"),
                (1280, "dark"),
            ] {
                window.resize(width).await;
                window.prefer(scheme).await;
                let look = format!("{}-{width}-{scheme}", page.name);
                let found = judge(&axe, &window, &staff_app.app.url, page, width).await;
                wrong.extend(found.into_iter().map(|what| format!("{look}: {what}")));
                window
                    .photograph(&Path::new(PICTURES).join(format!("{look}.png")))
                    .await;
            }
            let has_zone = window
                .evaluate("return document.body.innerText.includes('GMT+5:30')")
                .await;
            zoned += u32::from(has_zone == json!(true));
            let found = measure(&window).await.into_iter();
            wrong.extend(found.map(|what| format!("{}: {what}", page.name)));
        }
    }
    window.close().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(zoned > 10, "{zoned} pages have times in that zone");
}

/// Finds content that overflows its box, cells that are torn apart on a phone, and texts of
/// pictures that are cut off, too small, or that overlap.
const MISPLACED: &str = "
const boxes = [document.scrollingElement, ...document.querySelectorAll('body *:not(input, select, thead *, svg, svg *)')];
const wide = boxes.filter(box => box.clientWidth && box.scrollWidth > box.clientWidth + 1
    && getComputedStyle(box).overflowX === 'visible');
const torn = [...document.querySelectorAll('td, tbody th')].filter(cell => getComputedStyle(cell).display === 'grid'
    && [...cell.childNodes].filter(part => part.textContent.trim()).length > 1);
const bad = [...document.querySelectorAll('svg')].flatMap(svg => {
    const picture = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
    return texts.filter(text => {
        const box = text.getBoundingClientRect(), others = texts.filter(other => other !== text);
        return box.left < picture.left || box.right > picture.right + 1 || box.height < 11
            || others.map(other => other.getBoundingClientRect()).some(other =>
                box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);
    });
});
return [...wide, ...torn, ...bad].map(box => `misplaced: ${box.outerHTML.slice(0, 200)}`);
";

/// Returns the faults of a page.
async fn judge(axe: &Axe, window: &Window, base: &str, page: &Address, width: u32) -> Vec<String> {
    window.complaints().await;
    window
        .client
        .goto(&format!("{base}{}", page.path))
        .await
        .unwrap();
    let mut wrong = axe.judge(window).await;
    let misplaced = window.evaluate(MISPLACED).await;
    wrong.extend(
        misplaced
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string),
    );
    let needed = window
        .evaluate("return document.scrollingElement.scrollWidth")
        .await
        .as_u64()
        .unwrap();
    if needed > u64::from(width) {
        wrong.push(format!("it needs {needed} px"));
    }
    // Chromium also complains about the page's own status.
    let complaints = window.complaints().await.into_iter();
    wrong.extend(complaints.filter(|text| {
        page.status == 200 || !text.contains(&format!("a status of {}", page.status))
    }));
    wrong
}
