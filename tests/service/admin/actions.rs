//! Changes that staff make to users: the preview, the form, the effect and the audit.

use reqwest::Method;
use url::form_urlencoded;
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;

use super::{person, staff_app_with};
use crate::support::app::Answer;
use crate::support::process::eventually;
use crate::support::raw::Raw;
use crate::support::staff_app::{Form, StaffApp};

const STAFF: &str = "staff@example.com";

/// Returns the text of a page without its markup.
fn text(page: &str) -> String {
    let mut text = String::new();
    for part in page.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    text.replace("&#x27;", "'")
}

/// Returns all tables except the tables about staff, without the events that record views by staff.
async fn everything(staff_app: &StaffApp) -> String {
    staff_app
        .app
        .database
        .everything(&["user_viewed", "users_viewed", "staff_signed_in"])
        .await
}

/// Signs in two users: the first with two identities, the second with one.
async fn two_people(staff_app: &StaffApp) -> [Answer; 3] {
    let ada = person(
        staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "ada-1"),
            ("name", "Ada"),
        ],
    )
    .await;
    let second = person(staff_app, &[("email", "ada@example.com"), ("sub", "ada-2")]).await;
    assert_eq!(second.user_id(), ada.user_id());
    let grace = person(
        staff_app,
        &[
            ("email", "grace@example.com"),
            ("sub", "grace-1"),
            ("name", "Grace"),
        ],
    )
    .await;
    [ada, second, grace]
}

/// Returns the path of the preview of each change to the first user, and the kind of its event.
fn previews(ada: &Answer, second: &Answer, grace: &Answer) -> [(String, &'static str); 4] {
    let user = format!("/admin/users/{}", ada.user_id());
    let identity = format!("{user}/identities/{}", second.identity_id());
    [
        (
            format!("{identity}/move?to={}", grace.user_id()),
            "identity_moved",
        ),
        (format!("{identity}/unlink"), "identity_unlinked"),
        (
            format!("{user}/merge?into={}", grace.user_id()),
            "users_merged",
        ),
        (format!("{user}/delete"), "user_deleted"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn two_users_are_found_shown_and_merged() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, _, grace] = two_people(&staff_app).await;
    let from = ada.user_id();
    let into = grace.user_id();
    let page = browser.get(&format!("/admin/users/{from}")).await.text;
    let merge = format!("/admin/users/{from}/merge");
    assert!(page.contains(&format!("href=\"{merge}\"")), "{page}");

    let found = browser.get(&format!("{merge}?q=GRACE")).await.text;
    let preview = format!("{merge}?into={into}");
    let reverse = format!("/admin/users/{into}/merge?into={from}&amp;back={from}");
    assert!(
        found.contains(&format!(
            "<a href=\"{preview}\">Keep <bdi>grace@example.com</bdi> …</a>"
        )),
        "{found}"
    );
    assert!(
        found.contains(&format!(
            "<a href=\"{reverse}\">Keep <bdi>ada@example.com</bdi> …</a>"
        )),
        "{found}"
    );
    for nobody in ["ada@example.com", "nobody"] {
        let found = browser.get(&format!("{merge}?q={nobody}")).await.text;
        assert!(
            found.contains("No other user was found"),
            "{nobody}: {found}"
        );
    }

    let page = browser.get(&preview).await.text;
    assert!(page.contains(&format!("href=\"{reverse}\"")), "{page}");
    let told = text(&page);
    for sentence in [
        "The idp identity ada-1 (ada@example.com) signs in as grace@example.com from now on.",
        "The idp identity ada-2 (ada@example.com) signs in as grace@example.com from now on.",
        "2 sessions of ada@example.com end. For up to 15 more minutes, other services may accept access tokens that were already issued.",
        "The e-mail address stays grace@example.com. No user has ada@example.com any more",
        "The name stays Grace; Ada is dropped.",
        &format!("The user {from} is deleted."),
    ] {
        assert!(told.contains(sentence), "{sentence}: {told}");
    }

    let form = Form::of(&page).with("reason", "the same person, by phone");
    let done = form.send(&mut browser).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let landed = browser.get(done.header("location").unwrap()).await.text;
    assert!(landed.contains("The two users are merged."), "{landed}");
    assert!(
        landed.contains(&format!("href=\"/admin/audit?user={from}\"")),
        "what happened before is a link away"
    );
    let audit = browser.get(&format!("/admin/audit?user={from}")).await.text;
    for expected in [
        "Merged into another user",
        "Reason: the same person, by phone",
        "by staff@example.com",
    ] {
        assert!(audit.contains(expected), "{expected}: {audit}");
    }
    assert!(
        audit.contains(&format!("href=\"/admin/users/{into}\"")),
        "{audit}"
    );
    assert_eq!(
        form.send(&mut browser).await.status,
        404,
        "and once is enough"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_shown_and_a_merge_says_what_becomes_of_them() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, _, grace] = two_people(&staff_app).await;
    let merge = format!(
        "/admin/users/{}/merge?into={}",
        ada.user_id(),
        grace.user_id()
    );
    for (from, into, told, silent) in [
        (None, None, "", "claims"),
        (None, Some(r#"{"a": 1}"#), "", "claims"),
        (Some(r#"{"a": 1}"#), Some(r#"{"a": 1}"#), "", "claims"),
        (
            Some(r#"{"a": "<b>"}"#),
            None,
            r#"Access tokens of grace@example.com get the claims {"a":"<b>"}."#,
            "are dropped",
        ),
        (
            Some(r#"{"a": 1, "c": 3}"#),
            Some(r#"{"a": 2, "c": 3}"#),
            r#"The claims {"a":2,"c":3} stay; {"a":1} are dropped."#,
            "get the claims",
        ),
        (
            Some(r#"{"a": 1, "c": 3}"#),
            Some(r#"{"a": 2, "b": 2}"#),
            r#"get the claims {"c":3}."#,
            r#""b":2} are"#,
        ),
    ] {
        for (user, claims) in [(&ada, from), (&grace, into)] {
            let set = sqlx::query("UPDATE users SET claims = $2::jsonb WHERE id = $1::uuid");
            set.bind(user.user_id())
                .bind(claims)
                .execute(&staff_app.app.database.pool)
                .await
                .unwrap();
            let page = browser
                .get(&format!("/admin/users/{}", user.user_id()))
                .await
                .text;
            let escaped = |text: &str| {
                text.replace('"', "&quot;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;")
            };
            let claims: Option<serde_json::Map<_, _>> =
                claims.map(|claims| serde_json::from_str(claims).unwrap());
            assert_eq!(
                page.contains("<h2 id=\"claims\">"),
                claims.is_some(),
                "{page}"
            );
            for (name, value) in claims.iter().flatten() {
                let shown = escaped(&format!("{name}: {value}"));
                assert!(text(&page).contains(&shown), "{shown}: {page}");
            }
        }
        let page = text(&browser.get(&merge).await.text);
        let page = page
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">");
        assert!(
            page.contains(told) && !page.contains(silent),
            "{told}: {page}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_moved_and_the_preview_says_what_it_means() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, grace] = two_people(&staff_app).await;
    let path = format!(
        "/admin/users/{}/identities/{}/move",
        ada.user_id(),
        second.identity_id()
    );
    let page = browser
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await
        .text;
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    let found = browser.get(&format!("{path}?q=grace")).await.text;
    assert!(
        text(&found).contains("The idp identity ada-2 (ada@example.com) is linked"),
        "{found}"
    );
    let preview = format!("{path}?to={}", grace.user_id());
    assert!(found.contains(&format!("href=\"{preview}\"")), "{found}");

    let page = browser.get(&preview).await.text;
    let told = text(&page);
    for sentence in [
        "The idp identity ada-2 (ada@example.com) signs in as grace@example.com from now on, no longer as ada@example.com.",
        "One session opened with it ends. For up to",
        "The e-mail addresses of both users stay as they are.",
        "ada@example.com keeps the e-mail address ada@example.com. Another identity with this address signs in as",
    ] {
        assert!(told.contains(sentence), "{sentence}: {told}");
    }
    let done = Form::of(&page)
        .with("reason", "hers")
        .send(&mut browser)
        .await;
    let landing = format!("/admin/users/{}?done=move", grace.user_id());
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, Some(landing.as_str())),
        "{}",
        done.text
    );
    let landed = browser.get(&landing).await.text;
    assert!(
        landed.contains("An identity was moved here from another user"),
        "{landed}"
    );
    // The last change disables a user whose address is unverified.
    let nobody = person(
        &staff_app,
        &[
            ("email", "new@example.com"),
            ("verified", "false"),
            ("sub", "new"),
        ],
    )
    .await;
    let disable = format!("/admin/users/{}/disable", nobody.user_id());
    assert_eq!(browser.confirm(&disable, "x").await.status, 303);
    let path = format!(
        "/admin/users/{}/identities/{}/move",
        ada.user_id(),
        ada.identity_id()
    );
    let told = text(
        &browser
            .get(&format!("{path}?to={}", nobody.user_id()))
            .await
            .text,
    );
    for sentence in [
        "This is the last identity of ada@example.com.",
        "new@example.com is disabled. Sign-ins with the identity will be refused.",
        "The e-mail address new@example.com was never verified.",
    ] {
        assert!(told.contains(sentence), "{sentence}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_unlinked_unless_nobody_could_come_back() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, _] = two_people(&staff_app).await;
    let page_of = |answer: &Answer| {
        format!(
            "/admin/users/{}/identities/{}/unlink",
            answer.user_id(),
            answer.identity_id()
        )
    };
    let page = browser.get(&page_of(&second)).await.text;
    let told = text(&page);
    assert!(
        told.contains(
            "The idp identity ada-2 (ada@example.com) no longer signs in as ada@example.com."
        ),
        "{told}"
    );
    assert!(!told.contains("This is the last identity"), "{told}");
    let back =
        "the next sign-in with the identity links it to this user again. To prevent that, move it";
    assert!(told.contains(back), "{told}");
    let done = Form::of(&page)
        .with("reason", "sold the phone")
        .send(&mut browser)
        .await;
    assert_eq!(done.status, 303, "{}", done.text);
    let page = browser.get(&page_of(&ada)).await.text;
    assert!(
        !page.contains("name=\"reason\""),
        "the proof of the address goes with its identity: {page}"
    );
    staff_app
        .app
        .database
        .run("UPDATE users SET email_vouched = email_verified")
        .await;
    let page = browser.get(&page_of(&ada)).await.text;
    assert!(
        text(&page).contains(
            "The only way back to this user is a sign-in with the e-mail address ada@example.com"
        ),
        "{page}"
    );
    let done = Form::of(&page).with("reason", "x").send(&mut browser).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let back = person(
        &staff_app,
        &[("email", "ada@example.com"), ("sub", "ada-1")],
    )
    .await;
    assert_eq!(
        (back.outcome().as_str(), back.user_id()),
        ("linked", ada.user_id())
    );

    let only = person(
        &staff_app,
        &[
            ("email", "new@example.com"),
            ("verified", "false"),
            ("sub", "new"),
        ],
    )
    .await;
    let page = browser.get(&page_of(&only)).await;
    assert_eq!(
        page.status, 200,
        "it is explained before anybody asks for it"
    );
    assert!(!page.text.contains("name=\"reason\""), "{}", page.text);
    let before = everything(&staff_app).await;
    let refused = browser.submit(&page_of(&only), &[("reason", "x")]).await;
    assert_eq!(refused.status, 409);
    for page in [page.text, refused.text] {
        assert!(
            page.contains("neither a backend nor an import vouches"),
            "{page}"
        );
    }
    assert_eq!(everything(&staff_app).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_says_what_is_special_about_its_users() {
    const HELD: &str =
        "UPDATE identities SET held_at = now(), reported_at = NULL WHERE subject = 'ada-2'";
    const SAME: &str = "SELECT 1";
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, grace] = two_people(&staff_app).await;
    let [moving, unlinking, merging, deleting] =
        previews(&ada, &second, &grace).map(|(path, _)| path);
    let releasing = unlinking.replace("/unlink", "/release");
    let ending = format!(
        "/admin/users/{}/sessions/{}/end",
        ada.user_id(),
        Uuid::max()
    );
    for (change, path, told) in [
        (SAME, &ending, "This session has ended already."),
        (
            "UPDATE identities SET reported_at = now(), reported_reason = 'hijacking' WHERE subject = 'ada-2'",
            &unlinking,
            "The identity is suspended, which is forgotten with it.",
        ),
        (
            SAME,
            &deleting,
            "A provider has reported an account of this user hijacked or disabled",
        ),
        (
            SAME,
            &merging,
            "and stays suspended. It cannot sign in before its provider reports the account",
        ),
        (
            SAME,
            &moving,
            "The identity stays suspended. It cannot sign in before its provider reports",
        ),
        (
            HELD,
            &moving,
            "The identity stays suspended. It cannot sign in before an admin releases it.",
        ),
        (
            SAME,
            &releasing,
            "The idp identity ada-2 (ada@example.com) signs in as ada@example.com again.",
        ),
        (SAME, &releasing, "Release it only if it is the user's."),
        (
            "UPDATE users SET disabled_at = now() WHERE email = 'ada@example.com'",
            &deleting,
            "ada@example.com is disabled now. After the deletion",
        ),
        (
            SAME,
            &merging,
            "ada@example.com is disabled, so grace@example.com will be disabled, too.",
        ),
        (SAME, &merging, "One session of grace@example.com ends."),
        (
            "UPDATE users SET disabled_at = now(), email = nullif(email, 'grace@example.com'),
                              email_verified = email = 'ada@example.com'",
            &merging,
            "Grace is disabled and stays disabled.",
        ),
        (
            SAME,
            &merging,
            "Grace gets the e-mail address ada@example.com (verified).",
        ),
        (
            SAME,
            &moving,
            "At the next sign-in with it, Grace gets its e-mail address",
        ),
        (
            "DELETE FROM identities WHERE subject = 'ada-1'",
            &moving,
            "ada@example.com is no longer verified: only this identity proves it.",
        ),
        (
            "DELETE FROM identities",
            &merging,
            "ada@example.com has no identity, so there is nothing to move.",
        ),
        (
            "UPDATE users SET email = NULL, email_verified = false, name = NULL",
            &deleting,
            "The user ",
        ),
    ] {
        staff_app.app.database.run(change).await;
        let page = text(&browser.get(path).await.text);
        assert!(page.contains(told), "{change}: {told}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_delete_a_user_and_the_audit_records_the_deletion() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, _, _] = two_people(&staff_app).await;
    let path = format!("/admin/users/{}/delete", ada.user_id());
    let page = browser.get(&path).await.text;
    let told = text(&page);
    for sentence in [
        "ada@example.com is deleted permanently",
        "The idp identity ada-2 (ada@example.com) is unlinked. The next sign-in with it creates a new user.",
        "2 sessions of ada@example.com end",
        "A deletion cannot be undone.",
        "Write nothing personal into it",
    ] {
        assert!(told.contains(sentence), "{sentence}: {told}");
    }
    let done = Form::of(&page)
        .with("reason", "ticket 17")
        .send(&mut browser)
        .await;
    assert_eq!(done.status, 303, "{}", done.text);
    let receipt = done.header("location").unwrap().to_owned();
    let number = receipt
        .strip_prefix("/admin/deletions/")
        .expect("a receipt");
    let landed = text(&browser.get(&receipt).await.text);
    for expected in [
        number,
        &ada.user_id(),
        STAFF,
        "ticket 17",
        "Linked identities: 2. Active sessions: 2.",
        "This has finished.",
    ] {
        assert!(landed.contains(expected), "{expected}: {landed}");
    }
    let audit = browser
        .get(&format!("/admin/audit?request={number}"))
        .await
        .text;
    for expected in [
        "Deleted by staff",
        "by staff@example.com",
        "Reason: ticket 17",
        &receipt,
    ] {
        assert!(audit.contains(expected), "{expected}: {audit}");
    }
    assert_eq!(audit.matches("<strong>").count(), 1, "{audit}");
    for page in [landed, audit] {
        assert!(!page.contains("ada@example.com"), "{page}");
    }
    assert_eq!(
        browser
            .get(&format!("/admin/users/{}", ada.user_id()))
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_exists_only_for_deletions_and_shows_unfinished_erasure() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let event = async |kind: &str| -> String {
        value!(
            &staff_app.app.database.pool,
            "SELECT id::text FROM events WHERE kind = $1",
            kind
        )
    };
    for number in [
        event("user_created").await,
        Uuid::max().to_string(),
        "x".to_owned(),
    ] {
        let answer = browser.get(&format!("/admin/deletions/{number}")).await;
        assert_eq!(answer.status, 404, "{number}");
    }
    assert_eq!(
        staff_app
            .app
            .delete(&ada.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    let receipt = format!("/admin/deletions/{}", event("user_deleted").await);
    let until = "SELECT ((created_at AT TIME ZONE 'UTC')::date + 400)::text FROM events WHERE kind = 'user_deleted'";
    let until: String = staff_app.app.database.value(until).await;
    let finished = text(&browser.get(&receipt).await.text);
    assert!(
        finished.contains(&format!("This record of the deletion, until {until}.")),
        "{finished}"
    );
    assert!(
        finished.contains("Deleted bythe user") && finished.contains("This has finished."),
        "{finished}"
    );
    let pending = "INSERT INTO pending_erasures (field, value, requested_at)
                   SELECT 'email', 'x', created_at FROM events WHERE kind = 'user_deleted'";
    staff_app.app.database.run(pending).await;
    let page = text(&browser.get(&receipt).await.text);
    assert!(page.contains("This has not finished yet."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_not_sound_changes_nothing() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    staff_app
        .appoint("support@example.com", Role::Support)
        .await;
    let mut support = staff_app.signed_in("support@example.com").await;
    let [ada, second, grace] = two_people(&staff_app).await;
    let [(path, kind), ..] = previews(&ada, &second, &grace);
    let form = Form::of(&browser.get(&path).await.text).with("reason", "x");
    let before = everything(&staff_app).await;
    for (what, form, status) in [
        ("no token", form.clone().without("csrf"), 403),
        (
            "another session's token",
            form.clone().with("csrf", &support.csrf().await),
            403,
        ),
        ("no reason", form.clone().without("reason"), 400),
        ("a blank reason", form.clone().with("reason", " \t "), 400),
    ] {
        let answer = form.send(&mut browser).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text);
        assert!(answer.text.starts_with("<!doctype html>"), "{what}");
        assert_eq!(everything(&staff_app).await, before, "{what}");
    }
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Content-Type", "text/plain"),
    ] {
        let request = browser
            .request(Method::POST, &form.action)
            .form(&form.fields);
        let mut request = request.build().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let answer = reqwest::Client::new().execute(request).await.unwrap();
        assert_eq!(answer.status(), 403, "{name}: {value}");
        assert_eq!(everything(&staff_app).await, before, "{name}: {value}");
    }
    assert_eq!(form.send(&mut browser).await.status, 303);
    let done = "SELECT count(*) FROM events WHERE kind = $1 AND actor = $2";
    let done: i64 = value!(&staff_app.app.database.pool, done, kind, STAFF);
    assert!(done > 0, "the sound one does it");
    let page = support
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await;
    assert_eq!(page.status, 200);
    for control in ["/merge", "/delete", "/move", "/unlink", "/disable"] {
        assert!(
            !page.text.contains(control),
            "support sees no {control}: {}",
            page.text
        );
    }
    let page = support.get("/admin/keys").await.text;
    assert!(
        !page.contains("/admin/keys/"),
        "support changes no keys: {page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_changed_since_it_was_looked_at_is_shown_again() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, grace] = two_people(&staff_app).await;
    for (path, kind) in previews(&ada, &second, &grace) {
        person(
            &staff_app,
            &[
                ("email", "ada@example.com"),
                ("sub", "ada-1"),
                ("name", "Ada"),
            ],
        )
        .await;
        let form = Form::of(&browser.get(&path).await.text).with("reason", "as <b>agreed");
        let end = format!("/admin/users/{}/end-sessions", ada.user_id());
        assert_eq!(
            browser.confirm(&end, "meanwhile").await.status,
            303,
            "{kind}"
        );
        let before = everything(&staff_app).await;
        for unseen in [
            form.clone().without("seen"),
            form.clone().with("seen", &"x".repeat(43)),
        ] {
            assert_eq!(unseen.send(&mut browser).await.status, 409, "{kind}");
        }
        let stale = form.send(&mut browser).await;
        assert_eq!(stale.status, 409, "{kind}");
        assert_eq!(everything(&staff_app).await, before, "{kind}");
        assert!(
            stale.text.contains("has changed since you looked"),
            "{kind}: {}",
            stale.text
        );
        let again = Form::of(&stale.text);
        let reason = again
            .fields
            .iter()
            .find(|(name, _)| name == "reason")
            .unwrap();
        assert_eq!(
            reason.1, "as &lt;b&gt;agreed",
            "{kind}: nobody types it twice"
        );
        assert_eq!(again.action, form.action, "{kind}");
        assert_ne!(again.fields, form.fields, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_disables_deletes_or_merges_away_themselves() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let me = person(&staff_app, &[("email", STAFF), ("sub", "me")]).await;
    let other = person(
        &staff_app,
        &[("email", "other@example.com"), ("sub", "other")],
    )
    .await;
    let user = |answer: &Answer| format!("/admin/users/{}", answer.user_id());
    let me_id = me.user_id();
    let other_id = other.user_id();
    let before = everything(&staff_app).await;
    for action in ["disable", "delete", "merge"] {
        let form = [("reason", "x"), ("into", other_id.as_str())];
        let refused = browser
            .submit(&format!("{}/{action}", user(&me)), &form)
            .await;
        assert_eq!(refused.status, 409, "{action}");
        assert!(
            refused.text.contains("This is your own account"),
            "{action}: {}",
            refused.text
        );
        assert_eq!(everything(&staff_app).await, before, "{action}");
    }
    for path in [
        format!("{}/delete", user(&me)),
        format!("{}/merge?into={}", user(&me), other_id),
    ] {
        let page = browser.get(&path).await.text;
        assert!(
            page.contains("This is your own account") && !page.contains("name=\"reason\""),
            "{path}: {page}"
        );
    }
    // A merge must not disable the member's own user either: merging a disabled user into it would.
    // If that user is disabled already, the merge is allowed.
    let disabled = browser
        .confirm(&format!("{}/disable", user(&other)), "x")
        .await;
    assert_eq!(
        disabled.status, 303,
        "others may be disabled: {}",
        disabled.text
    );
    let merge = [("reason", "x"), ("into", me_id.as_str())];
    assert_eq!(
        browser
            .submit(&format!("{}/merge", user(&other)), &merge)
            .await
            .status,
        409
    );
    let merge = format!("{}/merge?into={me_id}", user(&other));
    let database = &staff_app.app.database;
    for (change, refused) in [
        ("UPDATE users SET disabled_at = now()", false),
        (
            "UPDATE users SET disabled_at = NULL WHERE email = 'staff@example.com'",
            true,
        ),
        // An unverified address does not make the user the member's own account.
        (
            "UPDATE users SET email_verified = false WHERE email = 'staff@example.com'",
            false,
        ),
    ] {
        database.run(change).await;
        let page = browser.get(&merge).await.text;
        assert_eq!(
            page.contains("This is your own account"),
            refused,
            "{change}: {page}"
        );
    }
    database.run("UPDATE users SET email_verified = true").await;
    for action in ["enable", "end-sessions"] {
        let done = browser
            .confirm(&format!("{}/{action}", user(&me)), "x")
            .await;
        assert_eq!(done.status, 303, "{action} is no harm: {}", done.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_changes_nothing_and_whoever_is_not_there_is_not_found() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, grace] = two_people(&staff_app).await;
    let nobody = "00000000-0000-7000-8000-000000000000";
    let before = everything(&staff_app).await;
    let csrf = browser.csrf().await;
    for (path, kind) in previews(&ada, &second, &grace) {
        for method in [Method::GET, Method::HEAD] {
            let query = format!(
                "{path}{}csrf={csrf}&reason=x",
                if path.contains('?') { '&' } else { '?' }
            );
            let request = browser.request(method.clone(), &query);
            assert_eq!(browser.send(request).await.status, 200, "{kind}: {method}");
        }
        for (known, unknown) in [
            (ada.user_id(), nobody),
            (ada.user_id(), "x"),
            (grace.user_id(), nobody),
        ] {
            let path = path.replace(&known, unknown);
            if path.contains(unknown) {
                assert_eq!(browser.get(&path).await.status, 404, "{path}");
            }
        }
        let (action, query) = path.split_once('?').unwrap_or((&path, ""));
        let (name, value) = query.split_once('=').unwrap_or(("none", ""));
        let form = [("csrf", csrf.as_str()), ("reason", "x"), (name, value)];
        let gone = browser
            .post(&action.replace(&ada.user_id(), nobody), &form)
            .await;
        assert_eq!(gone.status, 404, "{kind}");
    }
    // An identity in the path must belong to the user in the path.
    for change in ["unlink", &format!("move?to={}", ada.user_id())] {
        let path = format!(
            "/admin/users/{}/identities/{}/{change}",
            grace.user_id(),
            second.identity_id()
        );
        assert_eq!(browser.get(&path).await.status, 404, "{path}");
    }
    let merge = format!("/admin/users/{}/merge", ada.user_id());
    let oneself = browser
        .get(&format!("{merge}?into={}", ada.user_id()))
        .await;
    assert_eq!(oneself.status, 404);
    assert_eq!(
        browser.submit(&merge, &[("reason", "x")]).await.status,
        400,
        "into whom?"
    );
    assert_eq!(everything(&staff_app).await, before);
}

/// Returns the access of all members except the member who acts.
async fn access(staff_app: &StaffApp) -> Vec<(String, String)> {
    all!(
        &staff_app.app.database.pool,
        "SELECT email, role FROM staff WHERE email <> $1 ORDER BY email",
        STAFF
    )
}

/// Waits until the request guard has admitted a request.
async fn let_in(staff_app: &StaffApp) {
    let visits = "SELECT count(*) FROM staff_sessions WHERE last_used_at > created_at";
    eventually("a request is let in", async || {
        (staff_app.app.database.count(visits).await > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_refused_if_access_ends_before_its_last_byte() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let [ada, second, grace] = two_people(&staff_app).await;
    let mut forms = Vec::new();
    for (path, _) in previews(&ada, &second, &grace) {
        forms.push(Form::of(&browser.get(&path).await.text));
    }
    let form = |action: String, fields: &[(&str, &str)]| {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Form {
            action,
            fields: fields.collect(),
        }
    };
    for action in ["disable", "enable", "end-sessions"] {
        forms.push(form(
            format!("/admin/users/{}/{action}", ada.user_id()),
            &[],
        ));
    }
    forms.push(form(
        "/admin/staff".into(),
        &[("email", "new@example.com"), ("role", "admin")],
    ));
    forms.push(form(
        "/admin/staff/remove".into(),
        &[("email", "root@example.com")],
    ));
    staff_app.app.api_key("shop-backend", KeyRole::Admin).await;
    forms.push(form(
        "/admin/keys".into(),
        &[("name", "mine"), ("role", "admin")],
    ));
    forms.push(form(
        "/admin/keys/revoke".into(),
        &[("name", "shop-backend")],
    ));
    let pool = &staff_app.app.database.pool;
    let before = (everything(&staff_app).await, access(&staff_app).await);
    for form in &forms {
        for change in [
            "DELETE FROM staff WHERE email = $1",
            "UPDATE staff SET ends_at = now() WHERE email = $1",
            "UPDATE staff SET role = 'support' WHERE email = $1",
        ] {
            if form.action.ends_with("/end-sessions") && change.contains("role") {
                continue;
            }
            let again =
                "INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), $1, 'admin')
                         ON CONFLICT (email) DO UPDATE SET role = 'admin', ends_at = NULL";
            sqlx::query(again).bind(STAFF).execute(pool).await.unwrap();
            sqlx::query("DELETE FROM staff_sessions")
                .execute(pool)
                .await
                .unwrap();
            let mut browser = staff_app.signed_in(STAFF).await;
            let form = form
                .clone()
                .with("csrf", &browser.csrf().await)
                .with("reason", "because");
            sqlx::query("UPDATE staff_sessions SET last_used_at = created_at")
                .execute(pool)
                .await
                .unwrap();
            let body = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(&form.fields)
                .finish();
            let cookies: Vec<_> = browser
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\nContent-Length: {}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\r\n",
                form.action,
                cookies.join("; "),
                body.len()
            );
            let mut late = Raw::connect(&staff_app.app).await;
            late.send(head + &body[..body.len() - 1]).await;
            let_in(&staff_app).await;
            sqlx::query(change).bind(STAFF).execute(pool).await.unwrap();
            late.send(&body[body.len() - 1..]).await;
            let answer = late.answer().await.unwrap();
            assert_eq!(
                answer.status, 403,
                "{change}, then {}: {}",
                form.action, answer.text
            );
            assert_eq!(
                (everything(&staff_app).await, access(&staff_app).await),
                before,
                "{change}, then {}",
                form.action
            );
        }
    }
}
