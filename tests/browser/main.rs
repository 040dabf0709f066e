//! The pages as people meet them: in a real browser, on a telephone and on a desk, in daylight and
//! in the dark, with and without scripts, by mouse and by keyboard.
//!
//! It takes Chromium and its driver; Java, `axe-core` and `vnu-jar` judge the pages (`npm ci` in this
//! folder installs the latter two). A test that lacks what it needs says so.

#[cfg(not(all(feature = "dev", debug_assertions)))]
compile_error!("the tests use the development parts; run them without --release and --no-default-features");

#[allow(dead_code, reason = "the other test binary uses the rest of it")]
#[path = "../support/mod.rs"]
mod support;

mod api_description;
mod axe;
mod chromium;
mod every_page;
mod journeys;
mod keyboard;
mod measures;
mod steps;
mod tools;
mod valid;
