//! The pages in a real browser: on a phone and on a desktop, light and dark, with and without
//! scripts, by mouse and by keyboard.
//!
//! The tests need Chromium and its driver. Java, `axe-core` and `vnu-jar` check the pages; `npm ci`
//! in this folder installs the latter two. Without its programs, a test is skipped with a message.

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
