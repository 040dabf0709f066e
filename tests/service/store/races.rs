//! First sign-ins that race each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::support::app::{Answer, App};
use crate::support::race::rounds;
use crate::support::token::{claims, with};

/// Returns the number of racing requests in a round: few come closest together, many overtake each
/// other.
const fn parallel(round: usize) -> usize {
    if round % 10 == 9 { 40 } else { 8 }
}

/// Sends `parallel` requests at once, request `n` with the token and provider from `which`.
async fn at_once(
    app: &Arc<App>,
    parallel: usize,
    which: impl Fn(usize) -> (&'static str, String),
) -> Vec<(usize, Answer)> {
    let barrier = Arc::new(Barrier::new(parallel));
    let mut requests = JoinSet::new();
    for number in 0..parallel {
        let app = app.clone();
        let barrier = barrier.clone();
        let (provider, token) = which(number);
        requests.spawn(async move {
            barrier.wait().await;
            (number, app.post_until_served(provider, &token).await)
        });
    }
    requests.join_all().await
}

fn outcomes(answers: &[(usize, Answer)]) -> BTreeMap<(u16, String), usize> {
    answers
        .iter()
        .fold(BTreeMap::new(), |mut counts, (_, answer)| {
            let name = if answer.status.is_success() {
                answer.outcome()
            } else {
                answer.error()
            };
            *counts.entry((answer.status.as_u16(), name)).or_default() += 1;
            counts
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_first_sign_ins_of_one_identity_make_one_user() {
    let app = Arc::new(App::start().await);
    for round in 0..rounds() {
        // Without an address, only the unique key of identities distinguishes the requests.
        let email = if round % 2 == 0 {
            json!(format!("user-{round}@example.com"))
        } else {
            json!(null)
        };
        let token = app.token(&with(
            claims(&format!("subject-{round}"), ""),
            &json!({ "email": email }),
        ));
        let answers = at_once(&app, parallel(round), |_| ("idp", token.clone())).await;

        let expected = BTreeMap::from([
            ((200, "signed_in".into()), parallel(round) - 1),
            ((201, "created".into()), 1),
        ]);
        assert_eq!(outcomes(&answers), expected, "round {round}");
        let user = answers[0].1.user_id();
        assert!(
            answers.iter().all(|(_, answer)| answer.user_id() == user),
            "round {round}"
        );
        app.provider.revoke(&token);
    }
    let sign_ins: usize = (0..rounds()).map(parallel).sum();
    assert_eq!(app.database.rows().await, [rounds(), rounds(), sign_ins]);
}
