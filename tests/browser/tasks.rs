//! Tasks of staff with a customer on the phone, and the clicks that each takes from the overview.

use crate::browser::chromium::{Scripts, Window};

enum Step {
    /// Types into the field in the header, and presses Enter. One click.
    Search(&'static str),
    Follow(&'static str),
    Unfold(&'static str),
    Mark(&'static str),
    Press(&'static str),
    /// Types into the field of that label. No click.
    Fill(&'static str, &'static str),
    /// Chooses from the list of that label.
    Choose(&'static str, &'static str),
    /// Gives a reason and presses the button. One click.
    Act(&'static str),
    /// Waits for the result. No click.
    See(&'static str),
}
use Step::{Act, Choose, Fill, Follow, Mark, Press, Search, See, Unfold};

/// The tasks with their clicks, in an order in which no task breaks a later one.
const TASKS: [(&str, u32, &[Step]); 14] = [
    (
        "find by half a name",
        2,
        &[
            Search("Ada Love"),
            Follow("Ada Lovelace"),
            See("Can sign in."),
        ],
    ),
    (
        "find by a typing mistake",
        2,
        &[
            Search("ada.lovelace@exmaple.com"),
            Follow("Ada Lovelace"),
            See("Can sign in."),
        ],
    ),
    (
        "find by an e-mail address",
        1,
        &[Search("ada.lovelace@example.com"), See("Can sign in.")],
    ),
    (
        "say why a user cannot sign in",
        1,
        &[
            Search("chinese@example.com"),
            See("Cannot sign in: idp suspended"),
        ],
    ),
    (
        "end the session of a lost phone",
        3,
        &[
            Search("ada.lovelace@example.com"),
            Follow("End … Ada’s phone"),
            Act("End this session"),
            See("That session has ended."),
        ],
    ),
    (
        "throw out a thief",
        3,
        &[
            Search("emoji@example.com"),
            See("a thief may be in the account"),
            Follow("Sign out everywhere …"),
            Act("Sign out everywhere"),
            See("signed out everywhere"),
        ],
    ),
    (
        "say who looked at a user",
        3,
        &[
            Search("ada.lovelace@example.com"),
            Unfold("More"),
            Follow("Views by staff"),
            See("staff@example.com"),
        ],
    ),
    (
        "merge two users",
        6,
        &[
            Search("mallory@example.com"),
            Unfold("More"),
            Follow("Merge with another user …"),
            Fill("E-mail address, name, ID or subject", "ada.lovelace@"),
            Press("Search"),
            Follow("Keep ada.lovelace@example.com …"),
            Act("Merge, and delete mallory@example.com"),
            See("The two users are merged."),
        ],
    ),
    (
        "delete a user and prove it",
        4,
        &[
            Search("hebrew@example.com"),
            Unfold("More"),
            Follow("Delete …"),
            Act("Delete permanently"),
            See("Receipt of a deletion"),
        ],
    ),
    (
        "give a colleague access for a week",
        4,
        &[
            Follow("Staff"),
            Fill("E-mail address", "grace@example.com"),
            Mark("a week"),
            Press("Look at it, then give access"),
            Act("Give access"),
            See("Access is given."),
        ],
    ),
    (
        "add and revoke an API key",
        7,
        &[
            Follow("Staff"),
            Follow("API keys"),
            Fill("Name", "warehouse"),
            Press("Look at it, then add the key"),
            Act("Add the key"),
            See("This is the API key warehouse."),
            Follow("All API keys"),
            Follow("Revoke … the key warehouse"),
            Act("Revoke the key"),
            See("The API key is revoked."),
        ],
    ),
    (
        "list the users of one provider",
        4,
        &[
            Follow("Users"),
            Unfold("More filters"),
            Choose("Signs in with", "second"),
            Press("Show"),
            See("Signs in with: second"),
        ],
    ),
    (
        "see whose sign-ins are refused, and why",
        1,
        &[Follow("Token expired"), See("Reason: Token expired")],
    ),
    (
        "send again what a receiver has not accepted",
        3,
        &[
            Follow("Its messages"),
            Follow("Send all again …"),
            Act("Send again"),
            See("on the way."),
        ],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_task_takes_the_stated_clicks_with_and_without_scripts() {
    for scripts in [Scripts::On, Scripts::Off] {
        let Some((window, staff_app, _people)) = Window::at_work(scripts).await else {
            return;
        };
        let overview = format!("{}/admin", staff_app.app.url);
        for (task, expected, steps) in TASKS {
            window.client.goto(&overview).await.unwrap();
            let mut clicks = 0;
            for step in steps {
                match step {
                    Search(text) => window.search(text).await,
                    Follow(name) => window.follow(name).await,
                    Unfold(name) => window.unfold(name).await,
                    Mark(label) => window.mark(label).await,
                    Press(name) => window.press(name).await,
                    Fill(label, text) => window.fill(label, text).await,
                    Choose(label, option) => window.choose(label, option).await,
                    Act(button) => window.act("Reason", "Ticket 4711", button).await,
                    See(text) => window.see(text).await,
                }
                clicks += u32::from(!matches!(step, Fill(..) | See(_)));
            }
            assert_eq!(clicks, expected, "{task}");
        }
        window.close().await;
    }
}
