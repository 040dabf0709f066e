//! The times of attempts. A code lives for minutes, and a token until it is revoked.

/// The life of a code, in seconds ("Token validation": five minutes).
pub const LIFE_OF_CODE: u32 = 5 * 60;
/// Seconds after which a token that could not be revoked is parked.
pub const PATIENCE: u32 = 30 * 24 * 60 * 60;

/// Seconds from each failed exchange to the next.
const EXCHANGE: [u32; 6] = [1, 2, 5, 10, 20, 40];
/// Seconds from each failed revocation to the next.
const REVOCATION: [u32; 8] = [
    10,
    60,
    5 * 60,
    15 * 60,
    30 * 60,
    60 * 60,
    2 * 60 * 60,
    4 * 60 * 60,
];

pub fn after_exchange(attempts: i16) -> u32 {
    nth(&EXCHANGE, attempts)
}

pub fn after_revocation(attempts: i16) -> u32 {
    nth(&REVOCATION, attempts)
}

/// Returns the pause after that many attempts; the last one repeats.
fn nth(pauses: &[u32], attempts: i16) -> u32 {
    let index = usize::from(attempts.unsigned_abs()).saturating_sub(1);
    pauses[index.min(pauses.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_tried_while_valid_and_tokens_finally_every_four_hours() {
        let exchanges: u32 = (1..=10).map(after_exchange).sum();
        assert!(exchanges < LIFE_OF_CODE, "{exchanges}");
        let revocations: Vec<_> = [1, 2, 8, 9, i16::MAX].map(after_revocation).into();
        assert_eq!(revocations, [10, 60, 14_400, 14_400, 14_400]);
        let hour: u32 = (1..=5).map(after_revocation).sum();
        assert!(
            hour < 3600,
            "an outage of an hour is over by the sixth attempt"
        );
    }
}
