//! What staff come for, from the sign-in to the sign-out.

use fantoccini::Locator;

use crate::chromium::{Scripts, Window};
use crate::support::desk::Desk;
use crate::support::people::{ADMIN, People};

/// Signs in at the identity provider's page.
pub async fn sign_in(window: &Window, base: &str, email: &str) {
    window.client.goto(&format!("{base}/admin")).await.unwrap();
    press(window, "Sign in with idp").await;
    fill(window, "E-mail address", email).await;
    press(window, "Sign in").await;
    arrive(window, "Overview").await;
}

/// Presses the button of that name.
pub async fn press(window: &Window, name: &str) {
    let button = format!("//button[normalize-space()='{name}']");
    window.client.find(Locator::XPath(&button)).await.unwrap().click().await.unwrap();
}

/// Follows the link of that name.
pub async fn follow(window: &Window, name: &str) {
    let link = format!("//a[normalize-space()='{name}']");
    window.client.find(Locator::XPath(&link)).await.unwrap().click().await.unwrap();
}

/// Types into the field of that label.
pub async fn fill(window: &Window, label: &str, text: &str) {
    let field = format!("//*[@id=//label[normalize-space()='{label}']/@for]");
    let field = window.client.find(Locator::XPath(&field)).await.unwrap();
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

/// Gives a reason in the field of that label, and presses the button of its form.
pub async fn act(window: &Window, label: &str, reason: &str, button: &str) {
    fill(window, label, reason).await;
    let button =
        format!("//label[normalize-space()='{label}']/ancestor::form//button[normalize-space()='{button}']");
    window.client.find(Locator::XPath(&button)).await.unwrap().click().await.unwrap();
}

/// Waits for the page of that title.
pub async fn arrive(window: &Window, title: &str) {
    let title = format!("//title[normalize-space()='{title} · Vestibule']");
    window.client.find(Locator::XPath(&title)).await.unwrap();
}

/// Waits for a text on the page.
pub async fn see(window: &Window, text: &str) {
    let text = format!("//main[contains(normalize-space(), '{text}')]");
    window.client.find(Locator::XPath(&text)).await.unwrap();
}

/// What can be read on the page.
pub async fn text(window: &Window) -> String {
    window.client.find(Locator::Css("body")).await.unwrap().text().await.unwrap()
}

/// The path of the page.
pub async fn place(window: &Window) -> String {
    window.client.current_url().await.unwrap().path().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_find_a_person_and_sign_her_out_with_scripts() {
    look_after(Scripts::On).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_find_a_person_and_sign_her_out_without_scripts() {
    look_after(Scripts::Off).await;
}

async fn look_after(scripts: Scripts) {
    let Some(window) = Window::open(scripts).await else { return };
    let script = "data:text/html,<title>off</title><script>document.title='on'</script>";
    window.client.goto(script).await.unwrap();
    let expected = if scripts == Scripts::On { "on" } else { "off" };
    assert_eq!(window.client.title().await.unwrap(), expected);

    let desk = Desk::open().await;
    let people = People::arrive(&desk).await;
    sign_in(&window, &desk.app.url, ADMIN).await;

    fill(&window, "Find somebody by e-mail address, name, id or subject", "Ada Love").await;
    press(&window, "Search").await;
    see(&window, "What was found").await;
    assert!(!text(&window).await.contains("mallory@example.com"));
    follow(&window, "ada.lovelace@example.com").await;
    arrive(&window, "ada.lovelace@example.com").await;
    assert_eq!(place(&window).await, format!("/admin/users/{}", people.ada));
    see(&window, "Ada’s phone (Android 16)").await;

    let why = "Why sign this person out everywhere?";
    act(&window, why, "", "Sign out everywhere").await;
    assert!(text(&window).await.contains("Ada’s phone (Android 16)"), "the browser asks for a reason");
    act(&window, why, "Lost the phone", "Sign out everywhere").await;
    see(&window, "Nowhere at the moment.").await;
    see(&window, "Reason: Lost the phone").await;

    press(&window, "Sign out").await;
    arrive(&window, "Sign in").await;
    window.client.back().await.unwrap();
    arrive(&window, "Sign in").await;
    window.close().await;
}
