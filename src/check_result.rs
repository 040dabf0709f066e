//! The results of `vestibule check`, one for each item.

#[derive(Debug)]
pub enum CheckResult {
    Ok(String),
    /// The service runs, but the item should be corrected.
    Warn(Fault),
    /// The service does not start, or some users cannot sign in.
    Fail(Fault),
}

#[derive(Debug)]
pub struct Fault {
    pub problem: String,
    pub remedy: String,
}

/// The largest difference between clocks that is not reported, in seconds. Tokens are refused from
/// [`LEEWAY`](crate::domain::claims::LEEWAY) on.
const CLOSE: u64 = 30;

impl Fault {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl CheckResult {
    pub fn warn(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Warn(Fault::new(problem, remedy))
    }

    pub fn fail(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Fail(Fault::new(problem, remedy))
    }

    /// Compares another clock with this machine's; `ahead` is positive if the other one is ahead,
    /// in seconds.
    pub fn of_clock(ahead: i64, whose: &str) -> Self {
        let seconds = ahead.unsigned_abs();
        if seconds <= CLOSE {
            return Self::Ok(format!("differs from this machine's by {seconds} s"));
        }
        let direction = if ahead < 0 { "ahead of" } else { "behind" };
        Self::warn(
            format!("this machine's clock is {seconds} s {direction} {whose}"),
            "compare both with NTP and correct the wrong one, because tokens seem too new or too old",
        )
    }
}
