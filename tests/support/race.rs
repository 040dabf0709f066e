//! Races, and their number of rounds.

use tokio::sync::Barrier;

/// Rounds of each race: fifty, or a thousand where `CI` is set.
pub fn rounds() -> usize {
    if std::env::var_os("CI").is_some() {
        1_000
    } else {
        50
    }
}

/// Asserts that each side of a race came first in some rounds. Fifty rounds are too few to assert
/// it.
#[track_caller]
pub fn assert_either_came_first(one: usize) {
    let all = rounds();
    assert!(
        all < 1_000 || (all / 50..all - all / 50).contains(&one),
        "one side came first {one} times of {all}"
    );
}

/// Runs both at once.
pub async fn at_once<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
    let barrier = Barrier::new(2);
    // Boxed: the futures of changes are large.
    let first = Box::pin(first);
    let second = Box::pin(second);
    let first = async {
        barrier.wait().await;
        first.await
    };
    let second = async {
        barrier.wait().await;
        second.await
    };
    tokio::join!(first, second)
}
