//! Access of staff, and the time zone in which members read times.

use reqwest::Method;
use sqlx::{Executor, PgPool};
use url::form_urlencoded;
use vestibule::accounts::OpaqueToken;
use vestibule::admin::pages::staff::end;
use vestibule::admin::staff::sign_in::store::by_session;
use vestibule::admin::staff::store::{Changed, add, remove};
use vestibule::domain::actor::Author;
use vestibule::domain::staff::{Access, Role};

use super::{person, staff_app_with};
use crate::support::cluster::Database;
use crate::support::race::{at_once, rounds};
use crate::support::staff_app::{Browser, StaffApp};

async fn members(staff_app: &StaffApp) -> Vec<(String, String)> {
    staff_app
        .app
        .database
        .all("SELECT email, role FROM staff ORDER BY email")
        .await
}

async fn post(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> u16 {
    browser
        .submit(path, &[&[("reason", "new colleague")], fields].concat())
        .await
        .status
        .as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn granting_changing_and_revoking_access_takes_effect_and_is_audited() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    assert_eq!(
        post(
            &mut browser,
            "/admin/staff",
            &[("email", "Grace@Example.com"), ("role", "support")]
        )
        .await,
        303
    );
    let mut grace = staff_app.signed_in("grace@example.com").await;
    assert_eq!(grace.get("/admin/users").await.status, 200);
    assert_eq!(
        post(
            &mut browser,
            "/admin/staff",
            &[("email", "grace@example.com"), ("role", "admin")]
        )
        .await,
        303
    );
    assert_eq!(
        post(
            &mut browser,
            "/admin/staff/remove",
            &[("email", "grace@example.com")]
        )
        .await,
        303
    );
    // A member without a role is signed out at the next request.
    assert_eq!(grace.get("/admin/users").await.status, 303);
    assert_eq!(members(&staff_app).await.len(), 2);
    let audit = browser
        .get("/admin/audit?what=staff&actor=staff@example.com")
        .await
        .text;
    for what in [
        "Gave access to the staff pages",
        "Changed access",
        "Revoked access",
    ] {
        assert!(audit.contains(what), "{what}: {audit}");
    }
    assert!(
        audit.contains("grace@example.com, support") && audit.contains("Reason: new colleague"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_change_is_previewed_and_errors_appear_at_fields() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ask = "/admin/staff/give?email=Grace%40example.com&role=support";
    let day = async |sql| staff_app.app.database.value::<String>(sql).await;
    for (period, sql) in [
        ("day", "SELECT ((now() AT TIME ZONE 'UTC')::date + 1)::text"),
        (
            "week",
            "SELECT ((now() AT TIME ZONE 'UTC')::date + 7)::text",
        ),
        (
            "month",
            "SELECT ((now() AT TIME ZONE 'UTC')::date + interval '1 month')::date::text",
        ),
    ] {
        let before = day(sql).await;
        let page = browser.get(&format!("{ask}&for={period}")).await.text;
        let [first, second] = [before, day(sql).await].map(|day| {
            page.contains(&format!("The access ends at the end of {day} (UTC)."))
                && page.contains(&format!("name=\"until\" value=\"{day}\""))
        });
        assert!(first || second, "{period}: {page}");
        assert!(
            page.contains("grace@example.com is support and may not export."),
            "{page}"
        );
    }
    let page = browser.get(&format!("{ask}&for=none")).await.text;
    assert!(
        page.contains("The access has no end.") && page.contains("This member is new"),
        "{page}"
    );
    let before = members(&staff_app).await;
    let form = [
        ("email", "grace@example.com"),
        ("role", "admin"),
        ("until", "2099-12-31"),
    ];
    let again = browser.submit("/admin/staff", &form).await;
    assert!(
        again.status == 400
            && again.text.contains("Write why")
            && again.text.contains("2099-12-31"),
        "{}",
        again.text
    );
    for (query, field, mistake) in [
        ("email=x&role=support", "email", "Give an e-mail address"),
        (
            "email=staff%40example.com&role=support",
            "email",
            "You cannot change your own access.",
        ),
        (
            "email=grace%40example.com&role=support&until=2020-01-01",
            "until",
            "Choose a day that is not over.",
        ),
    ] {
        let page = browser.get(&format!("/admin/staff/give?{query}")).await;
        let error = format!("id=\"{field}-error\"");
        assert!(
            page.status == 400 && page.text.contains(&error) && page.text.contains(mistake),
            "{}",
            page.text
        );
        assert!(page.text.contains("aria-invalid=\"true\""), "{}", page.text);
        let sent = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect::<Vec<_>>();
        let fields = sent
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect::<Vec<_>>();
        assert_eq!(
            post(&mut browser, "/admin/staff", &fields).await,
            400,
            "{query}"
        );
    }
    for (path, fields) in [
        (
            "/admin/staff",
            &[("email", "x@example.com"), ("role", "root")][..],
        ),
        ("/admin/staff/remove", &[("email", "STAFF@example.com")]),
    ] {
        assert_eq!(post(&mut browser, path, fields).await, 400, "{path}");
    }
    assert_eq!(
        (before.len(), members(&staff_app).await),
        (2, before),
        "questions and mistakes change nothing"
    );
    let revoke = browser
        .get("/admin/staff/remove?email=root%40example.com")
        .await
        .text;
    assert!(
        revoke.contains("Revoke the access of root@example.com"),
        "{revoke}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_admins_who_remove_each_other_leave_one() {
    let staff_app = StaffApp::open().await;
    let database = &staff_app.app.database.service;
    let by = Author::COMMAND_LINE;
    let [ada, grace] = ["ada@example.com", "grace@example.com"];
    for round in 0..rounds() {
        for email in [ada, grace] {
            add(database, email, Role::Admin, by).await.unwrap();
        }
        let (first, second) = tokio::join!(remove(database, ada, by), remove(database, grace, by));
        assert_ne!(first.unwrap(), second.unwrap(), "round {round}");
        assert_eq!(members(&staff_app).await.len(), 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_pages_show_times_in_the_members_chosen_zone() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    staff_app
        .app
        .database
        .run("UPDATE users SET created_at = '2026-07-01T22:30:05Z'")
        .await;
    let path = format!("/admin/users/{}", ada.user_id());
    let page = browser.get(&path).await.text;
    assert!(
        page.contains(">2026-07-01 22:30 UTC</time>") && page.contains("data-local-times"),
        "{page}"
    );
    assert_eq!(
        post(
            &mut browser,
            "/admin/time-zone",
            &[("zone", "Asia/Kolkata")]
        )
        .await,
        303
    );
    let page = browser.get(&path).await.text;
    assert!(
        page.contains("<time datetime=\"2026-07-01T22:30:05Z\">2026-07-02 04:00 IST</time>"),
        "{page}"
    );
    assert!(!page.contains("data-local-times"), "{page}");
    assert_eq!(
        post(
            &mut browser,
            "/admin/time-zone",
            &[("zone", "../../etc/passwd")]
        )
        .await,
        400
    );
    assert_eq!(
        post(&mut browser, "/admin/time-zone", &[("zone", "")]).await,
        303
    );
    assert!(
        browser
            .get(&path)
            .await
            .text
            .contains(">2026-07-01 22:30 UTC</time>")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_looks_who_is_no_longer_staff() {
    let (staff_app, browser) = staff_app_with(Role::Support).await;
    let database = &staff_app.app.database;
    let mut lock = database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE users")
        .execute(&mut *lock)
        .await
        .unwrap();
    let looking = tokio::spawn(browser.request(Method::GET, "/admin/users").send());
    database.until_blocked().await;
    database
        .run("DELETE FROM staff WHERE email = 'staff@example.com'")
        .await;
    lock.rollback().await.unwrap();
    assert_eq!(
        looking.await.unwrap().unwrap().status(),
        303,
        "to the sign-in"
    );
    assert_eq!(
        database
            .count("SELECT count(*) FROM events WHERE kind = 'users_viewed'")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn access_ends_by_itself_for_sessions_that_are_open_too() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let pool = &staff_app.app.database.pool;
    let give = [
        ("email", "grace@example.com"),
        ("role", "support"),
        ("export", "yes"),
        ("until", "2099-12-31"),
    ];
    for over in ["2020-01-01", "tomorrow"] {
        let given = [&give[..3], &[("until", over)]].concat();
        assert_eq!(
            post(&mut browser, "/admin/staff", &given).await,
            400,
            "{over}"
        );
    }
    assert_eq!(post(&mut browser, "/admin/staff", &give).await, 303);
    let page = browser.get("/admin/staff").await.text;
    assert!(
        page.contains("2099-12-31 (UTC)") && !page.contains("ended"),
        "{page}"
    );
    let audit = browser.get("/admin/audit?what=staff").await.text;
    let about = "grace@example.com, support, may export, until 2099-12-31 23:59 UTC";
    assert!(audit.contains(about), "{audit}");

    let mut grace = staff_app.signed_in("grace@example.com").await;
    assert_eq!(grace.get("/admin/users").await.status, 200);
    run!(
        pool,
        "UPDATE staff SET ends_at = now() WHERE email = 'grace@example.com'"
    );
    assert_eq!(grace.get("/admin/users").await.status, 303);
    let refused = Browser::new(&staff_app.app.url)
        .sign_in("grace@example.com")
        .await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(browser.get("/admin/staff").await.text.contains("ended"));
    // A grant replaces all rights of the member.
    assert_eq!(post(&mut browser, "/admin/staff", &give[..2]).await, 303);
    assert_eq!(grace.get("/admin/users").await.status, 200);
    let rights = "SELECT may_export, ends_at IS NULL FROM staff WHERE email = 'grace@example.com'";
    let rights: (bool, bool) = staff_app.app.database.row(rights).await;
    assert_eq!(rights, (false, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_is_one_whose_access_does_not_end() {
    let staff_app = StaffApp::open().await;
    let by = Author::COMMAND_LINE;
    let for_now = Access {
        ends_at: end("2099-12-31", None),
        ..Role::Admin.into()
    };
    let [ada, grace] = ["ada@example.com", "grace@example.com"];
    staff_app.appoint(ada, Role::Admin).await;
    staff_app.appoint(grace, for_now).await;
    let give = async |email, access: Access| {
        add(&staff_app.app.database.service, email, access, by)
            .await
            .unwrap()
    };
    assert_eq!(give(ada, for_now).await, Changed::LastAdmin);
    assert_eq!(give(ada, Role::Support.into()).await, Changed::LastAdmin);
    assert_eq!(
        remove(&staff_app.app.database.service, ada, by)
            .await
            .unwrap(),
        Changed::LastAdmin
    );
    assert_eq!(give(grace, for_now).await, Changed::Already);
    assert_eq!(
        remove(&staff_app.app.database.service, grace, by)
            .await
            .unwrap(),
        Changed::Done
    );
    // When two admins limit each other's access at once, one keeps access without an end.
    for round in 0..rounds() {
        assert_ne!(give(ada, Role::Admin.into()).await, Changed::LastAdmin);
        assert_ne!(give(grace, Role::Admin.into()).await, Changed::LastAdmin);
        let (first, second) = tokio::join!(give(ada, for_now), give(grace, for_now));
        assert_ne!(first, second, "round {round}");
    }
}

const MEMBER: &str = "member@example.com";

/// Adds a member with an open session, and returns its cookie.
async fn member(pool: &PgPool) -> String {
    add(
        &pool.clone().into(),
        MEMBER,
        Role::Support,
        Author::COMMAND_LINE,
    )
    .await
    .unwrap();
    let session = OpaqueToken::generate();
    let opened =
        "INSERT INTO staff_sessions (hash, staff_id) SELECT $1, id FROM staff WHERE email = $2";
    run!(pool, opened, session.hash.as_slice(), MEMBER);
    session.text.expose().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staff_request_and_the_members_removal_never_deadlock() {
    let database = Database::create().await;
    let pool = &database.pool;
    // A visit and a later removal both wait for the session, which another transaction has locked.
    for email in ["one@example.com", "two@example.com"] {
        add(&database.service, email, Role::Admin, Author::COMMAND_LINE)
            .await
            .unwrap();
    }
    let session = member(pool).await;
    let mut other = pool.begin().await.unwrap();
    other
        .execute("SELECT FROM staff_sessions FOR UPDATE")
        .await
        .unwrap();
    let visit = tokio::spawn({
        let service = database.service.clone();
        let session = session.clone();
        async move { by_session(&service, &session).await }
    });
    database.until_waiting(1, "").await;
    let removal = tokio::spawn({
        let service = database.service.clone();
        async move { remove(&service, MEMBER, Author::COMMAND_LINE).await }
    });
    database.until_waiting(2, "").await;
    other.rollback().await.unwrap();
    assert_eq!(visit.await.unwrap().unwrap().unwrap().email, MEMBER);
    assert_eq!(removal.await.unwrap().unwrap(), Changed::Done);

    for _ in 0..rounds() {
        let session = member(pool).await;
        let visit = async { by_session(&database.service, &session).await.unwrap() };
        let removal = async {
            remove(&database.service, MEMBER, Author::COMMAND_LINE)
                .await
                .unwrap()
        };
        let (_, removed) = at_once(visit, removal).await;
        assert_eq!(removed, Changed::Done);
        assert!(
            by_session(&database.service, &session)
                .await
                .unwrap()
                .is_none()
        );
    }
}
