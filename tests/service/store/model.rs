//! Random sign-ins, refreshes and ends of sessions, compared with a plain model of live sessions.

use std::collections::HashMap;
use std::sync::Arc;

use fastrand::Rng;
use tokio::task::JoinSet;

use crate::support::app::App;
use crate::support::race::rounds;
use crate::support::token::{at, claims};

const USERS: usize = 4;

/// A session's expected state.
#[derive(Debug, Clone)]
struct Session {
    user: usize,
    /// True if it was opened at the second provider.
    second: bool,
    alive: bool,
    access: String,
    live: String,
    /// The previous token, and the expected result of its repeat.
    parent: Option<(String, Repeat)>,
    /// Tokens that a client should no longer present.
    old: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Same,
    Another,
    /// A repeat after a lost response gets the same token for half a minute of the service's clock,
    /// which tests cannot move.
    Either,
}

/// The token that the test presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Live,
    Parent,
    Old,
}

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Next,
    Same,
    Another,
    Either,
    Refused,
}

impl Session {
    fn token(&self, shown: Shown, number: usize) -> Option<String> {
        match shown {
            Shown::Live => Some(self.live.clone()),
            Shown::Parent => self.parent.as_ref().map(|(token, _)| token.clone()),
            Shown::Old => (!self.old.is_empty()).then(|| self.old[number % self.old.len()].clone()),
        }
    }

    fn expected(&self, shown: Shown, enabled: bool) -> Expected {
        match (shown, &self.parent) {
            _ if !self.alive || !enabled => Expected::Refused,
            (Shown::Live, _) => Expected::Next,
            (Shown::Parent, Some((_, Repeat::Same))) => Expected::Same,
            (Shown::Parent, Some((_, Repeat::Another))) => Expected::Another,
            (Shown::Parent, Some((_, Repeat::Either))) => Expected::Either,
            _ => Expected::Refused,
        }
    }

    /// Updates the model with a response's token.
    fn answered(&mut self, shown: Shown, expected: Expected, enabled: bool, token: String) {
        match expected {
            Expected::Next => {
                let parent = std::mem::replace(&mut self.live, token);
                let before = self.parent.replace((parent, Repeat::Same));
                self.old.extend(before.map(|(token, _)| token));
            }
            Expected::Same => assert_eq!(token, self.live),
            Expected::Either if token == self.live => {}
            Expected::Another | Expected::Either => {
                assert_ne!(token, self.live);
                self.old.push(std::mem::replace(&mut self.live, token));
                self.parent = self.parent.take().map(|(token, _)| (token, Repeat::Either));
            }
            Expected::Refused => self.alive &= !(enabled && shown == Shown::Old),
        }
    }
}

/// The sessions that should be live, beside the app that is compared with them.
struct Model {
    app: Arc<App>,
    sessions: Vec<Session>,
    /// True for each user who is not disabled.
    enabled: [bool; USERS],
    ids: HashMap<usize, String>,
    rng: Rng,
    deleted: usize,
    rotated: usize,
    generation: [usize; USERS],
}

impl Model {
    fn below(&mut self, bound: usize) -> usize {
        self.rng.usize(..bound)
    }

    fn claims(&self, user: usize, second: bool) -> serde_json::Value {
        let person = format!("user-{user}-{}", self.generation[user]);
        let email = format!("{person}@example.com");
        if second {
            at("second", &person, &email)
        } else {
            claims(&person, &email)
        }
    }

    async fn sign_in(&mut self) {
        let user = self.below(USERS);
        let second = self.below(3) == 0;
        let provider = if second { "second" } else { "idp" };
        let answer = self
            .app
            .sign_in_at(provider, &self.claims(user, second))
            .await;
        if !self.enabled[user] {
            assert_eq!(answer.error(), "user_disabled");
            return;
        }
        assert!(answer.status.is_success(), "{}", answer.text);
        self.ids.insert(user, answer.user_id());
        let access = answer.access_token();
        let live = answer.refresh_token();
        let parent = None;
        let old = Vec::new();
        self.sessions.push(Session {
            user,
            second,
            alive: true,
            access,
            live,
            parent,
            old,
        });
    }

    /// Refreshes up to eight sessions at once.
    async fn refresh(&mut self) {
        let first = self.below(self.sessions.len());
        let count = 1 + self.below(8);
        let mut requests = JoinSet::new();
        for index in (first..self.sessions.len()).take(count) {
            let kind = self.below(8);
            let number = self.below(1000);
            let shown = match kind {
                0..5 => Shown::Live,
                5 | 6 => Shown::Parent,
                _ => Shown::Old,
            };
            let session = &self.sessions[index];
            let Some(token) = session.token(shown, number) else {
                continue;
            };
            let expected = session.expected(shown, self.enabled[session.user]);
            let app = self.app.clone();
            requests.spawn(async move { (index, shown, expected, app.refresh(&token).await) });
        }
        for (index, shown, expected, answer) in requests.join_all().await {
            let refused = expected == Expected::Refused;
            let status = if refused { 401 } else { 200 };
            assert_eq!(
                answer.status, status,
                "{shown:?} {expected:?}: {}",
                answer.text
            );
            let enabled = self.enabled[self.sessions[index].user];
            self.rotated += usize::from(expected == Expected::Next);
            let session = &mut self.sessions[index];
            if !refused {
                session.access = answer.access_token();
            }
            session.answered(shown, expected, enabled, answer.refresh_token());
        }
    }

    async fn execute(&self, sql: &'static str, id: &str) {
        sqlx::query(sql)
            .bind(id)
            .execute(&self.app.database.pool)
            .await
            .unwrap();
    }

    /// Lets half a minute pass.
    async fn wait(&mut self) {
        self.app.half_a_minute_later().await;
        for session in &mut self.sessions {
            if let Some((_, repeat @ Repeat::Same)) = &mut session.parent {
                *repeat = Repeat::Another;
            }
        }
    }

    async fn sign_out(&mut self) {
        let index = self.below(self.sessions.len());
        let scope = ["local", "others", "global"][self.below(3)];
        let mine = self.sessions[index].clone();
        let answer = self.app.sign_out(&mine.access, scope).await;
        assert_eq!(answer.status, 204, "{}", answer.text);
        if !mine.alive {
            return;
        }
        for (other, session) in self.sessions.iter_mut().enumerate() {
            let ends = (scope != "others" && other == index)
                || (scope != "local" && other != index && session.user == mine.user);
            session.alive &= !ends;
        }
    }

    /// Disables or enables a user, as staff do: the user's sessions end in both cases.
    async fn toggle(&mut self) {
        let user = self.below(USERS);
        let Some(id) = self.ids.get(&user).cloned() else {
            return;
        };
        self.enabled[user] = !self.enabled[user];
        let sql =
            "WITH changed AS (UPDATE users SET disabled_at = CASE WHEN disabled_at IS NULL THEN now() END
                       WHERE id = $1::uuid RETURNING id)
                   UPDATE sessions s SET ended_at = coalesce(ended_at, now())
                   FROM changed c JOIN identities i ON i.user_id = c.id WHERE s.identity_id = i.id";
        self.execute(sql, &id).await;
        let theirs = |session: &&mut Session| session.user == user;
        self.sessions
            .iter_mut()
            .filter(theirs)
            .for_each(|session| session.alive = false);
    }

    /// Removes the identity at the second provider, as unlinking it does.
    async fn unlink(&mut self) {
        let user = self.below(USERS);
        let Some(id) = self.ids.get(&user).cloned() else {
            return;
        };
        self.execute(
            "DELETE FROM identities WHERE user_id = $1::uuid AND provider = 'second'
             AND EXISTS (SELECT FROM identities i WHERE i.user_id = $1::uuid AND i.provider = 'idp')",
            &id,
        )
        .await;
        let left =
            "SELECT count(*) FROM identities WHERE provider = 'second' AND user_id::text = $1";
        let left: i64 = value!(&self.app.database.pool, left, &id);
        if left == 0 {
            let theirs = |session: &&mut Session| session.user == user && session.second;
            self.sessions
                .iter_mut()
                .filter(theirs)
                .for_each(|session| session.alive = false);
        }
    }

    /// Deletes a user; a later sign-in creates a new one.
    async fn delete(&mut self) {
        let user = self.below(USERS);
        let Some(id) = self.ids.remove(&user) else {
            return;
        };
        self.execute("DELETE FROM users WHERE id = $1::uuid", &id)
            .await;
        self.sessions.retain(|session| session.user != user);
        self.enabled[user] = true;
        self.generation[user] += 1;
        self.deleted += 1;
    }

    async fn step(&mut self) {
        if self.sessions.is_empty() {
            return self.sign_in().await;
        }
        match self.below(40) {
            0..8 => self.sign_in().await,
            8..32 => self.refresh().await,
            32..35 => self.wait().await,
            35 | 36 => self.sign_out().await,
            37 => self.toggle().await,
            38 => self.unlink().await,
            _ => self.delete().await,
        }
    }

    /// Compares the live sessions in the model and in the service.
    async fn compare(&self) {
        let alive = "SELECT count(*) FROM sessions s JOIN identities i ON i.id = s.identity_id
                     JOIN users u ON u.id = i.user_id WHERE s.ended_at IS NULL AND u.disabled_at IS NULL";
        let expected = self.sessions.iter().filter(|session| session.alive).count();
        assert_eq!(
            usize::try_from(self.app.database.count(alive).await).unwrap(),
            expected
        );
        let orphans =
            "SELECT count(*) FROM sessions WHERE identity_id NOT IN (SELECT id FROM identities)";
        assert_eq!(self.app.database.count(orphans).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_actions_leave_exactly_the_expected_sessions_alive() {
    let rng = Rng::new();
    println!("seed {}", rng.get_seed());
    let app = Arc::new(App::start().await);
    let sessions = Vec::new();
    let ids = HashMap::new();
    let enabled = [true; USERS];
    let generation = [0; USERS];
    let mut model = Model {
        app,
        sessions,
        enabled,
        ids,
        rng,
        deleted: 0,
        rotated: 0,
        generation,
    };
    for _ in 0..500 + rounds() {
        model.step().await;
        model.compare().await;
    }
    assert!(model.deleted > 0 && model.rotated > 0, "much has happened");
}
