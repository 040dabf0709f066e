//! Which users a list holds.

use sqlx::{Postgres, QueryBuilder};
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};

use crate::store::event_log::first_id;

/// The conditions of a statement, all of which have to hold.
pub(super) struct Conditions<'a> {
    sql: &'a mut QueryBuilder<Postgres>,
    none_yet: bool,
}

impl<'a> Conditions<'a> {
    /// Of the statement whose `FROM` has just been written.
    pub(super) const fn of(sql: &'a mut QueryBuilder<Postgres>) -> Self {
        Self { sql, none_yet: true }
    }

    /// Ends those of a subquery.
    pub(super) fn close(&mut self) {
        self.sql.push(")");
    }

    /// Where the next one is to be written.
    pub(super) fn and(&mut self) -> &mut QueryBuilder<Postgres> {
        self.sql.push(if self.none_yet { " WHERE " } else { " AND " });
        self.none_yet = false;
        self.sql
    }
}

/// In which state users are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not disabled.
    Active,
    /// Disabled by staff.
    Disabled,
    /// With an address that no provider vouches for.
    Unverified,
}

impl Status {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Active, Self::Disabled, Self::Unverified];

    /// Its name in addresses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Unverified => "unverified",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// In the words of the partial indexes.
    const fn condition(self) -> &'static str {
        match self {
            Self::Active => "u.disabled_at IS NULL",
            Self::Disabled => "u.disabled_at IS NOT NULL",
            Self::Unverified => "NOT u.email_verified AND u.email IS NOT NULL",
        }
    }
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Not before.
    pub from: Option<OffsetDateTime>,
    /// Before.
    pub to: Option<OffsetDateTime>,
}

/// Days in UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Days {
    /// The first day.
    pub from: Option<Date>,
    /// The last day.
    pub to: Option<Date>,
}

/// The day `YYYY-MM-DD` of the years 1 to 9999; none for anything else. PostgreSQL has days before, but not as many as
/// can be written (4714 BC is the first).
#[must_use]
pub fn day(text: &str) -> Option<Date> {
    Date::parse(text, &Iso8601::DATE).ok().filter(|day| (1..=9999).contains(&day.year()))
}

/// What has to hold of a user. Nothing has to hold by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Has an identity at the provider of that name.
    pub provider: Option<String>,
    /// Is in that state.
    pub status: Option<Status>,
    /// Was created then.
    pub created: Times,
    /// Was last seen on one of these days, and not never.
    pub last_seen: Days,
}

impl Filters {
    /// Whether everybody passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether so few may pass the others that going through a provider's users would find them late.
    pub(super) fn are_rare_beside_provider(&self) -> bool {
        matches!(self.status, Some(Status::Disabled | Status::Unverified))
            || self.last_seen != Days::default()
    }

    pub(super) fn push(&self, when: &mut Conditions<'_>) {
        if let Some(provider) = &self.provider {
            let exists = "EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.provider = ";
            when.and().push(exists).push_bind(provider.clone());
            // The planner does not see that what holds of one id holds of the other.
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

    /// The time of creation, as ids, which grow with it.
    pub(super) fn push_created(&self, when: &mut Conditions<'_>, id: &'static str) {
        if let Some(from) = self.created.from {
            when.and().push(id).push(" >= ").push_bind(first_id(from));
        }
        if let Some(to) = self.created.to {
            when.and().push(id).push(" < ").push_bind(first_id(to));
        }
    }
}
