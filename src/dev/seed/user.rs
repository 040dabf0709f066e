//! A made-up user, with the rows of the identities, sessions and events.

use std::fmt::Display;

use strum::VariantArray;
use uuid::Uuid;

use super::names::{self, DEVICES, DOMAINS, Name};
use super::rng::{DAY, HOUR, Millis, Rng, date, timestamp};
use crate::domain::refusal::Reason;
use crate::store::seed::{Batch, Table};

/// The age of the oldest sessions and events.
const RECENT: Millis = 30 * DAY;
/// The lifetime of a refresh token.
const REFRESH_TOKEN_TTL: Millis = 30 * DAY;
/// Refused sign-ins, in percent, by reason. The rest have any reason.
const REFUSALS: [(usize, Reason); 5] = [
    (30, Reason::TokenExpired),
    (15, Reason::InvalidToken),
    (10, Reason::NonceMismatch),
    (10, Reason::LinkRequired),
    (5, Reason::EmailNotVerified),
];
/// One afternoon, this long ago, an app was released with a client id that nobody had configured.
const INCIDENT: (Millis, Millis) = (9 * DAY, 9 * DAY - 6 * HOUR);

/// The generator of users.
#[derive(Debug)]
pub(super) struct UserGenerator {
    given: Vec<Name>,
    family: Vec<Name>,
    /// A part of all e-mail addresses of this run, which makes them differ from those of other runs.
    run: String,
}

/// A made-up user.
struct SeedUser {
    id: Uuid,
    email: Option<String>,
    verified: bool,
    name: Option<String>,
    picture: Option<String>,
    created: Millis,
    disabled: Option<Millis>,
    seen: Option<Millis>,
}

impl UserGenerator {
    pub fn new(rng: &mut Rng) -> Self {
        Self { given: names::given(), family: names::family(), run: rng.hex(8) }
    }

    /// Adds a user who signed up at `created`.
    pub fn add(&self, batch: &mut Batch, rng: &mut Rng, number: u32, created: Millis, now: Millis) {
        let opened = sessions(rng, created, now);
        let seen = opened.iter().map(|session| session.used).max();
        let user = self.generate(rng, number, created, now, seen);
        push_user(batch, &user);
        let provider = provider(rng, created, now);
        let identity = rng.uuid(created);
        push_identity(batch, rng, &user, identity, provider, created);
        if rng.percent(30) {
            let at = rng.between(created, now);
            let (id, other) = (rng.uuid(at), self::provider(rng, at, now));
            push_identity(batch, rng, &user, id, other, at);
        }
        for session in &opened {
            push_session(batch, rng, &user, identity, provider, session);
        }
        if rng.percent(10) {
            push_refusal(batch, rng, &user, provider, now);
        }
    }

    fn generate(
        &self,
        rng: &mut Rng,
        number: u32,
        created: Millis,
        now: Millis,
        used: Option<Millis>,
    ) -> SeedUser {
        let (given, family) = (rng.one_of(&self.given), rng.one_of(&self.family));
        let initial = &given.mailbox[..1];
        let local = match rng.below(4) {
            0 => format!("{}.{}", given.mailbox, family.mailbox),
            1 => format!("{initial}{}", family.mailbox),
            2 => format!("{}_{initial}", family.mailbox),
            _ => given.mailbox.clone(),
        };
        let email = format!("{local}.{}{number:x}@{}", self.run, rng.one_of(&DOMAINS));
        let email = (!rng.percent(4)).then_some(email);
        let name = match rng.below(20) {
            0 => None,
            1 => Some(given.written.to_owned()),
            2 => Some(format!("{} {} {}", given.written, rng.one_of(&self.given).written, family.written)),
            _ => Some(format!("{} {}", given.written, family.written)),
        };
        let seen = used.or_else(|| match rng.below(100) {
            // The user was imported and has never signed in.
            0..3 => None,
            3..40 => Some(rng.active(created.max(now - RECENT), now)),
            _ => Some(rng.between(created, now)),
        });
        SeedUser {
            id: rng.uuid(created),
            verified: email.is_some() && !rng.percent(5),
            email,
            name,
            picture: rng.percent(40).then(|| format!("https://pictures.example/{}.jpg", rng.hex(24))),
            created,
            disabled: rng.percent(1).then(|| rng.between(created, now)),
            seen,
        }
    }
}

/// Returns the provider of an identity linked at that time: one was switched off long ago, one is new.
fn provider(rng: &mut Rng, created: Millis, now: Millis) -> &'static str {
    let days = now.saturating_sub(created) / DAY;
    match rng.below(100) {
        0..20 if days > 700 => "facebook",
        0..15 if days < 120 => "line",
        0..60 => "google",
        60..85 => "apple",
        85..95 => "microsoft",
        _ => "idp",
    }
}

/// Returns a subject in the provider's format.
fn subject(rng: &mut Rng, provider: &str) -> String {
    match provider {
        "google" => rng.digits(21),
        "apple" => format!("00{}.{}.{}", rng.digits(4), rng.hex(32), rng.digits(4)),
        "facebook" => rng.digits(17),
        "line" => format!("U{}", rng.hex(32)),
        _ => rng.hex(24),
    }
}

fn push_user(batch: &mut Batch, user: &SeedUser) {
    let created = timestamp(user.created);
    let disabled = user.disabled.map(timestamp);
    let seen = user.seen.map(date);
    batch.push(
        Table::Users,
        &[
            Some(&user.id),
            optional(user.email.as_ref()),
            Some(&user.verified),
            optional(user.name.as_ref()),
            optional(user.picture.as_ref()),
            Some(&created),
            Some(&created),
            optional(disabled.as_ref()),
            optional(seen.as_ref()),
        ],
    );
}

fn push_identity(batch: &mut Batch, rng: &mut Rng, user: &SeedUser, id: Uuid, provider: &str, at: Millis) {
    let (subject, at) = (subject(rng, provider), timestamp(at));
    batch.push(
        Table::Identities,
        &[
            Some(&id),
            Some(&user.id),
            Some(&provider),
            Some(&subject),
            optional(user.email.as_ref()),
            Some(&user.verified),
            optional(user.name.as_ref()),
            optional(user.picture.as_ref()),
            Some(&at),
            Some(&at),
        ],
    );
}

/// A recent session.
struct SeedSession {
    opened: Millis,
    /// The time of its latest refresh.
    used: Millis,
    ended: Option<Millis>,
}

/// Returns the recent sessions of a user: of each new one, and of some others. Some of them have two devices.
fn sessions(rng: &mut Rng, created: Millis, now: Millis) -> Vec<SeedSession> {
    let since = now - RECENT;
    let mut opened = Vec::new();
    if created > since {
        opened.push(created);
    }
    if rng.percent(10) {
        opened.push(rng.active(created.max(since), now));
        if rng.percent(30) {
            opened.push(rng.active(created.max(since), now));
        }
    }
    let session = |opened| {
        let used = if rng.percent(80) { rng.active(opened, now) } else { opened };
        let ended = rng.percent(10).then(|| rng.between(used, now));
        SeedSession { opened, used, ended }
    };
    opened.into_iter().map(session).collect()
}

/// Adds a session, and the events of its beginning and its end.
fn push_session(
    batch: &mut Batch,
    rng: &mut Rng,
    user: &SeedUser,
    identity: Uuid,
    provider: &str,
    session: &SeedSession,
) {
    let (id, &(platform, device, agent)) = (rng.uuid(session.opened), rng.one_of(&DEVICES));
    let (ip, at) = (ip_address(rng), timestamp(session.opened));
    let (ended, end_event) = (session.ended.map(timestamp), session.ended.map(|time| rng.uuid(time)));
    let mut secret = || format!("\\x{}", rng.hex(32));
    let (family, token) = (secret(), secret());
    let rotated = timestamp(session.used);
    let expires = timestamp(session.used + REFRESH_TOKEN_TTL);
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
            optional(ended.as_ref()),
            Some(&"made-up"),
            Some(&device),
            Some(&platform),
        ],
    );
    let kind = if session.opened == user.created { "user_created" } else { "signed_in" };
    let mut push_event =
        |event: Uuid, at: &String, kind: &str, provider: Option<&str>, session: Option<Uuid>| {
            let request = rng.hex(16);
            batch.push(
                Table::Events,
                &[
                    Some(&event),
                    Some(at),
                    Some(&kind),
                    None,
                    optional(provider.as_ref()),
                    None,
                    Some(&user.id),
                    optional(session.as_ref()),
                    Some(&ip),
                    Some(&agent),
                    Some(&request),
                    None,
                ],
            );
        };
    push_event(id, &at, kind, Some(provider), None);
    if let (Some(event), Some(at)) = (end_event, &ended) {
        push_event(event, at, "signed_out", None, Some(id));
    }
}

/// Adds a refused sign-in.
fn push_refusal(batch: &mut Batch, rng: &mut Rng, user: &SeedUser, provider: &str, now: Millis) {
    let (reason, at) = if rng.percent(15) {
        (Reason::AudienceMismatch, rng.between(now - INCIDENT.0, now - INCIDENT.1))
    } else {
        (refusal(rng), rng.active(now - RECENT, now))
    };
    let detail = match reason {
        Reason::IssuerMismatch => Some(r#"{"claimed_issuer": "https://login.other.example"}"#.to_owned()),
        Reason::AudienceMismatch => {
            Some(format!(r#"{{"claimed_audience": "{}.apps.other.example"}}"#, rng.digits(12)))
        }
        _ => None,
    };
    let known = (reason == Reason::UserDisabled).then_some(user.id);
    let (id, ip, request) = (rng.uuid(at), ip_address(rng), rng.hex(32));
    let (at, (_, _, agent)) = (timestamp(at), rng.one_of(&DEVICES));
    batch.push(
        Table::Events,
        &[
            Some(&id),
            Some(&at),
            Some(&"sign_in_refused"),
            Some(&reason),
            Some(&provider),
            optional(user.email.as_ref()),
            optional(known.as_ref()),
            None,
            Some(&ip),
            Some(agent),
            Some(&request),
            optional(detail.as_ref()),
        ],
    );
}

fn refusal(rng: &mut Rng) -> Reason {
    let mut left = rng.below(100);
    for (percent, reason) in REFUSALS {
        if left < percent {
            return reason;
        }
        left -= percent;
    }
    *rng.one_of(Reason::VARIANTS)
}

/// Returns an IP address for documentation (RFC 3849, RFC 5737).
fn ip_address(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => format!("2001:db8:{}:{}::{}", rng.hex(4), rng.hex(4), rng.hex(4)),
        1 => format!("198.51.100.{}", rng.below(256)),
        _ => format!("203.0.113.{}", rng.below(256)),
    }
}

fn optional<T: Display>(value: Option<&T>) -> Option<&dyn Display> {
    value.map(|value| value as &dyn Display)
}
