//! Which behaviour a request meets, and what the usual answer to it is.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::answer::Answer;
use super::apple::Apple;
use super::behaviour::Behaviour;
use super::gate::Latch;
use super::recorded::Recorded;

/// What tests have told the provider so far.
#[derive(Debug, Default)]
pub(super) struct Rules {
    told: Mutex<Told>,
    pub(super) apple: Apple,
}

#[derive(Debug, Default)]
struct Told {
    claims: HashMap<String, Vec<u8>>,
    once: VecDeque<Arc<Behaviour>>,
    by_token: HashMap<String, Arc<Behaviour>>,
    always: Arc<Behaviour>,
    gate: Option<Arc<Latch>>,
}

/// What is to be done with one request.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) behaviour: Arc<Behaviour>,
    pub(super) usual: Answer,
    pub(super) gate: Option<Arc<Latch>>,
}

impl Rules {
    pub(super) fn accept(&self, token: &str, claims: &Value) {
        let claims = claims.to_string().into_bytes();
        self.told().claims.insert(token.to_owned(), claims);
    }

    pub(super) fn revoke(&self, token: &str) {
        self.told().claims.remove(token);
    }

    pub(super) fn always(&self, behaviour: Behaviour) {
        self.told().always = Arc::new(behaviour);
    }

    pub(super) fn lasting(&self) -> Behaviour {
        Behaviour::clone(&self.told().always)
    }

    pub(super) fn for_token(&self, token: &str, behaviour: Behaviour) {
        let behaviour = Arc::new(behaviour);
        self.told().by_token.insert(token.to_owned(), behaviour);
    }

    pub(super) fn once(&self, behaviour: Behaviour) {
        self.told().once.push_back(Arc::new(behaviour));
    }

    pub(super) fn hold(&self, gate: Arc<Latch>) {
        self.told().gate = Some(gate);
    }

    /// Whether a connection just accepted is to be reset, using up the rule when it holds once.
    pub(super) fn resets_new_connection(&self) -> bool {
        let mut told = self.told();
        let first = told.once.front().map(AsRef::as_ref);
        match first {
            Some(Behaviour::ResetOnConnect) => told.once.pop_front().is_some(),
            Some(_) => false,
            None => matches!(*told.always, Behaviour::ResetOnConnect),
        }
    }

    /// Decides for a request; later changes do not touch it, even while it waits at a gate.
    pub(super) fn choose(&self, request: &Recorded) -> Chosen {
        // Decoded before the lock is taken: no connection waits for another's parsing.
        let token = request.token();
        let mut told = self.told();
        let once = told.once.pop_front();
        let chosen = once.or_else(|| told.by_token.get(token.as_deref()?).cloned());
        let behaviour = chosen.unwrap_or_else(|| Arc::clone(&told.always));
        // Apple does what it is asked for only if it works.
        let works = match &*behaviour {
            Behaviour::Delay { then, .. } => matches!(**then, Behaviour::Usual),
            behaviour => matches!(behaviour, Behaviour::Usual),
        };
        let apple = if works { self.apple.answer(request) } else { None };
        Chosen {
            behaviour,
            usual: apple.unwrap_or_else(|| told.usual(request, token.as_deref())),
            gate: told.gate.clone(),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// The honest answer.
    fn usual(&self, request: &Recorded, token: Option<&str>) -> Answer {
        if request.path != "/tokeninfo" {
            return error(404, "not_found");
        }
        if request.method != "GET" && request.method != "POST" {
            let mut answer = error(405, "method_not_allowed").with("allow", "GET, POST");
            // The answer to a HEAD has no body, whatever its length says.
            if request.method == "HEAD" {
                answer.body.clear();
            }
            return answer;
        }
        let Some(token) = token else {
            return error(400, "invalid_request");
        };
        match self.claims.get(token) {
            Some(claims) => Answer::new(200, "application/json", claims.clone()),
            None => error(400, "invalid_token"),
        }
    }
}

fn error(code: u16, name: &str) -> Answer {
    let body = format!(r#"{{"error":"{name}"}}"#);
    Answer::new(code, "application/json", body.into_bytes())
}
