//! Made-up users for trying out the pages; a million of them look like the users of some years.
//!
//! They have signed up at a growing pace over three years, at providers that came and went. Half were seen in the
//! last 30 days, which is also the age of the oldest sessions and events. No real person can have their e-mail
//! addresses (RFC 2606).

mod names;
mod rng;
mod user;

use self::rng::{DAY, Dice, Millis};
use self::user::People;
use crate::clock;
use crate::store::seed::Batch;

/// The number of users in a batch, which is some megabytes.
const BATCH: u32 = 5_000;
/// The time over which users have signed up.
const YEARS: Millis = 3 * 365 * DAY;

/// Batches of users, from the oldest account to the newest.
#[derive(Debug)]
pub struct Seed {
    people: People,
    dice: Dice,
    count: u32,
    done: u32,
    now: Millis,
}

impl Seed {
    /// Creates an iterator over `count` users. `chance` decides everything except their number and the current time.
    #[must_use]
    pub fn new(count: u32, chance: u64) -> Self {
        let mut dice = Dice::new(chance);
        let now = Millis::try_from(clock::now()).unwrap_or_default() * 1000;
        Self { people: People::new(&mut dice), dice, count, done: 0, now }
    }
}

impl Iterator for Seed {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        if self.done == self.count {
            return None;
        }
        let mut batch = Batch::default();
        for number in self.done..self.count.min(self.done + BATCH) {
            // Half have signed up in the last third of the time.
            let age = 1.0 - (f64::from(number) + 0.5).sqrt() / f64::from(self.count).sqrt();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "milliseconds of some years, and whole ones are enough"
            )]
            let before = (age * YEARS as f64) as Millis;
            self.people.add(&mut batch, &mut self.dice, number, self.now - before, self.now);
        }
        self.done = self.count.min(self.done + BATCH);
        Some(batch)
    }
}
