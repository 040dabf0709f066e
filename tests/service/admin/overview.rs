//! The overview: sign-ins of the last days, health of providers, and warnings.

use serde_json::json;
use vestibule::domain::report::{Event, EventKind, Report, Subject};
use vestibule::domain::staff::Role;
use vestibule::provider_events::apply;

use super::{person, staff_app_with};
use crate::support::provider::Behaviour;
use crate::support::staff_app::StaffApp;
use crate::support::token::{at, now};

/// Returns the text of the table row that begins with `begin`, without its markup.
fn row(page: &str, begin: &str) -> String {
    let (_, rest) = page
        .split_once(begin)
        .unwrap_or_else(|| panic!("{begin} is not on the page: {page}"));
    let row = rest.split("</tr>").next().unwrap();
    let texts = row
        .split('<')
        .filter_map(|piece| piece.split_once('>'))
        .map(|(_, text)| text.trim());
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Counts the bars whose title names an outcome.
fn titles(page: &str, outcome: &str) -> usize {
    let titles = page
        .split("<title>")
        .skip(2)
        .map(|rest| rest.split("</title>").next().unwrap());
    titles
        .filter(|title| title.split([':', ',']).any(|part| part.trim() == outcome))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_each_sign_in_by_outcome_reason_and_provider() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    // The overview has a column for each hour: the test must not cross its end.
    staff_app.app.database.within_an_hour().await;
    let empty = browser.get("/admin").await.text;
    assert!(empty.contains(">None.</p>"), "{empty}");
    for _ in 0..2 {
        person(&staff_app, &[("email", "ada@example.com")]).await;
    }
    person(
        &staff_app,
        &[("email", "ada@example.com"), ("sub", "second")],
    )
    .await;
    for _ in 0..3 {
        let refused = person(
            &staff_app,
            &[
                ("email", "ada@example.com"),
                ("sub", "x"),
                ("verified", "false"),
            ],
        )
        .await;
        assert_eq!(refused.error(), "link_required");
    }
    let before = browser.get("/admin").await.text;
    // The overview is the same whether events are counted in advance or on display.
    staff_app.app.database.run("UPDATE events SET created_at = created_at - interval '2 hours', id = (
                 lpad(to_hex((extract(epoch FROM created_at - interval '2 hours') * 1000)::bigint), 12, '0') || right(replace(id::text, '-', ''), 20))::uuid").await;
    vestibule::events::counts::catch_up(&staff_app.app.database.service)
        .await
        .unwrap();
    let counted: i64 = staff_app
        .app
        .database
        .value("SELECT sum(count)::bigint FROM event_counts")
        .await;
    assert_eq!(counted, 6);
    let after = browser.get("/admin").await.text;
    for page in [before, after] {
        for unit in [
            "6 in all, by the hour, in UTC",
            "6 in all, by the day, in UTC",
        ] {
            assert!(page.contains(unit), "{unit}: {page}");
        }
        for outcome in ["1 signed in", "1 created", "1 linked", "3 refused"] {
            assert_eq!(titles(&page, outcome), 2, "{outcome}: {page}");
        }
        assert!(
            row(&page, "reason=link%5Frequired&amp;").ends_with("3 100 %"),
            "{}",
            row(&page, "reason=link%5Frequired&amp;")
        );
        let idp = row(&page, "scope=\"row\">idp ");
        assert!(
            idp.starts_with("healthy ") && idp.ends_with("\u{a0}ms 3 3 0"),
            "{idp}"
        );
        assert_eq!(row(&page, "scope=\"row\">second "), "healthy 0 0 0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_separates_outages_from_refusals_and_disabled_from_healthy() {
    let staff_app =
        StaffApp::open_altered(|figment| figment.merge(("providers.discovered.enabled", false)))
            .await;
    staff_app.appoint("staff@example.com", Role::Support).await;
    let mut browser = staff_app.signed_in("staff@example.com").await;
    staff_app.app.database.run("INSERT INTO event_counts (hour, kind, reason, provider, count)
         SELECT date_trunc('hour', now(), 'UTC') - interval '5 hours', 'sign_in_refused', reason, 'idp', count
         FROM (VALUES ('provider_unavailable', 7), ('token_expired', 1), ('link_required', 2)) AS reasons (reason, count)").await;
    let page = browser.get("/admin").await.text;
    let idp = row(&page, "scope=\"row\">idp ");
    assert!(idp.ends_with("0 3 7"), "{idp}");
    assert_eq!(
        row(&page, "scope=\"row\">discovered "),
        "switched off 0 0 0"
    );
    for outcome in ["7 no answer", "3 refused"] {
        assert_eq!(titles(&page, outcome), 2, "{outcome}: {page}");
    }
    let shares = row(&page, "reason=token%5Fexpired&amp;");
    assert!(shares.ends_with("1 33 %"), "{shares}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_says_what_needs_a_person_and_leads_to_it() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    staff_app.app.database.within_an_hour().await;
    assert!(
        !browser
            .get("/admin")
            .await
            .text
            .contains("What needs a person")
    );
    // One refusal in this hour is usual, and a receiver has not responded for a day.
    staff_app.app.database.run("INSERT INTO event_counts (hour, kind, reason, provider, count)
         SELECT date_trunc('hour', now(), 'UTC') - days * interval '1 day', 'sign_in_refused', 'token_expired', 'idp',
                CASE days WHEN 0 THEN 40 ELSE 1 END
         FROM generate_series(0, 7) AS days").await;
    staff_app
        .app
        .database
        .run("INSERT INTO webhooks (name, events) VALUES ('crm', '{}')")
        .await;
    staff_app.app.database.run("INSERT INTO webhook_messages (webhook, message_id, type, user_id, facts, created_at, next_attempt_at, failure)
         VALUES ('crm', gen_random_uuid(), 'user.updated', gen_random_uuid(), '{}', now() - interval '26 hours',
                 now() + interval '1 hour', 'the answer is 500')").await;
    staff_app.app.database.run("INSERT INTO webhook_messages (webhook, message_id, type, user_id, facts, next_attempt_at, parked_at)
         VALUES ('crm', gen_random_uuid(), 'user.updated', gen_random_uuid(), '{}', 'infinity', now())").await;
    let page = browser.get("/admin").await.text;
    for expected in [
        "40 instead of about 1",
        "The webhook crm is behind:",
        "1 message waits",
        "1 day ago",
        "1 is parked",
        "the answer is 500",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let link = |name: &str| {
        let before = page.split(&format!(">{name}</a>")).next().unwrap();
        before
            .rsplit("href=\"")
            .next()
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .replace("&amp;", "&")
    };
    // The link to this hour's refusals at the provider leads to exactly the counted events.
    person(
        &staff_app,
        &[("email", "ada@example.com"), ("aud", "another")],
    )
    .await;
    person(&staff_app, &[("email", "ada@example.com")]).await;
    crate::support::process::eventually("the refusal is recorded", async || {
        let audit = browser.get(&link("The refusals of this hour")).await.text;
        (audit.matches("Sign-in refused</strong>").count() == 1).then(|| {
            assert!(!audit.contains("Signed in"), "{audit}");
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_failing_when_sign_ins_fail_until_they_succeed() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let sign_in = async |number: u32, status| {
        let token = staff_app.app.token(&at(
            "second",
            &format!("subject-{number}"),
            "ada@example.com",
        ));
        if status == 500 {
            staff_app
                .app
                .provider
                .behave_for(&token, Behaviour::status(500));
        }
        staff_app
            .app
            .post("second", &json!({ "id_token": token }))
            .await
            .status
            .as_u16()
    };
    for number in 0..12 {
        assert_eq!(sign_in(number, 500).await, 503);
    }
    let page = browser.get("/admin").await.text;
    assert!(
        row(&page, "scope=\"row\">second ").starts_with("failing "),
        "{page}"
    );
    assert!(page.contains("second gives no answer."), "{page}");
    assert!(
        row(&page, "scope=\"row\">idp ").starts_with("healthy "),
        "{page}"
    );
    for number in 0..12 {
        assert!(sign_in(20 + number, 200).await < 500);
    }
    let page = browser.get("/admin").await.text;
    assert!(
        row(&page, "scope=\"row\">second ").starts_with("healthy "),
        "{page}"
    );
    assert!(!page.contains("second gives no answer."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_without_calls_reads_the_health_from_the_hours_counts() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    staff_app.app.database.within_an_hour().await;
    staff_app.app.database.run("INSERT INTO event_counts (hour, kind, reason, provider, count)
         SELECT date_trunc('hour', now(), 'UTC'), kind, reason, provider, count
         FROM (VALUES ('sign_in_refused', 'provider_unavailable', 'second', 12), ('signed_in', '', 'second', 3),
                      ('sign_in_refused', 'provider_unavailable', 'third', 12), ('signed_in', '', 'third', 30),
                      ('sign_in_refused', 'provider_unavailable', 'fourth', 4)) AS hour (kind, reason, provider, count)").await;
    let page = browser.get("/admin").await.text;
    for (provider, health) in [
        ("second", "failing "),
        ("third", "healthy "),
        ("fourth", "healthy "),
    ] {
        let row = row(&page, &format!("scope=\"row\">{provider} "));
        assert!(row.starts_with(health), "{provider}: {row}");
    }
    assert!(page.contains("second gives no answer."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_see_what_a_hijacked_admin_has_let_in() {
    const MALLORY: &str = "mallory@example.com";
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let pool = &staff_app.app.database.pool;
    staff_app.appoint(MALLORY, Role::Admin).await;
    staff_app
        .appoint("support@example.com", Role::Support)
        .await;
    // Events from before the account's latest sign-in and before the seven days.
    run!(
        pool,
        "INSERT INTO events (id, created_at, kind, actor, detail)
         SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000800000000000000a')::uuid, at, kind, $1,
                '{\"key\": \"early\"}'
         FROM (VALUES ('staff_signed_in', now() - interval '20 days'), ('api_key_added', now() - interval '15 days'),
                      ('staff_signed_in', now() - interval '10 days'), ('api_key_added', now() - interval '9 days')) AS e (kind, at)",
        MALLORY
    );
    let mut mallory = staff_app.signed_in(MALLORY).await;
    run!(
        pool,
        "DELETE FROM events WHERE kind = 'staff_signed_in' AND actor = $1 AND created_at > now() - interval '1 day'",
        MALLORY
    );
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    run!(
        pool,
        "UPDATE identities SET held_at = now() WHERE user_id = $1",
        ada.user()
    );
    let key = mallory
        .submit(
            "/admin/keys",
            &[("name", "door"), ("role", "admin"), ("reason", "mine")],
        )
        .await;
    assert_eq!(key.status, 200, "{}", key.text);
    let member = [
        ("email", "accomplice@example.com"),
        ("role", "admin"),
        ("reason", "mine"),
    ];
    assert_eq!(mallory.submit("/admin/staff", &member).await.status, 303);
    let release = format!(
        "/admin/users/{}/identities/{}/release",
        ada.user_id(),
        ada.identity_id()
    );
    let released = mallory.submit(&release, &[("reason", "mine")]).await;
    assert_eq!(released.status, 303, "{}", released.text);
    let strip = "mallory@example.com was reported hijacked";
    assert!(!browser.get("/admin").await.text.contains(strip));

    let subject: String = value!(pool, "SELECT subject FROM staff WHERE email = $1", MALLORY);
    let report = |id: &str, kind, reason: &str| Report {
        id: id.into(),
        at: now(),
        events: vec![Event {
            kind,
            subject: Some(Subject::Subject(subject.clone())),
            reason: Some(reason.into()),
            email: None,
        }],
    };
    let one_of_many = report("1", EventKind::AccountDisabled, "bulk-account");
    apply(
        &staff_app.app.database.service,
        "idp",
        &[],
        &one_of_many,
        "request",
    )
    .await
    .unwrap();
    assert!(!browser.get("/admin").await.text.contains(strip));
    let hijacked = report("2", EventKind::AccountDisabled, "hijacking");
    apply(
        &staff_app.app.database.service,
        "idp",
        &[],
        &hijacked,
        "request",
    )
    .await
    .unwrap();
    let page = browser.get("/admin").await.text;
    assert_eq!(page.matches(strip).count(), 1, "{page}");
    let made = "2 API keys, 1 change of access to these pages and 1 release of a held identity";
    assert!(page.contains(made), "{page}");
    assert!(!page.contains("staff@example.com was reported"), "{page}");
    let before = page.split(">What the account did</a>").next().unwrap();
    let link = before
        .rsplit("href=\"")
        .next()
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    let audit = browser.get(&link).await.text;
    assert_eq!(
        audit.matches("Added an API key</strong>").count(),
        2,
        "{audit}"
    );
    for made in [
        "Gave access to the staff pages</strong>",
        "held identity released by staff</strong>",
    ] {
        assert_eq!(audit.matches(made).count(), 1, "{made}: {audit}");
    }
    let mut support = staff_app.signed_in("support@example.com").await;
    assert!(
        !support.get("/admin").await.text.contains(strip),
        "it is for admins"
    );
}
