//! The causes of an error, for people who read the log.

use std::error::Error;
use std::iter;

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Returns the innermost cause, which is the clearest, such as "Connection refused".
pub fn root(error: &(dyn Error + 'static)) -> String {
    chain(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

pub fn line(error: &(dyn Error + 'static)) -> String {
    chain(error)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
