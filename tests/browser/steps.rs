//! Steps of a user in a window, who finds elements by their visible text. Each step waits for its
//! element.

use crate::browser::chromium::{Scripts, Window};
use crate::browser::webdriver::Element;
use crate::support::people::{ADMIN, People};
use crate::support::staff_app::StaffApp;

impl Window {
    /// Opens a window, if Chromium is installed, in which an admin has signed in, with a populated
    /// database.
    pub async fn at_work(scripts: Scripts) -> Option<(Self, StaffApp, People)> {
        let window = Self::open(scripts).await?;
        let staff_app = StaffApp::open().await;
        let people = People::arrive(&staff_app).await;
        window
            .sign_in(&format!("{}/admin", staff_app.app.url), ADMIN)
            .await;
        window.arrive("Overview").await;
        Some((window, staff_app, people))
    }

    /// Waits for the element of that `XPath`.
    pub async fn element(&self, path: &str) -> Element<'_> {
        self.client
            .find(path)
            .await
            .unwrap_or_else(|error| panic!("there is no {path}: {error}"))
    }

    /// Presses the button of that name.
    pub async fn press(&self, name: &str) {
        self.element(&format!("//button[normalize-space()='{name}']"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Follows the link of that name.
    pub async fn follow(&self, name: &str) {
        self.element(&format!("//a[normalize-space()='{name}']"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Unfolds the section of that name.
    pub async fn unfold(&self, name: &str) {
        self.element(&format!("//summary[@aria-label='{name}' or normalize-space()='{name}' or span[normalize-space()='{name}']]"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Types into the field of that label.
    pub async fn fill(&self, label: &str, text: &str) {
        let label = format!("//label[normalize-space()='{label}']");
        let field = self.element(&format!("//*[@id={label}/@for]")).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Chooses from the list of that label.
    pub async fn choose(&self, label: &str, option: &str) {
        let list = format!("//*[@id=//label[normalize-space()='{label}']/@for]");
        self.element(&format!("{list}/option[normalize-space()='{option}']"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Marks the choice of that label.
    pub async fn mark(&self, label: &str) {
        self.element(&format!("//label[normalize-space()='{label}']/input"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Gives a reason in the field of that label, and presses the button of its form.
    pub async fn act(&self, label: &str, reason: &str, button: &str) {
        self.fill(label, reason).await;
        let form = format!("//label[normalize-space()='{label}']/ancestor::form");
        self.element(&format!("{form}//button[normalize-space()='{button}']"))
            .await
            .click()
            .await
            .unwrap();
    }

    /// Searches with the field in the header.
    pub async fn search(&self, text: &str) {
        self.fill("Find a user, a request or a receipt", text).await;
        self.element("//button[@aria-label='Search']")
            .await
            .click()
            .await
            .unwrap();
    }

    /// Waits for the page of that title.
    pub async fn arrive(&self, title: &str) {
        self.element(&format!("//title[normalize-space()='{title} · Vestibule']"))
            .await;
    }

    /// Waits for a text on the page.
    pub async fn see(&self, text: &str) {
        self.element(&format!("//main[contains(normalize-space(), '{text}')]"))
            .await;
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        self.element("//body").await.text().await.unwrap()
    }

    /// The path of the page.
    pub async fn path(&self) -> String {
        self.evaluate("return location.pathname")
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Signs in at the identity provider's page, on the way to a page of ours.
    pub async fn sign_in(&self, page: &str, email: &str) {
        self.client.goto(page).await.unwrap();
        self.press("Sign in with idp").await;
        self.fill("E-mail address", email).await;
        self.press("Sign in").await;
    }
}
