//! Queries on events, of one user or with a filter, newest first.

use serde::Serialize;
use sqlx::postgres::Postgres;
use sqlx::{FromRow, QueryBuilder};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{Database, Error};
use crate::events::kind::EventCategory;
use crate::events::{EventKind, first_id};

/// Kinds that the index on kinds leaves out. Most events have one of them, so a scan of the latest
/// soon finds some.
const DAILY: [EventKind; 2] = [EventKind::SignedIn, EventKind::UserCreated];

/// The columns of an [`EventRow`]. `email` is only an address that a token claimed: the address of
/// a search is in `search`, and the address of a merged user in `about`.
const COLUMNS: &str = "SELECT e.id, e.created_at, e.kind, e.reason, e.provider,
    CASE WHEN e.actor IS NULL AND e.kind NOT IN ('users_merged', 'provider_event') THEN e.email END AS email,
    e.user_id, host(e.ip) AS ip, e.actor, e.detail->>'reason' AS remark, (e.detail->'search')::text AS search,
    nullif(concat_ws(', ', CASE WHEN e.kind IN ('users_merged', 'provider_event') THEN e.email END,
                     e.detail->>'cause', 'member of staff ' || (e.detail->>'member'),
                     CASE e.detail->>'sessions' WHEN '0' THEN NULL WHEN '1' THEN '1 session ended'
                                                ELSE (e.detail->>'sessions') || ' sessions ended' END,
                     e.detail->>'staff', e.detail->>'key', (e.detail->'claims')::text, e.detail->>'role', e.detail->>'export',
                     e.detail->>'until', e.detail->>'webhook',
                     (SELECT string_agg(replace(field, '_', ' '), ', ')
                      FROM jsonb_array_elements_text(e.detail->'fields') AS field),
                     (e.detail->>'users') || ' users',
                     (e.detail->>'identities') || ' identities'), '') AS about,
    e.detail->>'from' AS from_user, coalesce(e.detail->>'to', e.detail->>'into') AS to_user, e.request_id,
    e.user_agent, e.detail->>'claimed_audience' AS audience, e.detail->>'claimed_issuer' AS issuer,
    u.id IS NOT NULL AS user_exists, coalesce(u.email, u.name) AS user_name,
    (SELECT true FROM users o WHERE o.id = coalesce(e.detail->>'to', e.detail->>'into', e.detail->>'from')::uuid)
        IS NOT NULL AS other_exists";

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct EventRow {
    /// Id of the event; it grows with time.
    pub id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    pub kind: String,
    /// Reason of a refusal.
    pub reason: Option<String>,
    pub provider: Option<String>,
    /// E-mail address that a refused token claimed.
    pub email: Option<String>,
    pub user_id: Option<Uuid>,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    /// `aud` that a refused token claimed.
    pub audience: Option<String>,
    /// `iss` that a refused token claimed.
    pub issuer: Option<String>,
    /// Member of staff, API key (`key:<name>`) or operator who caused it.
    pub actor: Option<String>,
    /// The member of staff or the API key whose access changed, with the new access; a user's new
    /// claims; the size of an import; the fields of an updated user; the e-mail address of a merged
    /// user; or a provider's reason.
    pub about: Option<String>,
    /// Previous user of a moved identity, or the user who was merged.
    pub from_user: Option<String>,
    /// New user of a moved identity, or the user who took over a merged one.
    pub to_user: Option<String>,
    /// Reason given for it.
    pub remark: Option<String>,
    /// The fields of the search of a view, as a JSON object.
    pub search: Option<String>,
    pub request_id: Option<String>,
    pub user_exists: bool,
    /// E-mail address, or else name, of the user concerned.
    pub user_name: Option<String>,
    /// True if the other user, new or previous, still exists.
    pub other_exists: bool,
}

impl EventRow {
    /// Returns true if the event is of this kind.
    pub fn is(&self, kind: EventKind) -> bool {
        self.kind == kind.name()
    }

    /// Returns the kind, or `None` if only a newer release knows it.
    pub fn known_kind(&self) -> Option<EventKind> {
        self.kind.parse().ok()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub what: EventCategory,
    /// E-mail address of the user concerned, of a merged user, or in a refused token.
    pub email: Option<String>,
    /// The user concerned: their own events, and events in which others used or claimed their
    /// e-mail address.
    pub user: Option<Uuid>,
    /// Member of staff, API key (`key:<name>`) or operator who caused the event.
    pub actor: Option<String>,
    /// Reason of a refusal.
    pub reason: Option<String>,
    /// Id of the request, or of the event itself. A successful sign-in is found by it only with a
    /// start, or among the latest [`WALKED`] events: an index of the requests of sign-ins would
    /// make each sign-in slower.
    pub request: Option<String>,
    /// The provider. Without a filter that an index serves, a statement reads [`WALKED`] events.
    pub provider: Option<String>,
    /// IP address or network (`inet`). Without a filter that an index serves, a statement reads
    /// [`WALKED`] events.
    pub ip: Option<String>,
    /// Start, inclusive.
    pub from: Option<OffsetDateTime>,
    /// End, exclusive.
    pub to: Option<OffsetDateTime>,
}

/// The number of events that a statement reads if no index serves the filter, which takes some 20
/// milliseconds. An index for it would make each sign-in slower.
pub const WALKED: i64 = 20_000;

/// A set of events that an index returns in order of time.
enum Source<'a> {
    /// The events with this text in this column.
    With(&'static str, &'a str),
    OfAddress(&'a str),
    OfUser(Uuid),
    ClaimingFrom(Uuid),
    Request(&'a str),
    Event(Uuid),
    Kind(EventKind),
    Daily,
    ByStaff,
    All,
    /// The [`WALKED`] events that precede the cursor.
    Walk,
}

impl Filter {
    fn sources(&self) -> Vec<Source<'_>> {
        if let Some(request) = &self.request {
            let event = Uuid::parse_str(request).ok().map(Source::Event);
            let daily = Some(if self.from.is_some() {
                Source::Daily
            } else {
                Source::Walk
            });
            [Source::Request(request)]
                .into_iter()
                .chain(event)
                .chain(daily)
                .collect()
        } else if let Some(email) = &self.email {
            vec![Source::With("email", email), Source::OfAddress(email)]
        } else if let Some(user) = self.user {
            vec![Source::OfUser(user), Source::ClaimingFrom(user)]
        } else if let Some(actor) = &self.actor {
            vec![Source::With("actor", actor)]
        } else if let Some(reason) = &self.reason {
            vec![Source::With("reason", reason)]
        } else if self.provider.is_some() || self.ip.is_some() {
            // No index serves these.
            vec![Source::Walk]
        } else if self.what == EventCategory::Staff {
            vec![Source::ByStaff]
        } else if self.what == EventCategory::Everything {
            vec![Source::All]
        } else {
            let kinds = self.what.kinds();
            let (daily, rare): (Vec<_>, Vec<_>) = kinds.partition(|kind| DAILY.contains(kind));
            let daily = (!daily.is_empty()).then_some(Source::Daily);
            rare.into_iter().map(Source::Kind).chain(daily).collect()
        }
    }

    pub fn statement(&self, before: Option<Uuid>, limit: i64) -> QueryBuilder<Postgres> {
        self.statement_of(self.sources(), before, limit)
    }

    fn statement_of(
        &self,
        sources: Vec<Source<'_>>,
        before: Option<Uuid>,
        limit: i64,
    ) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(COLUMNS);
        query.push(" FROM (");
        for (number, source) in sources.into_iter().enumerate() {
            let before = before.unwrap_or(Uuid::max());
            query.push(if number == 0 {
                "(SELECT * FROM "
            } else {
                " UNION (SELECT * FROM "
            });
            if matches!(source, Source::Walk) {
                query
                    .push("(SELECT * FROM events WHERE id < ")
                    .push_bind(before);
                self.restrict_time(&mut query);
                query
                    .push(" ORDER BY id DESC LIMIT ")
                    .push_bind(WALKED)
                    .push(") AS walked WHERE ");
            } else {
                query.push("events WHERE ");
            }
            match source {
                Source::With(column, text) => {
                    query.push(column).push(" = ").push_bind(text.to_owned())
                }
                Source::OfAddress(email) => query
                    .push("user_id = (SELECT id FROM users WHERE email = ")
                    .push_bind(email.to_owned())
                    .push(")"),
                Source::OfUser(user) => query.push("user_id = ").push_bind(user),
                Source::ClaimingFrom(user) => {
                    claiming_from(&mut query, user);
                    query.push(" AND user_id IS DISTINCT FROM ").push_bind(user)
                }
                // The condition is the index's.
                Source::Request(request) => query
                    .push("kind NOT IN ('signed_in', 'user_created') AND request_id = ")
                    .push_bind(request.to_owned()),
                Source::Event(id) => query.push("id = ").push_bind(id),
                // With the literal, the planner knows that the partial index holds them all.
                Source::Kind(kind) => query.push(format_args!("kind = '{}'", kind.name())),
                Source::Daily => query
                    .push("kind = ANY(")
                    .push_bind(DAILY.map(EventKind::name).as_slice())
                    .push(")"),
                Source::ByStaff => query.push("actor IS NOT NULL"),
                Source::All | Source::Walk => query.push("true"),
            };
            self.restrict(&mut query);
            query
                .push(" AND id < ")
                .push_bind(before)
                .push(" ORDER BY id DESC LIMIT ")
                .push_bind(limit)
                .push(")");
        }
        // `OFFSET 0`, and no EXISTS above, keep the planner from reading all users for some hundred events.
        query
            .push(") AS e LEFT JOIN LATERAL (SELECT id, email, name FROM users WHERE id = e.user_id OFFSET 0) AS u ON true")
            .push(" ORDER BY e.id DESC LIMIT ")
            .push_bind(limit);
        query
    }

    fn restrict(&self, query: &mut QueryBuilder<Postgres>) {
        let names =
            |category: EventCategory| -> Vec<_> { category.kinds().map(EventKind::name).collect() };
        match self.what {
            EventCategory::Everything => query
                .push(" AND kind <> ALL(")
                .push_bind(names(EventCategory::Looks))
                .push(")"),
            EventCategory::Staff => query
                .push(" AND actor IS NOT NULL AND kind <> ALL(")
                .push_bind(names(EventCategory::Looks))
                .push(")"),
            what => query
                .push(" AND kind = ANY(")
                .push_bind(names(what))
                .push(")"),
        };
        if let Some(user) = self.user {
            query.push(" AND (user_id = ").push_bind(user).push(" OR ");
            claiming_from(query, user);
            query.push(")");
        }
        if let Some(request) = &self.request {
            query.push(" AND (request_id = ").push_bind(request.clone());
            query
                .push(" OR id = ")
                .push_bind(Uuid::parse_str(request).ok())
                .push(")");
        }
        for (column, value) in [
            ("actor", &self.actor),
            ("reason", &self.reason),
            ("provider", &self.provider),
        ] {
            if let Some(value) = value {
                query
                    .push(" AND ")
                    .push(column)
                    .push(" = ")
                    .push_bind(value.clone());
            }
        }
        if let Some(ip) = &self.ip {
            query
                .push(" AND ip <<= ")
                .push_bind(ip.clone())
                .push("::inet");
        }
        self.restrict_time(query);
    }

    fn restrict_time(&self, query: &mut QueryBuilder<Postgres>) {
        // Ids grow with time (RFC 9562 §5.7), so a day is a range of ids.
        if let Some(from) = self.from {
            query.push(" AND id >= ").push_bind(first_id(from));
        }
        if let Some(to) = self.to {
            query.push(" AND id < ").push_bind(first_id(to));
        }
    }
}

/// Adds the condition that an event has that user's e-mail address. It leaves out merges, whose
/// address is another user's. The index of the events' addresses has the default collation, and the
/// users' addresses have another one.
fn claiming_from(query: &mut QueryBuilder<Postgres>, user: Uuid) {
    query
        .push("kind <> 'users_merged' AND email = (SELECT email COLLATE \"default\" FROM users WHERE id = ")
        .push_bind(user)
        .push(")");
}

async fn fetch(
    database: &Database,
    statement: impl Fn() -> QueryBuilder<Postgres>,
) -> Result<Vec<EventRow>, Error> {
    database
        .run(|_| async {
            // It is planned for its values each time: one value is rare where another is common.
            let mut query = statement();
            let query = query.build_query_as();
            Ok::<_, Error>(
                query
                    .persistent(false)
                    .fetch_all(database.planned_each_time())
                    .await?,
            )
        })
        .await
}

/// Returns up to `size` events that pass the filter, before the event `before`, newest first, and
/// the id before which more may follow.
pub async fn page(
    database: &Database,
    filter: &Filter,
    before: Option<Uuid>,
    size: usize,
) -> Result<(Vec<EventRow>, Option<Uuid>), Error> {
    // An extra row shows that there are more.
    let limit = i64::try_from(size + 1).unwrap_or(i64::MAX);
    let mut events = fetch(database, || filter.statement(before, limit)).await?;
    if events.len() > size {
        events.truncate(size);
        let next = events.last().map(|event| event.id);
        return Ok((events, next));
    }
    let walks = matches!(filter.sources()[..], [Source::Walk]);
    let next = if walks {
        end_of_walk(database, filter, before).await?
    } else {
        None
    };
    Ok((events, next))
}

/// Returns the last event that a walk looks at, if it leaves some.
async fn end_of_walk(
    database: &Database,
    filter: &Filter,
    before: Option<Uuid>,
) -> Result<Option<Uuid>, Error> {
    database
        .run(|_| async {
            let mut query = QueryBuilder::new("SELECT id FROM events WHERE id < ");
            query.push_bind(before.unwrap_or(Uuid::max()));
            filter.restrict_time(&mut query);
            query
                .push(" ORDER BY id DESC OFFSET ")
                .push_bind(WALKED - 1)
                .push(" LIMIT 1");
            let query = query.build_query_scalar::<Uuid>();
            Ok::<_, Error>(
                query
                    .persistent(false)
                    .fetch_optional(database.planned_each_time())
                    .await?,
            )
        })
        .await
}

/// Returns a user's own events, newest first. Together with the events of [`claiming`], they are
/// the events that a [`Filter`] by user finds.
pub async fn of_user(database: &Database, user: Uuid, limit: i64) -> Result<Vec<EventRow>, Error> {
    let filter = Filter {
        user: Some(user),
        ..Filter::default()
    };
    fetch(database, || {
        filter.statement_of(vec![Source::OfUser(user)], None, limit)
    })
    .await
}

/// Returns the events in which others used or claimed a user's e-mail address, newest first.
/// Outsiders can cause any number of them.
pub async fn claiming(database: &Database, user: Uuid, limit: i64) -> Result<Vec<EventRow>, Error> {
    let filter = Filter {
        user: Some(user),
        ..Filter::default()
    };
    fetch(database, || {
        filter.statement_of(vec![Source::ClaimingFrom(user)], None, limit)
    })
    .await
}
