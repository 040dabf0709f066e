//! The times of retries, as Standard Webhooks recommends. The statement that records a failure
//! varies each by a tenth. After the last retry, a message is parked.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// Seconds from each failed attempt to the next.
const DELAYS: [u64; 9] = [
    5,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];
/// The longest time that a receiver can ask us to wait.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Returns the pause after a failure that follows `failures` others, or `None` if there is no
/// further attempt. A receiver can ask for a longer pause, but not for a shorter one.
pub fn pause(failures: u16, retry_after: Option<Duration>) -> Option<Duration> {
    let delay = DELAYS.get(usize::from(failures))?;
    Some(Duration::from_secs(*delay).max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_retried_for_three_days_and_then_parked() {
        let pauses: Vec<_> = (0..).map_while(|failures| pause(failures, None)).collect();
        assert_eq!(pauses.len(), 9, "ten attempts");
        assert!(pauses.is_sorted());
        assert_eq!(
            pauses.iter().sum::<Duration>().as_secs(),
            5 + 35 * 60 + 75 * 3600
        );
    }

    #[test]
    fn a_receiver_can_ask_for_patience_within_reason() {
        let seconds = |failures, retry_after| {
            pause(failures, Some(Duration::from_secs(retry_after))).map(|pause| pause.as_secs())
        };
        assert_eq!(seconds(0, 120), Some(120));
        assert_eq!(seconds(0, 0), Some(5));
        assert_eq!(seconds(0, u64::MAX), Some(3600));
        assert_eq!(seconds(4, 3600), Some(5 * 3600));
        assert_eq!(seconds(9, 3600), None);
    }
}
