//! Made-up users for trying out the pages; a million of them look like the users of some years.
//!
//! They have signed up at a growing pace over three years, at providers that came and went. Half were seen in the
//! last 30 days, which is also the age of the oldest sessions and events: more by day than by night, and one
//! afternoon of refusals. No real person can have their e-mail addresses (RFC 2606).

mod names;
mod rng;
mod user;

use self::rng::{DAY, Millis, Rng};
use self::user::UserGenerator;
use crate::clock;
use crate::store::seed::Batch;

/// The number of users in a batch, which is some megabytes.
const BATCH: u32 = 5_000;
/// The time between the first sign-up and now.
const SIGN_UP_PERIOD: Millis = 3 * 365 * DAY;

/// Batches of users, from the oldest account to the newest.
#[derive(Debug)]
pub struct Seed {
    users: UserGenerator,
    rng: Rng,
    count: u32,
    created: u32,
    now: Millis,
}

impl Seed {
    /// Creates an iterator over `count` users. The same `seed` at the same time creates the same ones.
    #[must_use]
    pub fn new(count: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let now = Millis::try_from(clock::now()).unwrap_or_default() * 1000;
        Self { users: UserGenerator::new(&mut rng), rng, count, created: 0, now }
    }
}

impl Iterator for Seed {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        if self.created == self.count {
            return None;
        }
        let mut batch = Batch::default();
        for number in self.created..self.count.min(self.created + BATCH) {
            // Half have signed up in the last third of the time.
            let age = 1.0 - (f64::from(number) + 0.5).sqrt() / f64::from(self.count).sqrt();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "milliseconds of some years, and whole ones are enough"
            )]
            let before = (age * SIGN_UP_PERIOD as f64) as Millis;
            self.users.add(&mut batch, &mut self.rng, number, self.now - before, self.now);
        }
        self.created = self.count.min(self.created + BATCH);
        Some(batch)
    }
}
