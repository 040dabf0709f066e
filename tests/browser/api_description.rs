//! The page that describes the API, with Swagger UI.

use crate::browser::chromium::{Scripts, Window};
use crate::support::app::App;

/// The brightness of the page's background, of 255.
const BRIGHTNESS: &str = "
const dress = [document.body, document.documentElement].map(part => getComputedStyle(part).backgroundColor);
const [red, green, blue] = (dress.find(colour => !colour.endsWith(', 0)')) ?? 'rgb(255, 255, 255)').match(/\\d+/g);
return Math.max(red, green, blue);
";

#[tokio::test(flavor = "multi_thread")]
async fn the_api_description_fits_a_phone_in_light_and_dark() {
    let Some(window) = Window::open(Scripts::On).await else {
        return;
    };
    let app = App::start().await;
    window.resize(390).await;
    for scheme in ["light", "dark"] {
        window.prefer(scheme).await;
        window
            .client
            .goto(&format!("{}/api/v1/docs", app.url))
            .await
            .unwrap();
        let operation = "//*[@id='operations-Session-signIn']";
        let part = |class: &str| format!("{operation}//*[contains(@class, '{class}')]");
        window
            .element(&part("opblock-summary-control"))
            .await
            .click()
            .await
            .unwrap();
        window.element(&part("responses-table")).await;
        let width = window
            .evaluate("return document.scrollingElement.scrollWidth")
            .await;
        assert_eq!(
            width, 390,
            "{scheme}: nothing sticks out, also of an operation that is open"
        );
        let brightness = window.evaluate(BRIGHTNESS).await.as_u64().unwrap();
        assert_eq!(brightness < 128, scheme == "dark", "{scheme}: {brightness}");
        assert_eq!(window.complaints().await, Vec::<String>::new(), "{scheme}");
    }
    window.close().await;
}
