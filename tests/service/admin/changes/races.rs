//! Two members of staff who change the same users at the same time: one change is made, the other
//! is refused as outdated.

use std::collections::BTreeMap;

use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};

use super::prepared;
use crate::support::app::App;
use crate::support::race::{at_once, rounds};

/// Adds a user with one identity, who has never been seen.
async fn person(app: &App, name: &str) -> (Uuid, Uuid) {
    let ids = (Uuid::now_v7(), Uuid::now_v7());
    run!(&app.database.pool, "WITH new AS (INSERT INTO users (id, email, email_verified) VALUES ($1, $3 || '@example.com', true) RETURNING id)
         INSERT INTO identities (id, user_id, provider, subject) SELECT $2, id, 'idp', $3 FROM new", ids.0, ids.1, name);
    ids
}

/// Returns the owner of each identity, by the names that [`person`] was given.
async fn owners(app: &App) -> BTreeMap<String, Uuid> {
    let rows: Vec<(String, Uuid)> = app
        .database
        .all("SELECT subject, user_id FROM identities")
        .await;
    let count = rows.len();
    let owners: BTreeMap<_, _> = rows.into_iter().collect();
    assert_eq!(owners.len(), count, "no identity is there twice");
    owners
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_move_one_identity_to_different_people_one_does() {
    let app = App::start().await;
    for round in 0..rounds() {
        let (from, identity) = person(&app, "from").await;
        let mut targets = Vec::new();
        let mut moves = Vec::new();
        for name in ["one", "other"] {
            let to = person(&app, name).await.0;
            targets.push(to);
            moves.push(prepared(&app, Change::Move { identity, from, to }).await);
        }
        let second = moves.pop().unwrap();
        let (first, second) = at_once(moves.pop().unwrap(), second).await;

        let done = [first, second].map(|outcome| outcome == Some(Outcome::Done));
        assert!(done[0] != done[1], "round {round}: {first:?} {second:?}");
        let late = if done[0] { second } else { first };
        assert!(
            matches!(late, None | Some(Outcome::Stale)),
            "round {round}: {first:?} {second:?}"
        );
        let new = if done[0] { targets[0] } else { targets[1] };
        let expected = [("from", new), ("one", targets[0]), ("other", targets[1])];
        assert_eq!(
            owners(&app).await,
            expected.map(|(name, id)| (name.to_owned(), id)).into(),
            "round {round}"
        );
        app.database.run("DELETE FROM users").await;
    }
    let events = app
        .database
        .count("SELECT count(*) FROM events WHERE kind = 'identity_moved'")
        .await;
    assert_eq!(events, 2 * i64::try_from(rounds()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_concurrent_deletion_and_merge_exactly_one_happens() {
    let app = App::start().await;
    for round in 0..rounds() {
        let ((from, _), (into, _)) = (person(&app, "from").await, person(&app, "into").await);
        let target = if round % 2 == 0 { from } else { into };
        let deleting = prepared(&app, Change::Delete { user: target }).await;
        let merging = prepared(&app, Change::Merge { from, into }).await;
        let (merged, deleted) = at_once(merging, deleting).await;

        assert!(
            (merged == Some(Outcome::Done)) != (deleted == Some(Outcome::Done)),
            "round {round}: {merged:?} {deleted:?}"
        );
        let expected: &[(&str, Uuid)] = match (merged, target == from) {
            (Some(Outcome::Done), _) => &[("from", into), ("into", into)],
            (_, true) => &[("into", into)],
            (_, false) => &[("from", from)],
        };
        let expected = expected
            .iter()
            .map(|(name, id)| ((*name).to_owned(), *id))
            .collect();
        assert_eq!(
            owners(&app).await,
            expected,
            "round {round}: {merged:?} {deleted:?}"
        );
        let expected = if merged == Some(Outcome::Done) || target == from {
            into
        } else {
            from
        };
        let users: Vec<Uuid> = app.database.values("SELECT id FROM users").await;
        assert_eq!(users, [expected], "round {round}: {merged:?} {deleted:?}");
        app.database.run("DELETE FROM users").await;
    }
}
