//! Each list of users holds exactly the matching users, in order, in both directions and for every
//! page size.

use std::cmp::Reverse;

use sqlx::PgPool;
use strum::VariantArray;
use time::{Date, Duration, Month, OffsetDateTime};
use uuid::{Builder, Uuid};
use vestibule::admin::lists::users as listing;
use vestibule::admin::lists::users::{Cursor, Days, Filters, Sort, Status, Times, count};

use crate::support::cluster::Database;

const PEOPLE: usize = 250;
const PROVIDERS: [&str; 3] = ["google", "apple", "line"];
/// Few names, so that many users have equal ones. Folded, they sort by their bytes.
const NAMES: [&str; 9] = [
    "Ada",
    "ada",
    "ADA LOVELACE",
    "Zoë",
    "Ångström",
    "o'Brien",
    "100%",
    "a_b\\c",
    "\u{1f980}",
];

/// A random user.
#[derive(Debug, Clone)]
struct Person {
    id: Uuid,
    email: Option<String>,
    verified: bool,
    name: Option<&'static str>,
    disabled: bool,
    /// True if all identities are held.
    held: bool,
    seen: Option<Date>,
    noted: Option<Date>,
    providers: Vec<&'static str>,
}

fn day(number: i64) -> Date {
    Date::from_calendar_date(2026, Month::March, 1).unwrap() + Duration::days(number)
}

impl Person {
    /// Makes up a user, created on one of ten days, often in the same millisecond as another user.
    fn make_up(dice: &mut fastrand::Rng, number: usize) -> Self {
        let since = day(dice.i64(0..10)).midnight().assume_utc() - OffsetDateTime::UNIX_EPOCH;
        let millis = since.whole_milliseconds() + [0, 1, 86_399_999][dice.usize(..3)];
        let mut random = [0; 10];
        dice.fill(&mut random);
        let email = dice.bool().then(|| {
            format!(
                "{}{number}@example.com",
                ["a", "z", "é", "'"][dice.usize(..4)]
            )
        });
        let seen = (dice.u8(..4) > 0).then(|| day(dice.i64(5..12)));
        // The same provider can occur twice.
        let providers: Vec<_> = (0..dice.usize(..4))
            .map(|_| PROVIDERS[dice.usize(..3)])
            .collect();
        Self {
            id: Builder::from_unix_timestamp_millis(millis.try_into().unwrap(), &random)
                .into_uuid(),
            verified: email.is_some() && dice.u8(..3) > 0,
            email,
            name: (dice.u8(..4) > 0).then(|| NAMES[dice.usize(..NAMES.len())]),
            disabled: dice.u8(..6) == 0,
            held: dice.u8(..6) == 0,
            seen,
            // If the user has an identity, a session gives the last day, and the noted day may be
            // older.
            noted: seen.map(|seen| {
                seen - Duration::days(if providers.is_empty() {
                    0
                } else {
                    dice.i64(0..35)
                })
            }),
            providers,
        }
    }

    async fn store(&self, pool: &PgPool) {
        run!(
            pool,
            "INSERT INTO users (id, email, email_verified, name, disabled_at, seen_noted_on)
             VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN now() END, $6)",
            self.id,
            &self.email,
            self.verified,
            self.name,
            self.disabled,
            self.noted
        );
        for provider in &self.providers {
            run!(
                pool,
                "WITH identity AS (
                     INSERT INTO identities (id, user_id, provider, subject, held_at)
                     VALUES ($1, $2, $3, $1::text, CASE WHEN $4 THEN now() END)
                 )
                 INSERT INTO sessions (id, identity_id, family_hash, token_hash, rotated_at, expires_at, client_id)
                 SELECT $1, $1, decode(md5('family'), 'hex'), decode(md5('token'), 'hex'), $5::date, $5::date, 'app'
                 WHERE $5 IS NOT NULL",
                Uuid::now_v7(),
                self.id,
                provider,
                self.held,
                self.seen
            );
        }
    }

    fn created(&self) -> OffsetDateTime {
        let (seconds, nanos) = self.id.get_timestamp().unwrap().to_unix();
        let time = OffsetDateTime::from_unix_timestamp(seconds.try_into().unwrap()).unwrap();
        time + Duration::nanoseconds(nanos.into())
    }

    fn passes(&self, filters: &Filters) -> bool {
        let within = |days: Days, day: Date| {
            days.from.is_none_or(|from| from <= day) && days.to.is_none_or(|to| day <= to)
        };
        filters
            .provider
            .as_deref()
            .is_none_or(|name| self.providers.contains(&name))
            && filters.status.is_none_or(|status| match status {
                Status::Active => !self.disabled,
                Status::Disabled => self.disabled,
                Status::Suspended => !self.disabled && self.held && !self.providers.is_empty(),
                Status::Unverified => self.email.is_some() && !self.verified,
                Status::Held => self.held && !self.providers.is_empty(),
            })
            && filters
                .created
                .from
                .is_none_or(|from| from <= self.created())
            && filters.created.to.is_none_or(|to| self.created() < to)
            && (filters.last_seen == Days::default()
                || self
                    .seen
                    .is_some_and(|seen| within(filters.last_seen, seen)))
    }
}

/// Folds one of `NAMES` for sorting, as the database does.
fn folded(name: &str) -> String {
    name.to_lowercase()
        .replace('ë', "e")
        .replace('å', "a")
        .replace('ö', "o")
}

/// Returns the users that a list should hold, in order, for pages of this size. Each page is sorted
/// by the day last seen, but the sequence of pages follows the noted day.
fn expected(people: &[Person], filters: &Filters, sort: Sort, size: usize) -> Vec<Uuid> {
    let mut people: Vec<_> = people
        .iter()
        .filter(|person| person.passes(filters))
        .collect();
    people.sort_by_key(|person| person.id);
    match sort {
        Sort::Newest => people.reverse(),
        Sort::Oldest => {}
        Sort::LastSeen => {
            people.sort_by_key(|person| Reverse((person.noted, person.id)));
            for page in people.chunks_mut(size) {
                page.sort_by_key(|person| Reverse(person.seen));
            }
        }
        Sort::EmailBackwards => {
            people.sort_by_key(|person| {
                (
                    person.email.is_none(),
                    Reverse((person.email.clone(), person.id)),
                )
            });
        }
        Sort::NameBackwards => people.sort_by_key(|person| {
            (
                person.name.is_none(),
                Reverse((person.name.map(folded), person.id)),
            )
        }),
        Sort::Email => people.sort_by_key(|person| (person.email.is_none(), person.email.clone())),
        Sort::Name => {
            people.sort_by_key(|person| (person.name.is_none(), person.name.map(folded)));
        }
    }
    people.into_iter().map(|person| person.id).collect()
}

/// Reads all pages of a list forwards, then backwards.
async fn both_ways(
    pool: &PgPool,
    filters: &Filters,
    sort: Sort,
    size: usize,
) -> (Vec<Uuid>, Vec<Uuid>) {
    let page = async |cursor: Option<Cursor>| {
        // The cursor makes a round trip through its form in URLs.
        let cursor = cursor.map(|cursor| Cursor::decode(&cursor.encode()).unwrap());
        let page = listing::page(&pool.clone().into(), filters, sort, cursor.as_ref(), size)
            .await
            .unwrap();
        let ids: Vec<_> = page.users.iter().map(|user| user.id).collect();
        assert!(ids.len() == size || page.before.is_none() || page.after.is_none());
        (ids, page.before, page.after)
    };
    let (mut forwards, before, mut after) = page(None).await;
    assert_eq!(before, None);
    let mut before = None;
    let mut last = forwards.clone();
    while let Some(cursor) = after {
        (last, before, after) = page(Some(cursor)).await;
        forwards.extend(&last);
    }
    let mut backwards = last;
    while let Some(cursor) = before {
        let (mut ids, previous, _) = page(Some(cursor)).await;
        ids.extend(backwards);
        (backwards, before) = (ids, previous);
    }
    (forwards, backwards)
}

/// Converts days to times in a zone that is nine hours ahead of UTC.
fn times(days: Days) -> Times {
    let start = |day: Date| day.midnight().assume_utc() - Duration::hours(9);
    Times {
        from: days.from.map(start),
        to: days.to.map(start),
    }
}

/// Returns combinations of the four filters in which each triple of values occurs.
fn all_filters() -> Vec<Filters> {
    let days = |from: i64, to: i64| {
        [
            (None, None),
            (Some(from), None),
            (None, Some(to)),
            (Some(from), Some(to)),
        ]
        .map(|(from, to)| Days {
            from: from.map(day),
            to: to.map(day),
        })
    };
    let providers = [None, Some("google"), Some("line"), Some("nobody")];
    let statuses = [
        None,
        Some(Status::Active),
        Some(Status::Disabled),
        Some(Status::Unverified),
    ];
    let mut all = Vec::new();
    for (number, provider) in providers.into_iter().enumerate() {
        for (second, status) in statuses.into_iter().enumerate() {
            for (third, created) in days(2, 6).map(times).into_iter().enumerate() {
                let provider = provider.map(str::to_owned);
                let last_seen = days(6, 9)[number ^ second ^ third];
                all.push(Filters {
                    provider,
                    status,
                    created,
                    last_seen,
                });
            }
        }
    }
    all
}

async fn with_people() -> (Database, Vec<Person>) {
    let database = Database::create().await;
    let mut dice = fastrand::Rng::with_seed(20_261_122);
    let people: Vec<_> = (0..PEOPLE)
        .map(|number| Person::make_up(&mut dice, number))
        .collect();
    for person in &people {
        person.store(&database.pool).await;
    }
    database.run("ANALYZE").await;
    (database, people)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_in_every_order_lists_exactly_those_who_pass() {
    let (database, people) = with_people().await;
    for filters in all_filters() {
        for &sort in Sort::VARIANTS {
            let expected = expected(&people, &filters, sort, PEOPLE);
            let page = listing::page(&database.service, &filters, sort, None, PEOPLE)
                .await
                .unwrap();
            let listed: Vec<_> = page.users.iter().map(|user| user.id).collect();
            assert_eq!(listed, expected, "{sort:?} {filters:?}");
            assert!(page.before.is_none() && page.after.is_none());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_put_together_are_the_whole_list_without_holes_or_repetition() {
    let (database, people) = with_people().await;
    let provider = Some("google".to_owned());
    let chosen = [
        Filters::default(),
        Filters {
            provider: provider.clone(),
            ..Filters::default()
        },
        Filters {
            provider,
            status: Some(Status::Disabled),
            ..Filters::default()
        },
        Filters {
            last_seen: Days {
                from: Some(day(7)),
                to: None,
            },
            ..Filters::default()
        },
        Filters {
            created: times(Days {
                from: Some(day(3)),
                to: Some(day(5)),
            }),
            ..Filters::default()
        },
    ];
    for filters in &chosen {
        for &sort in Sort::VARIANTS {
            let all = expected(&people, filters, sort, PEOPLE).len();
            for size in [1, 7, all - 1, all] {
                if size == 1 && all > 100 {
                    continue;
                }
                let expected = expected(&people, filters, sort, size);
                let (forwards, backwards) = both_ways(&database.pool, filters, sort, size).await;
                assert_eq!(forwards, expected, "{sort:?} by {size} {filters:?}");
                assert_eq!(
                    backwards, expected,
                    "{sort:?} by {size} backwards {filters:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_is_what_is_stored() {
    let (database, people) = with_people().await;
    let page = listing::page(
        &database.service,
        &Filters::default(),
        Sort::Oldest,
        None,
        PEOPLE,
    )
    .await
    .unwrap();
    let mut people = people;
    people.sort_by_key(|person| person.id);
    for (user, person) in page.users.iter().zip(&people) {
        assert_eq!(
            (user.id, &user.email, user.email_verified),
            (person.id, &person.email, person.verified)
        );
        assert_eq!(
            (user.name.as_deref(), user.disabled_at.is_some()),
            (person.name, person.disabled)
        );
        assert_eq!(
            (user.last_seen_on, &user.providers),
            (person.seen, &own(&person.providers))
        );
    }
    let mut known = PROVIDERS.map(str::to_owned);
    known.sort();
    assert_eq!(listing::providers(&database.service).await.unwrap(), known);
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_estimate_is_near_what_there_is() {
    let (database, people) = with_people().await;
    for filters in [
        Filters::default(),
        Filters {
            status: Some(Status::Disabled),
            ..Filters::default()
        },
        Filters {
            created: times(Days {
                from: Some(day(5)),
                to: None,
            }),
            ..Filters::default()
        },
        Filters {
            provider: Some("google".into()),
            ..Filters::default()
        },
        Filters {
            last_seen: Days {
                from: None,
                to: Some(day(8)),
            },
            ..Filters::default()
        },
    ] {
        let estimate = count::estimate(&database.service, &filters).await.unwrap();
        let exact = people
            .iter()
            .filter(|person| person.passes(&filters))
            .count() as u64;
        assert!(
            estimate * 2 >= exact && estimate <= exact * 2,
            "{estimate} for {exact}: {filters:?}"
        );
    }
}
