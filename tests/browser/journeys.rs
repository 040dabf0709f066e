//! Journeys of staff through the pages, from the sign-in to the sign-out.

use serde_json::json;

use crate::browser::axe::Axe;
use crate::browser::chromium::{Scripts, Window};
use crate::support::process::eventually;

const BOTH: [Scripts; 2] = [Scripts::On, Scripts::Off];

#[tokio::test(flavor = "multi_thread")]
async fn a_window_runs_scripts_only_where_they_are_on() {
    for (scripts, expected) in [(Scripts::On, "on"), (Scripts::Off, "off")] {
        let Some(window) = Window::open(scripts).await else {
            return;
        };
        let page = "data:text/html,<title>off</title><script>document.title='on'</script>";
        window.client.goto(page).await.unwrap();
        assert_eq!(window.client.title().await.unwrap(), expected);
        window.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_needs_a_reason_and_sign_out_hides_pages() {
    for scripts in BOTH {
        let Some((window, staff_app, people)) = Window::at_work(scripts).await else {
            return;
        };
        let page = format!(
            "{}/admin/users/{}/end-sessions",
            staff_app.app.url, people.ada
        );
        window.client.goto(&page).await.unwrap();
        window.act("Reason", "", "Sign out everywhere").await;
        assert!(
            window.text().await.contains("What will happen"),
            "the browser asks for a reason"
        );
        window
            .act("Reason", "Lost the phone", "Sign out everywhere")
            .await;
        window.see("Reason: Lost the phone").await;

        window.unfold("Your account: staff@example.com").await;
        window.press("Sign out").await;
        window.arrive("Sign in").await;
        window.client.back().await.unwrap();
        window.arrive("Sign in").await;
        window.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_use_the_browsers_zone_or_the_chosen_zone() {
    for (scripts, unchosen) in [(Scripts::On, "GMT+5:30"), (Scripts::Off, "UTC")] {
        let Some((window, staff_app, people)) = Window::at_work(scripts).await else {
            return;
        };
        window
            .devtools(
                "Emulation.setTimezoneOverride",
                json!({ "timezoneId": "Asia/Kolkata" }),
            )
            .await;
        let page = format!("{}/admin/users/{}", staff_app.app.url, people.ada);
        window.client.goto(&page).await.unwrap();
        window.see(unchosen).await;
        window.unfold("Your account: staff@example.com").await;
        window.follow("Time zone").await;
        window.choose("Show times in", "Asia/Tokyo").await;
        window.press("Save").await;
        window.see("Times are now shown in Asia/Tokyo.").await;
        window.client.goto(&page).await.unwrap();
        window.see("JST").await;
        assert!(!window.text().await.contains(unchosen));
        window.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_action_nobody_is_kept_out() {
    let Some(axe) = Axe::find() else { return };
    let Some((window, staff_app, people)) = Window::at_work(Scripts::On).await else {
        return;
    };
    let mut wrong = Vec::new();
    let mut judge = async |state: &str| {
        let found = axe
            .judge(&window)
            .await
            .into_iter()
            .map(|what| format!("{state}: {what}"));
        wrong.extend(found);
    };
    window
        .client
        .goto(&format!("{}/admin/keys", staff_app.app.url))
        .await
        .unwrap();
    window.fill("Name", "warehouse").await;
    window.mark("reader: read").await;
    window.press("Look at it, then add the key").await;
    window.arrive("Add the API key warehouse").await;
    judge("a question").await;
    window.act("Reason", "New backend", "Add the key").await;
    window.arrive("New API key").await;
    judge("a new key").await;
    let copy = window
        .evaluate("return document.querySelector('.secret + .copy')?.ariaLabel")
        .await;
    assert!(
        copy.as_str()
            .is_some_and(|label| label.starts_with("Copy vst_")),
        "{copy}"
    );

    window
        .client
        .goto(&format!("{}/admin/users/{}", staff_app.app.url, people.ada))
        .await
        .unwrap();
    window.unfold("Add a note").await;
    window.fill("Note", "Calls back on Monday").await;
    window
        .fill("Link to a ticket, or nothing", "ftp://tickets.example/1")
        .await;
    window.press("Save the note").await;
    window.see("Nothing was saved.").await;
    judge("a mistake").await;
    window
        .fill("Link to a ticket, or nothing", "https://tickets.example/1")
        .await;
    window.press("Save the note").await;
    window.see("The note is saved.").await;
    judge("a note").await;
    window.follow("Sign out …").await;
    window
        .act("Reason", "Lost the phone", "Sign out everywhere")
        .await;
    window.see("up to 15 more minutes").await;
    judge("a sign-out").await;
    window.search("ada.lovelace@exmaple.com").await;
    window.see("Did you mean").await;
    judge("a suggestion").await;
    window.close().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `true` if the word runs from left to right in the item that contains it.
const UPRIGHT: &str = "
const [word] = arguments;
const item = [...document.querySelectorAll('main li')].find(item => item.textContent.includes(word));
const texts = document.createTreeWalker(item, NodeFilter.SHOW_TEXT), range = new Range();
while (!texts.nextNode().data.includes(word));
const text = texts.currentNode;
const left = at => {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().left;
};
const at = text.data.indexOf(word);
return left(at) < left(at + word.length - 1);
";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_turns_no_sentence_round() {
    let Some((window, staff_app, people)) = Window::at_work(Scripts::On).await else {
        return;
    };
    let [long, turned] = ["long", "hebrew"].map(|name| people.odd(name));
    for (from, into) in [(long, turned), (turned, long)] {
        let preview = format!("{}/admin/users/{from}/merge?into={into}", staff_app.app.url);
        window.client.goto(&preview).await.unwrap();
        let upright = window
            .client
            .execute(UPRIGHT, vec!["dropped".into()])
            .await
            .unwrap();
        assert_eq!(upright, true, "{}", window.text().await);
    }
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_take_the_list_of_users_home_as_a_file() {
    for scripts in BOTH {
        let Some((window, _staff_app, _people)) = Window::at_work(scripts).await else {
            return;
        };
        let folder = own_folder();
        let download = json!({ "behavior": "allow", "downloadPath": folder });
        window
            .devtools("Browser.setDownloadBehavior", download)
            .await;
        window.follow("Users").await;
        window.arrive("Users").await;
        window.unfold("Export …").await;
        window
            .act(
                "Reason for the export",
                "Asked by the auditor",
                "Export as CSV",
            )
            .await;
        // Chromium creates an empty file of that name, and replaces it at the end of the download.
        let text = eventually("there is a file", async || {
            let files = std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().path());
            let file = files
                .into_iter()
                .find(|file| file.extension().is_some_and(|end| end == "csv"));
            let text = file
                .map(|file| std::fs::read_to_string(file).unwrap())
                .unwrap_or_default();
            Some(text).filter(|text| !text.is_empty())
        })
        .await;
        assert!(
            text.starts_with("\u{feff}id,") && text.contains("ada.lovelace@example.com"),
            "{text:.200}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
        window.close().await;
    }
}

/// A folder of its own.
fn own_folder() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("vestibule-download-{}", uuid::Uuid::now_v7()))
}
