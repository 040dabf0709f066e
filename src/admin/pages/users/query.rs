//! The filters of the list of users, as they are in the URL and in the form.

use rocket::http::uri::Origin;
use serde::Serialize;

use crate::admin::dates::{begin_of, end_of};
use crate::admin::lists::users::{Days, Filters, Sort, Status, Times, day};
use crate::admin::pages::fields::{Fields, NothingMatches, read};

const FIELDS: [&str; 8] = [
    "q",
    "provider",
    "status",
    "created_from",
    "created_to",
    "seen_from",
    "seen_to",
    "sort",
];

/// The filters after clean-up, as the form shows them again. The default order is an empty field.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub(super) struct ListQuery(pub Fields);

impl ListQuery {
    pub fn read(uri: &Origin<'_>) -> Self {
        let mut fields = Fields::read(uri, &FIELDS);
        let status = fields
            .get("status")
            .parse()
            .map_or("", |status: Status| status.into());
        fields.put("status", status);
        let sort = fields.get("sort").parse().unwrap_or_default();
        fields.put("sort", named(sort));
        Self(fields)
    }

    pub fn q(&self) -> &str {
        self.0.get("q")
    }

    pub fn sort(&self) -> Sort {
        self.0.get("sort").parse().unwrap_or_default()
    }

    /// Returns the fields beside the search and the order that are filled in.
    pub fn filled(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.filled_but(&["q", "sort"])
    }

    pub fn filters(&self, zone: Option<&str>) -> Result<Filters, NothingMatches> {
        let get = |name| self.0.get(name);
        Ok(Filters {
            provider: read(get("provider"), |name| Some(name.to_owned()))?,
            status: get("status").parse().ok(),
            created: Times {
                from: read(get("created_from"), |day| begin_of(day, zone))?,
                to: read(get("created_to"), |day| end_of(day, zone))?,
            },
            last_seen: Days {
                from: read(get("seen_from"), day)?,
                to: read(get("seen_to"), day)?,
            },
        })
    }

    /// Returns the end of the list's URL with these filters, in this order and from this cursor on.
    pub fn suffix(&self, sort: Sort, at: Option<&str>) -> String {
        let parameters = [("sort", named(sort)), ("at", at.unwrap_or_default())];
        let [sort, at] = parameters.map(|field| Some(field).filter(|(_, value)| !value.is_empty()));
        self.0
            .suffix(&["sort"], &sort.into_iter().chain(at).collect::<Vec<_>>())
    }

    pub fn without(&self, field: &str) -> String {
        self.0.suffix(&[field], &[])
    }

    pub fn with_status(&self, status: &str) -> String {
        self.0.suffix(&["status"], &[("status", status)])
    }

    /// Returns the fields that are filled in, except `created_to` and `sort`.
    pub fn kept(&self) -> Vec<(&'static str, String)> {
        self.0.kept(&["created_to", "sort"])
    }
}

/// Returns an order's name in the URL, which is empty for the default.
fn named(sort: Sort) -> &'static str {
    if sort == Sort::default() {
        ""
    } else {
        sort.into()
    }
}
