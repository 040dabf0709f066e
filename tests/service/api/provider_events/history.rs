//! A hijacking report holds every identity that came to the user while another person may have had
//! the account, whatever happened since to the identities in between.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};

use super::{EVENTS, EventsApp, MEDIA_TYPE, NAME, RISC, genuine, message};
use crate::support::app::Answer;
use crate::support::problem::assert_problem;
use crate::support::race::rounds;
use crate::support::token::{at, claims, unverified};

/// An account at a provider, and the address that the provider reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Account {
    provider: &'static str,
    subject: &'static str,
    email: &'static str,
}

const fn account(provider: &'static str, subject: &'static str, email: &'static str) -> Account {
    Account {
        provider,
        subject,
        email,
    }
}

/// The account that the provider will report.
const ADA: Account = account(NAME, "ada", "ada@example.com");
/// The owner's other account.
const OTHER: Account = account("idp", "ada", "ada@example.com");
/// Accounts of the hijacker.
const FIRST: Account = account("third", "eve", "eve@example.com");
const NEXT: Account = account("fourth", "eve", "");
/// The hijacker's account at a provider that verifies the owner's address.
const MAILBOX: Account = account("fourth", "mailbox", "ada@example.com");

impl Account {
    fn claims(self) -> Value {
        if self.provider == "idp" {
            claims(self.subject, self.email)
        } else {
            at(self.provider, self.subject, self.email)
        }
    }

    async fn sign_in(self, events_app: &EventsApp) -> Answer {
        events_app
            .app
            .sign_in_at(self.provider, &self.claims())
            .await
    }

    /// Signs in and links another account.
    async fn link(self, events_app: &EventsApp, other: Self) -> Answer {
        let session = self.sign_in(events_app).await;
        events_app
            .app
            .link(&session.access_token(), other.provider, &other.claims())
            .await
    }

    /// Signs in and unlinks another account.
    async fn unlink(self, events_app: &EventsApp, other: Self) -> Answer {
        let session = self.sign_in(events_app).await;
        let path = format!(
            "/api/v1/me/identities/{}",
            other.identity(events_app).await.unwrap_or_default()
        );
        events_app.app.delete(&session.access_token(), &path).await
    }

    /// Signs in and merges the user of another account into its own.
    async fn merge(self, events_app: &EventsApp, other: Self) -> Answer {
        let session = self.sign_in(events_app).await;
        events_app
            .app
            .merge(&session.access_token(), other.provider, &other.claims())
            .await
    }

    async fn identity(self, events_app: &EventsApp) -> Option<Uuid> {
        let id =
            sqlx::query_scalar("SELECT id FROM identities WHERE provider = $1 AND subject = $2");
        let id = id.bind(self.provider).bind(self.subject);
        id.fetch_optional(&events_app.app.database.pool)
            .await
            .unwrap()
    }

    async fn user(self, events_app: &EventsApp) -> Option<Uuid> {
        let id = sqlx::query_scalar(
            "SELECT user_id FROM identities WHERE provider = $1 AND subject = $2",
        );
        let id = id.bind(self.provider).bind(self.subject);
        id.fetch_optional(&events_app.app.database.pool)
            .await
            .unwrap()
    }
}

impl EventsApp {
    /// Opens an app whose user has had [`OTHER`] and [`ADA`] for ten days.
    async fn with_ada() -> Self {
        let events_app = Self::open().await;
        assert_eq!(OTHER.sign_in(&events_app).await.outcome(), "created");
        assert_eq!(ADA.sign_in(&events_app).await.outcome(), "linked");
        events_app.days_later(10).await;
        events_app
    }

    /// Ages all stored sign-ins and identities by this many days.
    pub(super) async fn days_later(&self, days: i32) {
        for sql in [
            "UPDATE sessions SET created_at = created_at - $1 * interval '1 day'",
            "UPDATE identities SET joined_at = joined_at - $1 * interval '1 day',
                                   signed_in_at = signed_in_at - $1 * interval '1 day'",
            "UPDATE former_identities SET joined_at = joined_at - $1 * interval '1 day',
                                          left_at = left_at - $1 * interval '1 day',
                                          signed_in_at = signed_in_at - $1 * interval '1 day'",
            "UPDATE merged_users SET merged_at = merged_at - $1 * interval '1 day'",
        ] {
            sqlx::query(sql)
                .bind(days)
                .execute(&self.app.database.pool)
                .await
                .unwrap();
        }
    }

    /// Reports ADA, then asserts that exactly these accounts are held, and [`OTHER`] is not.
    async fn assert_held(&self, what: &str, held: &[Account]) {
        self.hijacked("ada").await;
        for account in held {
            let answer = account.sign_in(self).await;
            assert_eq!(
                (answer.status.as_u16(), answer.error().as_str()),
                (403, "identity_suspended"),
                "{what}: {account:?} {}",
                answer.text
            );
        }
        assert_eq!(
            OTHER.sign_in(self).await.status,
            200,
            "{what}: the owner's other account"
        );
        let told: i64 = self
            .app
            .database
            .count("SELECT count(*) FROM events WHERE kind = 'identity_held'")
            .await;
        assert_eq!(
            usize::try_from(told).unwrap(),
            held.len(),
            "{what}: each has an event"
        );
    }
}

fn assert_status(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_linked_by_steps_are_held_when_the_steps_are_gone() {
    let events_app = EventsApp::with_ada().await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    assert_status(&FIRST.link(&events_app, NEXT).await, 201);
    assert_status(&NEXT.unlink(&events_app, FIRST).await, 204);
    events_app.assert_held("chain", &[NEXT]).await;

    let events_app = EventsApp::with_ada().await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    assert_status(&FIRST.unlink(&events_app, ADA).await, 204);
    assert_status(&FIRST.link(&events_app, ADA).await, 201);
    events_app.assert_held("relinked", &[FIRST]).await;

    let events_app = EventsApp::with_ada().await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    assert_status(&FIRST.link(&events_app, NEXT).await, 201);
    let elsewhere = account("idp", "grace", "grace@example.com");
    let to = elsewhere.sign_in(&events_app).await.user();
    let identity = FIRST.identity(&events_app).await.unwrap();
    let from = FIRST.user(&events_app).await.unwrap();
    let moved = events_app
        .app
        .by_staff(Change::Move { identity, from, to })
        .await;
    assert_eq!(moved, Some(Outcome::Done));
    events_app.assert_held("moved", &[NEXT]).await;
    assert_status(&elsewhere.sign_in(&events_app).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_linked_by_the_mailbox_and_after_it_are_held() {
    let events_app = EventsApp::with_ada().await;
    assert_eq!(MAILBOX.sign_in(&events_app).await.outcome(), "linked");
    assert_status(&MAILBOX.link(&events_app, FIRST).await, 201);
    events_app.assert_held("mailbox", &[MAILBOX, FIRST]).await;

    let events_app = EventsApp::with_ada().await;
    let evil = at(NAME, "ada", "evil@example.com");
    events_app.app.sign_in_at(NAME, &evil).await;
    let theirs = account("fourth", "evil", "evil@example.com");
    assert_eq!(theirs.sign_in(&events_app).await.outcome(), "linked");
    ADA.sign_in(&events_app).await;
    events_app.assert_held("address turned", &[theirs]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hijacking_report_holds_identities_of_users_merged_since() {
    let events_app = EventsApp::with_ada().await;
    assert_eq!(MAILBOX.sign_in(&events_app).await.outcome(), "linked");
    assert_status(&FIRST.merge(&events_app, ADA).await, 200);
    events_app
        .assert_held("mailbox and merge", &[MAILBOX, FIRST])
        .await;

    let events_app = EventsApp::with_ada().await;
    assert_status(&FIRST.merge(&events_app, ADA).await, 200);
    assert_status(&NEXT.merge(&events_app, FIRST).await, 200);
    events_app.assert_held("two merges", &[FIRST, NEXT]).await;

    let events_app = EventsApp::with_ada().await;
    assert_status(&FIRST.merge(&events_app, ADA).await, 200);
    events_app.days_later(2).await;
    events_app
        .assert_held("merged two days before", &[FIRST])
        .await;

    let events_app = EventsApp::with_ada().await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    assert_status(&FIRST.unlink(&events_app, ADA).await, 204);
    assert_status(&NEXT.merge(&events_app, FIRST).await, 200);
    events_app
        .assert_held("unlinked, then merged", &[FIRST, NEXT])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_covers_a_week_or_since_the_last_sign_in() {
    let events_app = EventsApp::with_ada().await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    events_app.days_later(1).await;
    ADA.sign_in(&events_app).await;
    events_app.assert_held("a later sign-in", &[FIRST]).await;

    for sessions_are_deleted in [false, true] {
        let events_app = EventsApp::with_ada().await;
        assert_eq!(ADA.sign_in(&events_app).await.status, 200);
        events_app.days_later(5).await;
        assert_eq!(MAILBOX.sign_in(&events_app).await.outcome(), "linked");
        events_app.days_later(15).await;
        if sessions_are_deleted {
            events_app.app.database.run("DELETE FROM sessions").await;
        }
        events_app
            .assert_held("since the last sign-in", &[MAILBOX])
            .await;
    }

    let events_app = EventsApp::with_ada().await;
    assert_eq!(MAILBOX.sign_in(&events_app).await.outcome(), "linked");
    events_app.days_later(8).await;
    ADA.sign_in(&events_app).await;
    events_app
        .assert_held("nothing of the window before", &[])
        .await;
    assert_status(&MAILBOX.sign_in(&events_app).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_after_an_unlink_still_finds_the_user_and_suspends() {
    let events_app = EventsApp::with_ada().await;
    let user = ADA.user(&events_app).await;
    assert_status(&ADA.link(&events_app, FIRST).await, 201);
    assert_status(&FIRST.unlink(&events_app, ADA).await, 204);
    events_app.assert_held("unlinked", &[FIRST]).await;
    assert_eq!(
        events_app.recorded().await.last().unwrap().1,
        user,
        "its event is the user's"
    );

    assert_problem(&ADA.sign_in(&events_app).await, 403, "identity_suspended");
    assert_problem(
        &OTHER.link(&events_app, ADA).await,
        403,
        "identity_suspended",
    );
    assert_problem(&MAILBOX.sign_in(&events_app).await, 409, "link_required");
    events_app.risc("account-enabled", "ada").await;
    assert_problem(&ADA.sign_in(&events_app).await, 409, "link_required");
    assert_status(&OTHER.link(&events_app, ADA).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_of_identities_goes_with_the_user() {
    let events_app = EventsApp::with_ada().await;
    assert_status(&OTHER.link(&events_app, FIRST).await, 201);
    assert_status(&OTHER.unlink(&events_app, FIRST).await, 204);
    assert_status(&NEXT.merge(&events_app, OTHER).await, 200);
    let database = &events_app.app.database;
    assert_eq!(
        database
            .count("SELECT count(*) FROM former_identities")
            .await,
        3
    );
    let session = NEXT.sign_in(&events_app).await;
    assert_status(
        &events_app
            .app
            .delete(&session.access_token(), "/api/v1/me")
            .await,
        204,
    );
    assert_eq!(
        database
            .count("SELECT count(*) FROM former_identities")
            .await,
        0
    );
    assert_eq!(database.count("SELECT count(*) FROM merged_users").await, 0);
}

/// The statements that wait for the user's row.
const WAITING: &str = "^-- (Deletes a user|Applies a report)";

#[tokio::test(flavor = "multi_thread")]
async fn a_report_concurrent_with_the_users_deletion_still_suspends() {
    for report_first in [true, false] {
        let events_app = EventsApp::with_ada().await;
        let database = &events_app.app.database;
        let session = ADA.sign_in(&events_app).await.access_token();
        let mut lock = database.pool.begin().await.unwrap();
        sqlx::query("SELECT FROM users FOR UPDATE")
            .execute(&mut *lock)
            .await
            .unwrap();
        let reason = json!({ "reason": "hijacking" });
        let token = genuine(&message(
            &format!("{RISC}/account-disabled"),
            "ada",
            &reason,
        ));
        let report = || {
            events_app.app.send(
                reqwest::Method::POST,
                EVENTS,
                Some(MEDIA_TYPE),
                token.clone(),
            )
        };
        let deletion = || events_app.app.delete(&session, "/api/v1/me");
        let unlock = async |lock: sqlx::PgTransaction<'static>| {
            database.until_waiting(2, WAITING).await;
            lock.rollback().await.unwrap();
        };
        let (reported, deleted) = if report_first {
            let later = async {
                database.until_waiting(1, WAITING).await;
                deletion().await
            };
            let (reported, deleted, ()) = tokio::join!(report(), later, unlock(lock));
            (reported, deleted)
        } else {
            let later = async {
                database.until_waiting(1, WAITING).await;
                report().await
            };
            let (deleted, reported, ()) = tokio::join!(deletion(), later, unlock(lock));
            (reported, deleted)
        };
        assert_status(&reported, 202);
        let status = if report_first { 401 } else { 204 };
        assert_eq!(
            deleted.status, status,
            "the report has ended the session: {}",
            deleted.text
        );
        assert_problem(&ADA.sign_in(&events_app).await, 403, "identity_suspended");
    }
}

// ---- random sequences ----

const OWNERS: [Account; 3] = [ADA, OTHER, account("third", "ada", "ada@third.example")];
const FRIENDS: [Account; 2] = [
    account("idp", "grace", "grace@example.com"),
    account("third", "grace", "grace@third.example"),
];
const HIJACKERS: [Account; 4] = [
    FIRST,
    NEXT,
    MAILBOX,
    account("idp", "eve", "eve@idp.example"),
];

struct Sequence {
    events_app: EventsApp,
    rng: Rng,
    /// The user whose account will be reported, while the user exists.
    victim: Option<Uuid>,
    steps: Vec<String>,
}

impl Sequence {
    fn one_of(&mut self, accounts: &[Account]) -> Account {
        accounts[self.rng.usize(..accounts.len())]
    }

    /// Performs a random action with one or two accounts of the same person.
    async fn act(&mut self, own: &[Account]) {
        let who = self.one_of(own);
        let other = self.one_of(own);
        let kind = self.rng.usize(..8);
        self.steps.push(format!("{kind} {who:?} {other:?}"));
        let events_app = &self.events_app;
        let session = who.sign_in(events_app).await;
        if !session.status.is_success() {
            return;
        }
        let token = session.access_token();
        let merged = match kind {
            0 => None,
            1 | 2 => {
                events_app
                    .app
                    .link(&token, other.provider, &other.claims())
                    .await;
                None
            }
            3 | 4 => {
                other.unlink(events_app, who).await;
                None
            }
            5 => Some((
                other.user(events_app).await,
                events_app
                    .app
                    .merge(&token, other.provider, &other.claims())
                    .await,
            )),
            6 => {
                let address = if self.rng.bool() {
                    "eve@idp.example"
                } else {
                    "grace@example.com"
                };
                let changed = Account {
                    email: address,
                    ..who
                }
                .claims();
                let changed = if self.rng.bool() {
                    changed
                } else {
                    unverified(changed)
                };
                events_app.app.sign_in_at(who.provider, &changed).await;
                None
            }
            _ if self.rng.usize(..6) == 0 => {
                if events_app.app.delete(&token, "/api/v1/me").await.status == 204
                    && self.victim == Some(session.user())
                {
                    self.victim = None;
                }
                None
            }
            _ => None,
        };
        if let Some((gone, answer)) = merged
            && answer.status == 200
            && gone == self.victim
        {
            self.victim = Some(session.user());
        }
    }

    /// Lets staff move an identity or merge two users.
    async fn by_staff(&mut self) {
        let all = [&OWNERS[..], &FRIENDS, &HIJACKERS].concat();
        let one = self.one_of(&all);
        let other = self.one_of(&all);
        self.steps.push(format!("staff {one:?} {other:?}"));
        let events_app = &self.events_app;
        let (Some(from), Some(to)) = (one.user(events_app).await, other.user(events_app).await)
        else {
            return;
        };
        if from == to {
            return;
        }
        if self.rng.bool() {
            let identity = one.identity(events_app).await.unwrap();
            events_app
                .app
                .by_staff(Change::Move { identity, from, to })
                .await;
        } else if events_app
            .app
            .by_staff(Change::Merge { from, into: to })
            .await
            == Some(Outcome::Done)
            && self.victim == Some(from)
        {
            self.victim = Some(to);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_report_only_accounts_from_before_the_window_sign_in() {
    let rng = Rng::new();
    println!("seed {}", rng.get_seed());
    let mut reports = 0;
    let mut held = 0;
    let mut sequence = Sequence {
        events_app: EventsApp::open().await,
        rng,
        victim: None,
        steps: Vec::new(),
    };
    for round in 0..rounds().min(250) {
        sequence
            .events_app
            .app
            .database
            .run("TRUNCATE users, former_identities, merged_users, deleted_identities CASCADE")
            .await;
        sequence.steps.clear();
        for _ in 0..6 {
            if sequence.rng.bool() {
                sequence.act(&OWNERS).await;
            } else {
                sequence.act(&FRIENDS).await;
            }
        }
        sequence.victim = ADA.user(&sequence.events_app).await;
        let Some(victim) = sequence.victim else {
            continue;
        };
        let all = [&OWNERS[..], &FRIENDS, &HIJACKERS].concat();
        let mut before = BTreeSet::new();
        for account in &all {
            if account.user(&sequence.events_app).await == Some(victim) {
                before.insert(*account);
            }
        }
        sequence.events_app.days_later(8).await;
        let stolen = [&HIJACKERS[..], &[ADA, ADA]].concat();
        for _ in 0..12 {
            match sequence.rng.usize(..8) {
                0 => sequence.act(&OWNERS).await,
                1 => sequence.act(&FRIENDS).await,
                2 => sequence.by_staff().await,
                _ => sequence.act(&stolen).await,
            }
        }
        sequence.events_app.hijacked("ada").await;
        reports += 1;
        let Some(victim) = sequence.victim else {
            continue;
        };
        let newcomer = account("fourth", "newcomer", "ada@example.com");
        for account in all.into_iter().chain([newcomer]) {
            let answer = account.sign_in(&sequence.events_app).await;
            let is_in = answer.status.is_success() && answer.user() == victim;
            let steps = &sequence.steps;
            assert!(
                !is_in || before.contains(&account),
                "round {round}: {account:?} {before:?} {steps:#?}"
            );
            assert!(
                !is_in || account != ADA,
                "round {round}: the reported account itself"
            );
            held += usize::from(answer.status == 403);
        }
    }
    assert!(reports > 0 && held > reports, "{reports} {held}");
}
