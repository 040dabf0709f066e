//! Filters on lists of users.

use sqlx::{Postgres, QueryBuilder};
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};

use crate::store::partitions::first_id;

/// The conditions of a `WHERE` clause, joined by `AND`.
pub(super) struct Conditions<'a> {
    sql: &'a mut QueryBuilder<Postgres>,
    none_yet: bool,
}

impl<'a> Conditions<'a> {
    /// Begins the conditions after a `FROM` clause.
    pub(super) const fn of(sql: &'a mut QueryBuilder<Postgres>) -> Self {
        Self { sql, none_yet: true }
    }

    /// Closes a subquery.
    pub(super) fn close(&mut self) {
        self.sql.push(")");
    }

    /// Closes a condition in parentheses, and requires that it is not met.
    pub(super) fn close_denied(&mut self) {
        self.sql.push(") IS NOT TRUE");
    }

    /// Begins a condition, and returns the query to append it to.
    pub(super) fn and(&mut self) -> &mut QueryBuilder<Postgres> {
        self.sql.push(if self.none_yet { " WHERE " } else { " AND " });
        self.none_yet = false;
        self.sql
    }
}

/// The state of a user, by its name in URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Not disabled.
    Active,
    /// Disabled by staff.
    Disabled,
    /// With an e-mail address that no provider vouches for.
    Unverified,
}

impl Status {
    /// Returns the condition, in the words of the partial indexes.
    const fn condition(self) -> &'static str {
        match self {
            Self::Active => "u.disabled_at IS NULL",
            Self::Disabled => "u.disabled_at IS NOT NULL",
            Self::Unverified => "NOT u.email_verified AND u.email IS NOT NULL",
        }
    }
}

/// A time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Start, inclusive.
    pub from: Option<OffsetDateTime>,
    /// End, exclusive.
    pub to: Option<OffsetDateTime>,
}

/// A range of days in UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Days {
    /// The first day.
    pub from: Option<Date>,
    /// The last day.
    pub to: Option<Date>,
}

/// Parses a day `YYYY-MM-DD` of the years 1 to 9999, and returns `None` for anything else. PostgreSQL has earlier days,
/// but not all that can be written: 4714 BC is its first year.
#[must_use]
pub fn day(text: &str) -> Option<Date> {
    Date::parse(text, &Iso8601::DATE).ok().filter(|day| (1..=9999).contains(&day.year()))
}

/// The conditions on a user. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Provider of one of the user's identities.
    pub provider: Option<String>,
    /// State of the user.
    pub status: Option<Status>,
    /// Time of the user's creation.
    pub created: Times,
    /// Days on one of which the user was last seen.
    pub last_seen: Days,
}

impl Filters {
    /// Returns `true` if every user passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if the other filters may be so rare that a scan of a provider's users would find matches late.
    pub(super) fn are_rare_beside_provider(&self) -> bool {
        matches!(self.status, Some(Status::Disabled | Status::Unverified))
            || self.last_seen != Days::default()
    }

    pub(super) fn push(&self, when: &mut Conditions<'_>) {
        if let Some(provider) = &self.provider {
            let exists = "EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.provider = ";
            when.and().push(exists).push_bind(provider.clone());
            // The planner does not infer a condition on one id from that on the other.
            self.push_created(when, "i.user_id");
            when.close();
        }
        self.push_beside_provider(when);
    }

    pub(super) fn push_beside_provider(&self, when: &mut Conditions<'_>) {
        if let Some(status) = self.status {
            when.and().push(status.condition());
        }
        self.push_created(when, "u.id");
        self.push_last_seen(when, "u.last_seen_on");
    }

    pub(super) fn push_last_seen(&self, when: &mut Conditions<'_>, day: &'static str) {
        if let Some(from) = self.last_seen.from {
            when.and().push(day).push(" >= ").push_bind(from);
        }
        if let Some(to) = self.last_seen.to {
            when.and().push(day).push(" <= ").push_bind(to);
        }
    }

    /// Appends the condition on the time of creation as a range of ids, which grow with it.
    pub(super) fn push_created(&self, when: &mut Conditions<'_>, id: &'static str) {
        if let Some(from) = self.created.from {
            when.and().push(id).push(" >= ").push_bind(first_id(from));
        }
        if let Some(to) = self.created.to {
            when.and().push(id).push(" < ").push_bind(first_id(to));
        }
    }
}
