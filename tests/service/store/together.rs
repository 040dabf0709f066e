//! Sign-ins and refreshes that share a statement: a failing item does not affect the others.

use std::sync::Arc;

use rocket::futures::future::join_all;
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor};
use uuid::Uuid;
use vestibule::accounts::sessions;
use vestibule::accounts::sessions::{Exchange, Lifetimes};
use vestibule::domain::actor::Origin;

use crate::support::app::{Answer, App};
use crate::support::token::claims;

const PEOPLE: usize = 40;

/// Ways in which one item can make a statement fail, and the SQL of a trigger for each.
const FAILURES: [(&str, &str); 8] = [
    (
        "a constraint",
        "RAISE EXCEPTION 'bad' USING ERRCODE = '23514'",
    ),
    ("a bug", "RAISE EXCEPTION 'bad' USING ERRCODE = 'XX000'"),
    (
        "a conflict",
        "RAISE EXCEPTION 'bad' USING ERRCODE = '40001'",
    ),
    (
        "a deadlock",
        "RAISE EXCEPTION 'bad' USING ERRCODE = '40P01'",
    ),
    ("a lock", "RAISE EXCEPTION 'bad' USING ERRCODE = '55P03'"),
    ("no room", "RAISE EXCEPTION 'bad' USING ERRCODE = '53100'"),
    ("a division", "PERFORM 1 / (length(NEW.device_name) - 3)"),
    (
        "the end of the connection",
        "PERFORM pg_terminate_backend(pg_backend_pid())",
    ),
];

/// Makes changes of a session fail like that if its device is called "bad".
async fn break_it(app: &App, sql: &str) {
    let statements = format!(
        "CREATE OR REPLACE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN IF NEW.device_name = 'bad' THEN {sql}; END IF; RETURN NEW; END $$;
         CREATE OR REPLACE TRIGGER bad BEFORE INSERT OR UPDATE ON sessions FOR EACH ROW EXECUTE FUNCTION bad()"
    );
    app.database
        .pool
        .execute(AssertSqlSafe(statements))
        .await
        .unwrap();
}

async fn mend_it(app: &App) {
    app.database
        .run("DROP TRIGGER IF EXISTS bad ON sessions")
        .await;
}

/// Signs everyone in at the same moment, which the provider releases. The first device is called
/// "bad".
async fn sign_in_together(app: &App, name: &str) -> Vec<Answer> {
    let sign_in = async |number| {
        let subject = format!("{name}-{number}");
        let token = app.token(&claims(&subject, &format!("{subject}@example.com")));
        let device = if number == 0 { "bad" } else { "good" };
        app.post(
            "idp",
            &json!({ "id_token": token, "device": { "name": device } }),
        )
        .await
    };
    app.together((0..PEOPLE).map(sign_in)).await
}

async fn refresh_together(app: &App, tokens: &[String]) -> Vec<Answer> {
    join_all(tokens.iter().map(|token| app.refresh(token))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_item_of_a_batch_does_not_fail_others() {
    let app = App::start().await;
    for (way, sql) in FAILURES {
        // New users, then known users, then a refresh.
        for step in ["created", "signed_in"] {
            break_it(&app, sql).await;
            let sessions = app.database.rows().await[2];
            let answers = sign_in_together(&app, &way.replace(' ', "-")).await;
            let (bad, good) = answers.split_first().unwrap();
            assert!(bad.status.as_u16() >= 500, "{way}, {step}: {}", bad.text);
            for answer in good {
                assert_eq!(answer.outcome(), step, "{way}: {}", answer.text);
            }
            let now = app.database.rows().await[2];
            assert_eq!(
                now,
                sessions + PEOPLE - 1,
                "{way}, {step}: one session each"
            );
            mend_it(&app).await;
            let mended = sign_in_together(&app, &way.replace(' ', "-")).await;
            assert!(
                mended.iter().all(|answer| answer.status.is_success()),
                "{way}, {step}"
            );
            if step == "signed_in" {
                break_it(&app, sql).await;
                let mut tokens: Vec<_> = mended.iter().map(Answer::refresh_token).collect();
                let answers = refresh_together(&app, &tokens).await;
                let (bad, good) = answers.split_first().unwrap();
                assert!(bad.status.as_u16() >= 500, "{way}: {}", bad.text);
                for (token, answer) in tokens.iter_mut().skip(1).zip(good) {
                    assert_eq!(answer.status, 200, "{way}: {}", answer.text);
                    *token = answer.refresh_token();
                }
                mend_it(&app).await;
                let answers = refresh_together(&app, &tokens).await;
                assert!(
                    answers.iter().all(|answer| answer.status == 200),
                    "{way}: nobody lost a session"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batched_sign_ins_of_one_identity_or_address_create_one_user() {
    let app = App::start().await;
    for round in 0..20 {
        let sign_in = async |number| {
            // Four identities, two of which have the same address.
            let which: usize = number % 4;
            let subject = format!("subject-{round}-{which}");
            let email = format!("address-{round}-{}@example.com", which.min(2));
            app.post_until_served("idp", &app.token(&claims(&subject, &email)))
                .await
        };
        let answers = app.together((0..PEOPLE).map(sign_in)).await;
        assert!(
            answers.iter().all(|answer| answer.status.is_success()),
            "round {round}"
        );
        let count = |outcome: &str| {
            answers
                .iter()
                .filter(|answer| answer.outcome() == outcome)
                .count()
        };
        assert_eq!((count("created"), count("linked")), (3, 1), "round {round}");
    }
    assert_eq!(app.database.rows().await, [60, 80, 20 * PEOPLE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_identical_refreshes_in_a_batch_share_a_result() {
    let app = App::start().await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    let (session_id, family, live): (Uuid, Vec<u8>, Vec<u8>) = app
        .database
        .row("SELECT id, family_hash, token_hash FROM sessions")
        .await;
    let item = |family_hash: [u8; 16], presented_hash: [u8; 16]| {
        Arc::new(Exchange {
            session_id,
            family_hash,
            presented_hash,
            successor_hashes: [[1; 16], [2; 16], [3; 16]],
            previous_hashes: None,
            key: None,
            origin: Origin::default(),
        })
    };
    let family = family.try_into().unwrap();
    let live = live.try_into().unwrap();
    let items = [
        item(family, live),
        item(family, live),
        item([0; 16], live),
        item(family, [0; 16]),
    ];
    let lifetimes = Lifetimes {
        refresh_token_ttl: 60,
        absolute_ttl: 60,
        repeat: 30,
        refresh_grace: 60,
    };
    let verdicts = sessions::refresh(&app.database.pool, &items, lifetimes)
        .await
        .unwrap();
    let told = verdicts
        .iter()
        .map(|verdict| verdict.as_ref().map(Result::is_ok))
        .collect::<Vec<_>>();
    assert_eq!(
        told,
        [Some(true), Some(true), None, None],
        "another family or another token runs after it"
    );
}
