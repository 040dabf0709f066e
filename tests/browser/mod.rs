//! The pages as people meet them: in a real browser, on a telephone and on a desk, in daylight and
//! in the dark, with and without scripts, by mouse and by keyboard.
//!
//! It takes Chromium and its driver; Java, `axe-core` and `vnu-jar` judge the pages (`npm ci` in this
//! folder installs the latter two). A test that lacks what it needs says so.

mod api_description;
mod axe;
mod chromium;
mod every_page;
mod journeys;
mod keyboard;
mod measures;
mod steps;
mod tasks;
mod tools;
mod valid;
mod web_page;
mod webdriver;
