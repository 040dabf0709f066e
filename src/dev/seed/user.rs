//! One made-up user with all rows in the database.

use std::fmt::Display;

use uuid::Uuid;

use super::names::{self, DEVICES, DOMAINS, Name};
use super::rng::{DAY, Dice, Millis, day, timestamp};
use crate::domain::refusal::Reason;
use crate::store::seed::{Batch, Table};

/// The age of the oldest sessions and events, in days.
const LATELY: u64 = 30;
/// The lifetime of a refresh token.
const TOKEN: Millis = 30 * DAY;

/// The generator of users.
#[derive(Debug)]
pub(super) struct People {
    given: Vec<Name>,
    family: Vec<Name>,
    /// A part of all e-mail addresses of this run, which makes them differ from those of other runs.
    run: String,
}

/// A made-up user.
struct Person {
    id: Uuid,
    email: Option<String>,
    verified: bool,
    name: Option<String>,
    picture: Option<String>,
    created: Millis,
    disabled: Option<Millis>,
    seen: Option<Millis>,
}

impl People {
    pub fn new(dice: &mut Dice) -> Self {
        Self { given: names::given(), family: names::family(), run: dice.hex(8) }
    }

    /// Adds a user who signed up at `created`.
    pub fn add(&self, batch: &mut Batch, dice: &mut Dice, number: u32, created: Millis, now: Millis) {
        let recent = dice.percent(10);
        let person = self.make_up(dice, number, created, now, recent);
        user(batch, &person);
        let provider = provider(dice, created, now);
        let identity = dice.id(created);
        link(batch, dice, &person, identity, provider, created);
        if dice.percent(30) {
            let at = dice.between(created, now);
            let (id, other) = (dice.id(at), self::provider(dice, at, now));
            link(batch, dice, &person, id, other, at);
        }
        if recent && let Some(seen) = person.seen {
            visit(batch, dice, &person, identity, provider, seen, now);
        }
        if dice.percent(10) {
            let at = dice.lately(now, LATELY);
            refuse(batch, dice, &person, provider, at);
        }
    }

    fn make_up(&self, dice: &mut Dice, number: u32, created: Millis, now: Millis, recent: bool) -> Person {
        let (given, family) = (dice.one_of(&self.given), dice.one_of(&self.family));
        let initial = &given.address[..1];
        let local = match dice.below(4) {
            0 => format!("{}.{}", given.address, family.address),
            1 => format!("{initial}{}", family.address),
            2 => format!("{}_{initial}", family.address),
            _ => given.address.clone(),
        };
        let email = format!("{local}.{}{number:x}@{}", self.run, dice.one_of(&DOMAINS));
        let email = (!dice.percent(4)).then_some(email);
        let name = match dice.below(20) {
            0 => None,
            1 => Some(given.written.to_owned()),
            2 => Some(format!("{} {} {}", given.written, dice.one_of(&self.given).written, family.written)),
            _ => Some(format!("{} {}", given.written, family.written)),
        };
        let seen = match dice.below(100) {
            // The user was imported and has never signed in.
            0..3 if !recent => None,
            3..40 => Some(dice.lately(now, LATELY).max(created)),
            _ if recent => Some(dice.lately(now, LATELY).max(created)),
            _ => Some(dice.between(created, now)),
        };
        Person {
            id: dice.id(created),
            verified: email.is_some() && !dice.percent(5),
            email,
            name,
            picture: dice.percent(40).then(|| format!("https://pictures.example/{}.jpg", dice.hex(24))),
            created,
            disabled: dice.percent(1).then(|| dice.between(created, now)),
            seen,
        }
    }
}

/// Returns the provider of an identity linked at that time: one was switched off long ago, one is new.
fn provider(dice: &mut Dice, created: Millis, now: Millis) -> &'static str {
    let days = now.saturating_sub(created) / DAY;
    match dice.below(100) {
        0..20 if days > 700 => "facebook",
        0..15 if days < 120 => "line",
        0..60 => "google",
        60..85 => "apple",
        85..95 => "microsoft",
        _ => "idp",
    }
}

/// Returns a subject in the provider's format.
fn subject(dice: &mut Dice, provider: &str) -> String {
    match provider {
        "google" => dice.digits(21),
        "apple" => format!("00{}.{}.{}", dice.digits(4), dice.hex(32), dice.digits(4)),
        "facebook" => dice.digits(17),
        "line" => format!("U{}", dice.hex(32)),
        _ => dice.hex(24),
    }
}

fn user(batch: &mut Batch, person: &Person) {
    let created = timestamp(person.created);
    let disabled = person.disabled.map(timestamp);
    let seen = person.seen.map(day);
    batch.push(
        Table::Users,
        &[
            Some(&person.id),
            text(person.email.as_ref()),
            Some(&person.verified),
            text(person.name.as_ref()),
            text(person.picture.as_ref()),
            Some(&created),
            Some(&created),
            text(disabled.as_ref()),
            text(seen.as_ref()),
        ],
    );
}

fn link(batch: &mut Batch, dice: &mut Dice, person: &Person, id: Uuid, provider: &str, at: Millis) {
    let (subject, at) = (subject(dice, provider), timestamp(at));
    batch.push(
        Table::Identities,
        &[
            Some(&id),
            Some(&person.id),
            Some(&provider),
            Some(&subject),
            text(person.email.as_ref()),
            Some(&person.verified),
            text(person.name.as_ref()),
            text(person.picture.as_ref()),
            Some(&at),
            Some(&at),
        ],
    );
}

/// Adds a recent session, and the event of its beginning.
fn visit(
    batch: &mut Batch,
    dice: &mut Dice,
    person: &Person,
    identity: Uuid,
    provider: &str,
    seen: Millis,
    now: Millis,
) {
    let opened = seen.saturating_sub(dice.below(7) as u64 * DAY).max(person.created);
    let (id, (platform, device, agent)) = (dice.id(opened), dice.one_of(&DEVICES));
    let ended = dice.percent(10).then(|| timestamp(dice.between(seen, now)));
    let (ip, at) = (address(dice), timestamp(opened));
    let mut secret = || format!("\\x{}", dice.hex(32));
    let (family, token) = (secret(), secret());
    let rotated = timestamp(seen.max(opened));
    let expires = timestamp(seen + TOKEN);
    batch.push(
        Table::Sessions,
        &[
            Some(&id),
            Some(&identity),
            Some(&family),
            Some(&token),
            None,
            Some(&at),
            Some(&rotated),
            Some(&expires),
            text(ended.as_ref()),
            Some(&"made-up"),
            Some(&ip),
            Some(agent),
            Some(device),
            Some(platform),
        ],
    );
    let kind = if opened == person.created { "user_created" } else { "signed_in" };
    let request = dice.hex(16);
    batch.push(
        Table::Events,
        &[
            Some(&id),
            Some(&at),
            Some(&kind),
            None,
            Some(&provider),
            None,
            Some(&person.id),
            None,
            Some(&ip),
            Some(agent),
            Some(&request),
            None,
        ],
    );
}

/// Adds a refused sign-in, with a random reason.
fn refuse(batch: &mut Batch, dice: &mut Dice, person: &Person, provider: &str, at: Millis) {
    let reason = *dice.one_of(&Reason::ALL);
    let detail = match reason {
        Reason::IssuerMismatch => Some(r#"{"claimed_issuer": "https://login.other.example"}"#.to_owned()),
        Reason::AudienceMismatch => {
            Some(format!(r#"{{"claimed_audience": "{}.apps.other.example"}}"#, dice.digits(12)))
        }
        _ => None,
    };
    let user = (reason == Reason::UserDisabled).then_some(person.id);
    let (id, ip, request) = (dice.id(at), address(dice), dice.hex(32));
    let (at, (_, _, agent)) = (timestamp(at), dice.one_of(&DEVICES));
    batch.push(
        Table::Events,
        &[
            Some(&id),
            Some(&at),
            Some(&"sign_in_refused"),
            Some(&reason),
            Some(&provider),
            text(person.email.as_ref()),
            text(user.as_ref()),
            None,
            Some(&ip),
            Some(agent),
            Some(&request),
            text(detail.as_ref()),
        ],
    );
}

/// Returns an IP address for documentation (RFC 3849, RFC 5737).
fn address(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("2001:db8:{}:{}::{}", dice.hex(4), dice.hex(4), dice.hex(4)),
        1 => format!("198.51.100.{}", dice.below(256)),
        _ => format!("203.0.113.{}", dice.below(256)),
    }
}

fn text<T: Display>(value: Option<&T>) -> Option<&dyn Display> {
    value.map(|value| value as &dyn Display)
}
