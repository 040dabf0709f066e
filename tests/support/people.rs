//! A database full of users, among them extreme cases for the pages.

use reqwest::Client;
use serde_json::json;
use vestibule::domain::staff::Role;

use super::app::Answer;
use super::staff_app::StaffApp;

/// Addresses of members of staff, named for their roles.
pub const ADMIN: &str = "staff@example.com";
pub const SUPPORT: &str = "support@example.com";

/// Users and other objects of the pages, by id.
pub struct People {
    /// A user with every kind of event.
    pub ada: String,
    /// Ada's identity.
    pub identity: String,
    /// A disabled user.
    pub disabled: String,
    /// A user with neither name nor address.
    pub nobody: String,
    /// Their only identity.
    pub last_identity: String,
    /// The number of a deletion, and the deleted user.
    pub deletion: String,
    pub deleted: String,
    /// A user who was merged into Ada.
    pub merged: String,
    /// A user whose refresh token was replayed, perhaps by a thief.
    pub robbed: String,
    /// A user whose provider suspended their only account.
    pub suspended: String,
    /// One of Ada's sessions.
    pub session: String,
    /// An identity that is held.
    pub held: String,
    /// Users whose names challenge the layout: markup, length, writing systems.
    pub odd: Vec<(&'static str, String)>,
}

impl People {
    /// Fills the database with users and events.
    pub async fn arrive(staff_app: &StaffApp) -> Self {
        staff_app.appoint(ADMIN, Role::Admin).await;
        staff_app.appoint(SUPPORT, Role::Support).await;
        add_older_users(staff_app).await;
        history(staff_app).await;
        let ada = sign_in(
            staff_app,
            &[
                ("email", "ada.lovelace@example.com"),
                ("name", "Ada Lovelace"),
            ],
        )
        .await;
        sign_in(
            staff_app,
            &[
                ("email", "ada.lovelace@example.com"),
                ("sub", "another-subject"),
            ],
        )
        .await;
        for (subject, verified) in [("unverified", "false"), (&"s".repeat(255), "false")] {
            let who = [
                ("email", "ada.lovelace@example.com"),
                ("sub", subject),
                ("verified", verified),
            ];
            assert_eq!(sign_in(staff_app, &who).await.error(), "link_required");
        }
        assert_eq!(
            sign_in(
                staff_app,
                &[("email", "ada.lovelace@example.com"), ("expired", "true")]
            )
            .await
            .error(),
            "token_expired"
        );
        let disabled = sign_in(
            staff_app,
            &[("email", "mallory@example.com"), ("name", "Mallory")],
        )
        .await;
        let nobody = sign_in(staff_app, &[("sub", "a-subject-and-nothing-else")]).await;
        let mut odd = Vec::new();
        for (what, address, name) in [
            (
                "markup",
                "markup@example.com",
                "<script>alert(1)</script>".to_owned(),
            ),
            (
                "long",
                &*long_address(),
                format!(
                    "{} {}",
                    "Wolfeschlegelsteinhausen".repeat(6),
                    "long ".repeat(20)
                ),
            ),
            (
                "emoji",
                "emoji@example.com",
                "👩🏽‍🚀 Zoë Æther‑Ødegård 🏳️‍🌈".to_owned(),
            ),
            (
                "arabic",
                "arabic@example.com",
                "أدا لوفليس (Ada) — مُطوِّرة".to_owned(),
            ),
            (
                "hebrew",
                "hebrew@example.com",
                "\u{202e}עדה לאבלייס".to_owned(),
            ),
            ("chinese", "chinese@example.com", "艾達·勒芙蕾絲".to_owned()),
        ] {
            let answer = sign_in(staff_app, &[("email", address), ("name", &name)]).await;
            odd.push((what, answer.user_id()));
        }
        let gone = sign_in(staff_app, &[("email", "gone@example.com")]).await;
        assert_eq!(
            staff_app
                .app
                .delete(&gone.access_token(), "/api/v1/me")
                .await
                .status,
            204
        );
        let deletion = staff_app
            .app
            .database
            .value("SELECT id::text FROM events WHERE kind = 'user_deleted'")
            .await;
        staff_app.app.database.run(MARKUP).await;
        for case in CASES {
            staff_app.app.database.run(case).await;
        }
        let cases = async |sql: &'static str| staff_app.app.database.value(sql).await;
        let people = Self {
            deleted: gone.user_id(),
            merged: "00000000-0000-7000-8000-000000000997".into(),
            robbed: cases("SELECT id::text FROM users WHERE email = 'emoji@example.com'").await,
            suspended: cases("SELECT id::text FROM users WHERE email = 'chinese@example.com'").await,
            session: String::new(),
            held: cases(
                "SELECT id::text FROM identities WHERE held_at IS NOT NULL AND email = 'markup@example.com'",
            )
            .await,
            ada: ada.user_id(),
            identity: ada.identity_id(),
            disabled: disabled.user_id(),
            nobody: nobody.user_id(),
            last_identity: nobody.identity_id(),
            deletion,
            odd,
        };
        people.looked_after(staff_app).await;
        let session = "SELECT s.id::text FROM sessions s JOIN identities i ON i.id = s.identity_id
                       WHERE s.device_name LIKE 'Ada%' AND s.ended_at IS NULL";
        Self {
            session: staff_app.app.database.value(session).await,
            ..people
        }
    }

    /// The id of the `odd` user of that name.
    pub fn odd(&self, name: &str) -> &str {
        &self
            .odd
            .iter()
            .find(|(odd, _)| *odd == name)
            .expect("one of them")
            .1
    }

    /// Makes changes to some users as staff.
    async fn looked_after(&self, staff_app: &StaffApp) {
        let mut staff = staff_app.signed_in(ADMIN).await;
        let csrf = staff.csrf().await;
        let reason = format!(
            "Asked by phone: <i>again</i> & again. {}",
            "VeryLongWord".repeat(20)
        );
        for (id, action) in [
            (&self.ada, "disable"),
            (&self.ada, "enable"),
            (&self.disabled, "disable"),
        ] {
            let form = [("csrf", &*csrf), ("reason", &reason)];
            let done = staff
                .post(&format!("/admin/users/{id}/{action}"), &form)
                .await;
            assert_eq!(done.status, 303, "{action}: {}", done.text);
        }
        let devices = [
            ("Ada’s phone", "Android 16"),
            ("🚀 <b>tablet</b>", "iPadOS"),
            (&*"long ".repeat(20), "Linux with a name that goes on"),
        ];
        for (name, platform) in devices {
            let back = sign_in_on(
                staff_app,
                &[("email", "ada.lovelace@example.com")],
                name,
                platform,
            )
            .await;
            assert_eq!(back.outcome(), "signed_in");
        }
        let refused = sign_in(staff_app, &[("email", "mallory@example.com")]).await;
        assert_eq!(refused.error(), "user_disabled");
    }
}

/// Adds markup to everything else that the pages show of a user, and another user with the same
/// name.
const MARKUP: &str = "
    WITH one AS (
        UPDATE users SET own_name = true, claims = '{\"role\": \"<b>\"}' WHERE email = 'markup@example.com' RETURNING id, name
    ), alike AS (
        INSERT INTO users (id, name) SELECT '00000000-0000-7000-8000-000000000999', name FROM one
    ), event AS (
        INSERT INTO events (kind, user_id, actor, detail, user_agent, ip)
        SELECT 'identity_moved', id, '<b>grace@example.com',
               jsonb_build_object('from', gen_random_uuid(), 'reason', '{{ 7 * 7 }} <i>'), '<b>', '2001:db8::1' FROM one
    )
    UPDATE identities i SET held_at = now(), reported_at = now(), reported_reason = '<b>' FROM one WHERE i.user_id = one.id";

/// Adds a merged user, a replayed token, an account that its provider suspended, claims, a note, an
/// API key, and a webhook with messages.
const CASES: [&str; 9] = [
    "INSERT INTO events (kind, reason, user_id, email, actor, detail)
    SELECT 'users_merged', 'to_another', '00000000-0000-7000-8000-000000000997', 'ada@example.org', 'staff@example.com',
           jsonb_build_object('reason', 'One person, by phone', 'into', id)
    FROM users WHERE email = 'ada.lovelace@example.com'",
    "INSERT INTO events (kind, user_id, ip, user_agent)
    SELECT 'refresh_token_replayed', id, '203.0.113.199', 'python-requests/2.32' FROM users WHERE email = 'emoji@example.com'",
    "UPDATE identities SET reported_at = now() - interval '3 days', reported_reason = 'account_disabled'
    WHERE email = 'chinese@example.com'",
    "UPDATE users SET claims = '{\"plan\": \"pro\", \"seats\": 5, \"shop\": {\"tier\": \"gold\", \"regions\": [\"north\", \"<b>\"]}}'
    WHERE email = 'ada.lovelace@example.com'",
    "INSERT INTO events (kind, user_id, actor, detail)
    SELECT 'claims_changed', u.id, 'key:shop', jsonb_build_object('claims', c.claims)
    FROM users u, (VALUES ('{\"plan\": \"free\"}'::jsonb), ('{\"plan\": \"pro\", \"seats\": 5}')) AS c (claims)
    WHERE email = 'ada.lovelace@example.com'",
    "INSERT INTO notes (user_id, author, text, ticket)
    SELECT id, 'staff@example.com', 'Tablet lost on the train: <b>only</b> that session. ' || repeat('long', 40), 'https://tickets.example/4711'
    FROM users WHERE email = 'ada.lovelace@example.com'",
    "INSERT INTO api_keys (id, name, hash, role, created_by)
    VALUES (gen_random_uuid(), 'shop', sha256('shop'), 'reader', '<b>operator')",
    "INSERT INTO webhooks (name, events) VALUES ('shop', '{}')",
    "INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, attempts, failures, next_attempt_at, parked_at, failure)
    SELECT 'shop', gen_random_uuid(), u.id, 'user.updated', '{}', c.attempts, c.attempts, c.next::timestamptz, c.parked::timestamptz, c.failure
    FROM users u, (VALUES (19, '-infinity', 'now', 'the answer is 500 <b>'), (4, 'tomorrow', NULL, 'no answer within 15 seconds'),
                          (0, 'infinity', NULL, NULL)) AS c (attempts, next, parked, failure)
    WHERE u.email = 'ada.lovelace@example.com'",
];

/// Adds more users than fit on a page, older than all others.
async fn add_older_users(staff_app: &StaffApp) {
    staff_app.app
        .database
        .run(
            "INSERT INTO users (id, email, name, created_at)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user-' || n || '@example.com',
                'User ' || n, now() - n * interval '1 hour'
         FROM generate_series(1, 120) AS n",
        )
        .await;
}

/// Adds a month of sign-ins, more by day than by night.
async fn history(staff_app: &StaffApp) {
    staff_app.app.database.run("INSERT INTO event_counts (hour, kind, reason, provider, count)
         SELECT date_trunc('hour', now(), 'UTC') - n * interval '1 hour', kind, reason, provider,
                1 + (weight * (1 + sin(n * pi() / 12)))::bigint
         FROM generate_series(1, 700) AS n, (VALUES
             ('signed_in', '', 'idp', 400), ('signed_in', '', 'second', 40), ('user_created', '', 'idp', 60),
             ('identity_linked', '', 'second', 20), ('sign_in_refused', 'token_expired', 'idp', 50),
             ('sign_in_refused', 'link_required', 'idp', 12), ('sign_in_refused', 'provider_unavailable', 'third', 2)
         ) AS outcomes (kind, reason, provider, weight)").await;
}

/// An address of the greatest valid length.
fn long_address() -> String {
    format!(
        "{}@{}.{}.{}.example",
        "long-mailbox".repeat(5),
        "a".repeat(60),
        "b".repeat(60),
        "c".repeat(58)
    )
}

/// Signs a user in with a token that the development provider mints.
pub async fn sign_in(staff_app: &StaffApp, who: &[(&str, &str)]) -> Answer {
    let token = minted(staff_app, who).await;
    staff_app
        .app
        .post("idp", &json!({ "id_token": token }))
        .await
}

async fn sign_in_on(
    staff_app: &StaffApp,
    who: &[(&str, &str)],
    device: &str,
    platform: &str,
) -> Answer {
    let token = minted(staff_app, who).await;
    let device = json!({ "name": device.trim(), "platform": platform });
    staff_app
        .app
        .post("idp", &json!({ "id_token": token, "device": device }))
        .await
}

async fn minted(staff_app: &StaffApp, who: &[(&str, &str)]) -> String {
    let mint = format!("{}/dev/idp/mint", staff_app.app.url);
    let answer = Client::new().get(mint).query(who).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{who:?}");
    answer.text().await.unwrap().trim().to_owned()
}
