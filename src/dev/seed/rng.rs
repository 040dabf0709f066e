//! Random values, times and ids.

use time::OffsetDateTime;
use uuid::{Builder, Uuid};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub(super) type Millis = u64;

pub(super) const HOUR: Millis = 60 * 60 * 1000;
pub(super) const DAY: Millis = 24 * HOUR;
/// The share of people who are awake, in percent, by hour of the day (UTC).
const AWAKE: [u32; 24] =
    [30, 20, 15, 12, 15, 25, 40, 60, 75, 80, 80, 78, 82, 80, 76, 75, 78, 85, 95, 100, 98, 85, 65, 45];

/// A random number generator with a seed, whose results can be repeated.
#[derive(Debug)]
pub(super) struct Rng(fastrand::Rng);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns true with a probability of `chance` percent.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.0.u32(..100) < chance
    }

    /// Returns a number below `end`, with equal probability.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    /// Returns an item of a list, with equal probability.
    pub fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.0.usize(..list.len())]
    }

    /// Returns a time in that range, with equal probability.
    pub fn between(&mut self, from: Millis, to: Millis) -> Millis {
        if from < to { self.0.u64(from..to) } else { to }
    }

    /// Returns a time in that range as people use apps: more by day than by night, and less at the weekend.
    pub fn active(&mut self, from: Millis, to: Millis) -> Millis {
        loop {
            let at = self.between(from, to);
            let hour = usize::try_from(at % DAY / HOUR).unwrap_or_default();
            // 1970-01-01 was a Thursday.
            let weekend = matches!(at / DAY % 7, 2 | 3);
            if at == to || self.percent(AWAKE[hour] * if weekend { 70 } else { 100 } / 100) {
                return at;
            }
        }
    }

    /// Returns `count` digits.
    pub fn digits(&mut self, count: usize) -> String {
        (0..count).map(|place| char::from(b'0' + self.0.u8(u8::from(place == 0)..10))).collect()
    }

    /// Returns `count` hexadecimal digits.
    pub fn hex(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b"0123456789abcdef"[self.0.usize(..16)])).collect()
    }

    /// Returns a UUIDv7 of that time (RFC 9562 §5.7).
    pub fn uuid(&mut self, at: Millis) -> Uuid {
        let mut random = [0; 10];
        self.0.fill(&mut random);
        Builder::from_unix_timestamp_millis(at, &random).into_uuid()
    }
}

/// Formats a time for PostgreSQL.
pub(super) fn timestamp(at: Millis) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!("{} {}+00", time.date(), time.time())
}

/// Formats the date of a time for PostgreSQL.
pub(super) fn date(at: Millis) -> String {
    timestamp(at)[..10].to_owned()
}
