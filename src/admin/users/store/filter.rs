//! Filters on lists of users.

use sqlx::{Postgres, QueryBuilder};
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::store::partitions::first_id;

/// The state of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not disabled.
    Active,
    /// Disabled by staff.
    Disabled,
    /// With an e-mail address that no provider vouches for.
    Unverified,
}

impl Status {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Active, Self::Disabled, Self::Unverified];

    /// Returns the name in URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Unverified => "unverified",
        }
    }

    /// Returns the state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

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

/// A comparison of ids with a position in their order.
pub(super) type After = Option<(&'static str, Uuid)>;

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

    /// Appends all conditions on the user `u`.
    pub(super) fn push(&self, sql: &mut QueryBuilder<Postgres>, after: After) {
        if let Some(provider) = &self.provider {
            let exists = " AND EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.provider = ";
            sql.push(exists).push_bind(provider.clone());
            // The planner does not infer a condition on one id from that on the other.
            self.push_ids(sql, "i.user_id", after);
            sql.push(")");
        }
        self.push_beside_provider(sql, after);
    }

    pub(super) fn push_beside_provider(&self, sql: &mut QueryBuilder<Postgres>, after: After) {
        if let Some(status) = self.status {
            sql.push(" AND ").push(status.condition());
        }
        self.push_ids(sql, "u.id", after);
        self.push_last_seen(sql, "u.last_seen_on");
    }

    pub(super) fn push_last_seen(&self, sql: &mut QueryBuilder<Postgres>, day: &'static str) {
        if let Some(from) = self.last_seen.from {
            sql.push(" AND ").push(day).push(" >= ").push_bind(from);
        }
        if let Some(to) = self.last_seen.to {
            sql.push(" AND ").push(day).push(" <= ").push_bind(to);
        }
    }

    /// Appends the conditions on the id alone: the time of creation, with which ids grow, and the position.
    pub(super) fn push_ids(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str, after: After) {
        if let Some(from) = self.created.from {
            sql.push(" AND ").push(id).push(" >= ").push_bind(first_id(from));
        }
        if let Some(to) = self.created.to {
            sql.push(" AND ").push(id).push(" < ").push_bind(first_id(to));
        }
        if let Some((compare, position)) = after {
            sql.push(" AND ").push(id).push(compare).push_bind(position);
        }
    }
}
