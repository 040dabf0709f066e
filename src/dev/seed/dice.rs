//! Chance, and ids that tell the time that somebody pretends it was.

use time::OffsetDateTime;
use uuid::{Builder, Uuid};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub(super) type Millis = u64;

pub(super) const DAY: Millis = 24 * 60 * 60 * 1000;

/// A source of chance that can be repeated.
#[derive(Debug)]
pub(super) struct Dice(fastrand::Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.0.u32(..100) < chance
    }

    /// Below that number, each equally often.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    pub fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.0.usize(..list.len())]
    }

    pub fn between(&mut self, from: Millis, to: Millis) -> Millis {
        if from < to { self.0.u64(from..to) } else { to }
    }

    /// Some days before a time, more often few than many.
    pub fn lately(&mut self, before: Millis, days: u64) -> Millis {
        let longest = self.0.u64(1..=days * DAY);
        before.saturating_sub(self.0.u64(..longest))
    }

    /// So many digits.
    pub fn digits(&mut self, count: usize) -> String {
        (0..count).map(|place| char::from(b'0' + self.0.u8(u8::from(place == 0)..10))).collect()
    }

    /// So many hexadecimal digits.
    pub fn hex(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b"0123456789abcdef"[self.0.usize(..16)])).collect()
    }

    /// An id as it was made then (RFC 9562 §5.7).
    pub fn id(&mut self, at: Millis) -> Uuid {
        let mut random = [0; 10];
        self.0.fill(&mut random);
        Builder::from_unix_timestamp_millis(at, &random).into_uuid()
    }
}

/// A time as PostgreSQL reads it.
pub(super) fn timestamp(at: Millis) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!("{} {}+00", time.date(), time.time())
}

/// Its day.
pub(super) fn day(at: Millis) -> String {
    timestamp(at)[..10].to_owned()
}
