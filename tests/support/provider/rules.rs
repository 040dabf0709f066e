//! The choice of the behaviour for a request, and the usual answer to it.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::answer::Answer;
use super::apple::Apple;
use super::behaviour::Behaviour;
use super::gate::Latch;
use super::recorded::Recorded;

/// The behaviour for a request.
type Choice = Box<dyn Fn(&Recorded) -> Behaviour + Send>;

/// The provider's state, which tests set.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) claims: HashMap<String, Value>,
    pub(super) once: VecDeque<Behaviour>,
    pub(super) by_token: HashMap<String, Behaviour>,
    pub(super) by_request: Option<Choice>,
    pub(super) always: Behaviour,
    pub(super) gate: Option<Latch>,
    pub(super) apple: Apple,
}

impl Rules {
    /// Decides for a request: the behaviour, the usual answer, and the gate that it waits at.
    pub(super) fn choose(&mut self, request: &Recorded) -> (Behaviour, Answer, Option<Latch>) {
        let token = request.token().unwrap_or_default();
        let once = self.once.pop_front();
        let behaviour = once.or_else(|| self.by_request.as_ref().map(|choose| choose(request)));
        let behaviour =
            behaviour.unwrap_or_else(|| self.by_token.get(&token).unwrap_or(&self.always).clone());
        // Apple's state changes only if the provider behaves as usual, perhaps after a delay.
        let works = match &behaviour {
            Behaviour::Delay { then, .. } => matches!(**then, Behaviour::Usual),
            behaviour => matches!(behaviour, Behaviour::Usual),
        };
        let apple = if works {
            self.apple.answer(request)
        } else {
            None
        };
        (
            behaviour,
            apple.unwrap_or_else(|| self.usual(request, &token)),
            self.gate.clone(),
        )
    }

    /// The honest answer.
    fn usual(&self, request: &Recorded, token: &str) -> Answer {
        let (code, text) = match self.claims.get(token) {
            _ if request.path != "/tokeninfo" => (404, r#"{"error":"not_found"}"#.to_owned()),
            Some(claims) => (200, claims.to_string()),
            None => (400, r#"{"error":"invalid_token"}"#.to_owned()),
        };
        Answer::new(code, "application/json", text.into())
    }
}
