//! Positions in a list. A cursor is opaque to clients, and forging one gains nothing: it is parsed
//! into these types, and anything else is rejected.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::admin::lists::users::filter::day;
use crate::admin::lists::users::{Part, Sort};

/// Maximum length of an encoded cursor, in bytes. The longest key is a name of 200 characters.
const MAX_LENGTH: usize = 2048;

/// The side of the position to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Before,
    After,
}

/// A position in a list: the user there, and their sort key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor(Sort, Direction, Uuid, Option<String>);

impl Cursor {
    pub(super) const fn new(
        sort: Sort,
        direction: Direction,
        id: Uuid,
        key: Option<String>,
    ) -> Self {
        Self(sort, direction, id, key)
    }

    pub fn decode(text: &str) -> Option<Self> {
        let cursor: Self = decode(text)?;
        let sound = match (cursor.0, &cursor.3) {
            (Sort::Newest | Sort::Oldest, key) => key.is_none(),
            (Sort::LastSeen, Some(key)) => day(key).is_some(),
            (_, Some(key)) => is_text(key),
            (_, None) => true,
        };
        sound.then_some(cursor)
    }

    pub fn encode(&self) -> String {
        encode(self)
    }

    pub const fn sort(&self) -> Sort {
        self.0
    }

    pub(super) const fn direction(&self) -> Direction {
        self.1
    }

    pub(super) const fn id(&self) -> Uuid {
        self.2
    }

    pub(super) const fn part(&self) -> Part {
        match (self.0, &self.3) {
            (Sort::Newest | Sort::Oldest, _) => Part::All,
            (_, Some(_)) => Part::Present,
            (_, None) => Part::Absent,
        }
    }

    /// Binds the key with the type of the column that it is compared with.
    pub(super) fn push_key(&self, sql: &mut QueryBuilder<Postgres>) {
        match (self.0, &self.3) {
            (Sort::LastSeen, Some(key)) => sql.push_bind(day(key)),
            (_, key) => sql.push_bind(key.clone()),
        };
    }
}

pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Option<T> {
    let bytes = URL_SAFE_NO_PAD
        .decode(Some(text).filter(|text| text.len() <= MAX_LENGTH)?)
        .ok()?;
    serde_json::from_slice(&bytes).ok()
}

pub(super) fn encode(position: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(position).unwrap_or_default())
}

/// Returns `true` if PostgreSQL can store the text: it cannot store a NUL.
pub(super) fn is_text(key: &str) -> bool {
    !key.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_decodes_to_itself_and_forged_ones_are_rejected() {
        let cursors = [
            Cursor::new(Sort::Newest, Direction::After, Uuid::max(), None),
            Cursor::new(
                Sort::LastSeen,
                Direction::Before,
                Uuid::max(),
                Some("2026-02-28".into()),
            ),
            Cursor::new(
                Sort::Name,
                Direction::After,
                Uuid::nil(),
                Some("o'brien \u{10ffff}\\".into()),
            ),
            Cursor::new(Sort::Email, Direction::After, Uuid::nil(), None),
        ];
        for cursor in cursors {
            let text = cursor.encode();
            assert_eq!(Cursor::decode(&text), Some(cursor));
            for forged in [
                &text[1..],
                &text[..text.len() - 1],
                &format!("{text}="),
                &text.repeat(2),
            ] {
                assert_eq!(Cursor::decode(forged), None, "{forged}");
            }
        }
        let id = Uuid::nil();
        for forged in [
            String::new(),
            "-1".into(),
            "1e18".into(),
            "x".repeat(1_000_000),
            URL_SAFE_NO_PAD.encode(format!(r#"["newest","after","{id}","key"]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["last_seen","after","{id}","2026-02-30"]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["last_seen","after","{id}","infinity"]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["last_seen","after","{id}","-009999-01-01"]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["last_seen","after","{id}","0000-12-31"]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["email","after","{id}","a\u0000b"]"#)),
            URL_SAFE_NO_PAD.encode(format!(
                r#"["email; DROP TABLE users","after","{id}",null]"#
            )),
            URL_SAFE_NO_PAD.encode(format!(r#"["email","sideways","{id}",null]"#)),
            URL_SAFE_NO_PAD.encode(format!(r#"["email","after","{id}",null,null]"#)),
            URL_SAFE_NO_PAD.encode(r#"["email","after","1 OR 1=1",null]"#),
        ] {
            assert_eq!(Cursor::decode(&forged), None, "{forged:.60}");
        }
    }
}
