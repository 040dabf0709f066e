//! The filters of the list of users, as they are in the URL and in the form.

use rocket::FromForm;
use serde::Serialize;
use url::form_urlencoded;

use crate::admin::dates::{begin_of, end_of};
use crate::admin::fields::{NothingMatches, read, tidy};
use crate::admin::users::store::{Days, Filters, Sort, Status, Times, day};

/// The filters as they are in the URL.
#[derive(FromForm)]
pub(super) struct Parameters<'r> {
    q: Option<&'r str>,
    provider: Option<&'r str>,
    status: Option<&'r str>,
    created_from: Option<&'r str>,
    created_to: Option<&'r str>,
    seen_from: Option<&'r str>,
    seen_to: Option<&'r str>,
    sort: Option<&'r str>,
    /// The cursor at which the page begins.
    pub at: Option<&'r str>,
    /// The position of its first user, as the link to the page says.
    pub number: Option<usize>,
}

/// The filters after clean-up, as the form shows them again.
#[derive(Default, Serialize)]
pub(super) struct ListQuery {
    pub q: String,
    provider: String,
    status: &'static str,
    created_from: String,
    created_to: String,
    seen_from: String,
    seen_to: String,
    sort: &'static str,
}

impl Parameters<'_> {
    pub fn tidy(&self) -> ListQuery {
        ListQuery {
            q: tidy(self.q),
            provider: tidy(self.provider),
            status: self.status.and_then(|name| name.parse().ok()).map_or("", |status: Status| status.into()),
            created_from: tidy(self.created_from),
            created_to: tidy(self.created_to),
            seen_from: tidy(self.seen_from),
            seen_to: tidy(self.seen_to),
            sort: self.sort.and_then(|name| name.parse::<Sort>().ok()).unwrap_or_default().into(),
        }
    }
}

impl ListQuery {
    pub fn sort(&self) -> Sort {
        self.sort.parse().unwrap_or_default()
    }

    /// Returns the fields beside the search and the order that are filled in.
    pub fn filled(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields().into_iter().filter(|(name, value)| !value.is_empty() && !["q", "sort"].contains(name))
    }

    pub fn filters(&self, zone: Option<&str>) -> Result<Filters, NothingMatches> {
        Ok(Filters {
            provider: read(&self.provider, |name| Some(name.to_owned()))?,
            status: self.status.parse().ok(),
            created: Times {
                from: read(&self.created_from, |day| begin_of(day, zone))?,
                to: read(&self.created_to, |day| end_of(day, zone))?,
            },
            last_seen: Days { from: read(&self.seen_from, day)?, to: read(&self.seen_to, day)? },
        })
    }

    /// Returns the end of the list's URL with these filters, in this order and from this cursor on.
    pub fn suffix(&self, sort: Sort, at: Option<&str>) -> String {
        let mut query = self.fields_in(sort, None);
        query.extend_pairs(at.map(|at| ("at", at)));
        suffix(query)
    }

    /// Returns the end of the list's URL without one of these filters.
    pub fn without(&self, field: &str) -> String {
        suffix(self.fields_in(self.sort(), Some(field)))
    }

    /// Returns the end of the list's URL with this state.
    pub fn with_status(&self, status: &str) -> String {
        let mut query = self.fields_in(self.sort(), Some("status"));
        query.append_pair("status", status);
        suffix(query)
    }

    /// Returns the fields beside the end of the creation that are filled in.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields()
            .into_iter()
            .filter(|(name, value)| !value.is_empty() && !["created_to", "sort"].contains(name))
    }

    /// Returns the fields that are filled in, for the record of the access.
    pub fn searched(&self) -> Vec<(&'static str, &str)> {
        let default = ("sort", Sort::default().into());
        self.fields().into_iter().filter(|field| !field.1.is_empty() && *field != default).collect()
    }

    fn fields_in(&self, sort: Sort, without: Option<&str>) -> form_urlencoded::Serializer<'static, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.fields() {
            let value = if name == "sort" { sort.into() } else { value };
            if !value.is_empty() && Some(name) != without && (name != "sort" || sort != Sort::default()) {
                query.append_pair(name, value);
            }
        }
        query
    }

    fn fields(&self) -> [(&'static str, &str); 8] {
        [
            ("q", &self.q),
            ("provider", &self.provider),
            ("status", self.status),
            ("created_from", &self.created_from),
            ("created_to", &self.created_to),
            ("seen_from", &self.seen_from),
            ("seen_to", &self.seen_to),
            ("sort", self.sort),
        ]
    }
}

fn suffix(mut query: form_urlencoded::Serializer<'static, String>) -> String {
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}
