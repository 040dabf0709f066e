//! The names of users, and their own text, within the sentences of pages.

use uuid::Uuid;

/// Returns the user's e-mail address or name, or else the id, as a sentence names them.
pub(super) fn called(id: Uuid, email: Option<&str>, name: Option<&str>) -> String {
    email
        .or(name)
        .map_or_else(|| format!("the user {id}"), isolated)
}

/// Isolates a user's own text within a sentence, so that right-to-left letters and direction marks
/// affect only that text (Unicode Standard Annex 9, FSI and PDI).
fn isolated(text: &str) -> String {
    if text.is_ascii() {
        text.to_owned()
    } else {
        format!("\u{2068}{text}\u{2069}")
    }
}
