//! Filters on lists of users.

use sqlx::{Postgres, QueryBuilder};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;

use crate::events::first_id;

/// The state of a user, by its name in URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, ToSchema)]
#[schema(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    Active,
    Disabled,
    /// Active, but all of their identities are suspended.
    Suspended,
    /// With an e-mail address that no provider vouches for.
    Unverified,
    /// With an identity that is held, because it may be a hijacker's.
    Held,
}

impl Status {
    /// Returns the condition, in the words of the partial indexes.
    const fn condition(self) -> &'static str {
        match self {
            Self::Active => "u.disabled_at IS NULL",
            Self::Disabled => "u.disabled_at IS NOT NULL",
            Self::Suspended => {
                "u.disabled_at IS NULL AND u.id IN (SELECT user_id FROM identities WHERE suspended_at IS NOT NULL)
                 AND NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.suspended_at IS NULL)"
            }
            Self::Unverified => "NOT u.email_verified AND u.email IS NOT NULL",
            Self::Held => "u.id IN (SELECT user_id FROM identities WHERE held_at IS NOT NULL)",
        }
    }
}

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
    pub from: Option<Date>,
    pub to: Option<Date>,
}

/// Parses a day `YYYY-MM-DD` of the years 1 to 9999, and returns `None` for anything else.
/// PostgreSQL has earlier days, but not all that can be written: 4714 BC is its first year.
pub fn day(text: &str) -> Option<Date> {
    Date::parse(text, &Iso8601::DATE)
        .ok()
        .filter(|day| (1..=9999).contains(&day.year()))
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    pub provider: Option<String>,
    pub status: Option<Status>,
    pub created: Times,
    pub last_seen: Days,
}

/// The day of the latest sign-in or refresh of a user `u`.
macro_rules! last_seen_on {
    () => {
        "greatest(u.seen_noted_on, (SELECT max(s.rotated_at)::date
                                     FROM identities i JOIN sessions s ON s.identity_id = i.id WHERE i.user_id = u.id))"
    };
}
pub(super) use last_seen_on;

impl Filters {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Appends the conditions on a user `u`, each after an `AND`.
    pub(super) fn push(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(provider) = &self.provider {
            sql.push(
                " AND EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.provider = ",
            );
            // The planner does not infer a condition on one id from the condition on the other.
            self.push_created(sql.push_bind(provider.clone()), "i.user_id");
            sql.push(")");
        }
        self.push_others(sql);
    }

    /// Appends all conditions except the condition on the provider.
    pub(super) fn push_others(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(status) = self.status {
            sql.push(" AND ").push(status.condition());
        }
        self.push_created(sql, "u.id");
        // The noted day is in an index. The sessions are looked up only if that day does not
        // decide.
        if let Some(from) = self.last_seen.from {
            sql.push(" AND u.seen_noted_on >= ")
                .push_bind(from)
                .push(" - 34");
            sql.push(" AND (u.seen_noted_on >= ").push_bind(from);
            sql.push(concat!(" OR ", last_seen_on!(), " >= "))
                .push_bind(from)
                .push(")");
        }
        if let Some(to) = self.last_seen.to {
            sql.push(" AND u.seen_noted_on <= ").push_bind(to);
            sql.push(" AND (u.seen_noted_on <= ")
                .push_bind(to)
                .push(" - 34");
            sql.push(concat!(" OR ", last_seen_on!(), " <= "))
                .push_bind(to)
                .push(")");
        }
    }

    /// Appends the condition on the time of creation as a range of ids, which grow with it.
    pub(super) fn push_created(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        if let Some(from) = self.created.from {
            sql.push(" AND ")
                .push(id)
                .push(" >= ")
                .push_bind(first_id(from));
        }
        if let Some(to) = self.created.to {
            sql.push(" AND ")
                .push(id)
                .push(" < ")
                .push_bind(first_id(to));
        }
    }
}
