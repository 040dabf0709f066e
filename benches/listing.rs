//! Durations of the statements of the list of users and of the admin API, in milliseconds: the
//! median of some runs, on a filled database, to which the benchmark adds some users and deletes
//! them. Run it by hand:
//!
//! ```text
//! DATABASE_URL=postgres://… cargo run -- dev seed --users 1000000
//! DATABASE_URL=postgres://… cargo bench --bench listing
//! ```

use std::env;
use std::str::FromStr;
use std::time::Instant;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use strum::VariantArray;
use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;
use vestibule::accounts::{identities, merging, sessions};
use vestibule::admin::api::store::{self as backend, Created, NewIdentity, NewUser};
use vestibule::admin::changes::{Change, Outcome, make, preview};
use vestibule::admin::lists::events::Filter;
use vestibule::admin::lists::users::search::search;
use vestibule::admin::lists::users::{Cursor, Days, Filters, Sort, Status, Times, count};
use vestibule::admin::lists::{events as event_log, person as directory, users as listing};
use vestibule::admin::staff::api_keys;
use vestibule::database::Database;
use vestibule::database::Error;
use vestibule::domain::actor::{Actor, Author, Origin};
use vestibule::domain::email::Email;
use vestibule::events::kind::EventCategory;

const RUNS: usize = 9;
const PAGE: usize = 50;

/// Prints the median of some runs of a statement, on a line.
macro_rules! measure {
    ($name:expr, $statement:expr) => {{
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let began = Instant::now();
            $statement.await.unwrap();
            runs.push(began.elapsed());
        }
        runs.sort_unstable();
        println!("{:8.1}  {}", runs[RUNS / 2].as_secs_f64() * 1000.0, $name);
    }};
}

fn main() {
    // `cargo test --benches` passes no `--bench`, and has no database.
    let (Ok(url), true) = (
        env::var("DATABASE_URL"),
        env::args().any(|argument| argument == "--bench"),
    ) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // As in the service: PostgreSQL's JIT takes ten times as long for some statements as their
        // execution.
        let options = PgConnectOptions::from_str(&url)
            .unwrap()
            .options([("jit", "off")]);
        let pool = Database::from(PgPool::connect_with(options).await.unwrap());
        lists(&pool).await;
        searches(&pool).await;
        person(&pool).await;
        admin_api(&pool).await;
    });
}

fn filters(today: Date, providers: &[String]) -> Vec<(String, Filters)> {
    let days = |from: i64, to: i64| Days {
        from: Some(today - Duration::days(from)),
        to: Some(today - Duration::days(to)),
    };
    let mut all = vec![("everybody".to_owned(), Filters::default())];
    all.extend(providers.iter().map(|provider| {
        (
            provider.clone(),
            Filters {
                provider: Some(provider.clone()),
                ..Filters::default()
            },
        )
    }));
    for &status in Status::VARIANTS {
        let name: &str = status.into();
        all.push((
            name.into(),
            Filters {
                status: Some(status),
                ..Filters::default()
            },
        ));
        let provider = Some("google".to_owned());
        all.push((
            format!("{name}, google"),
            Filters {
                status: Some(status),
                provider,
                ..Filters::default()
            },
        ));
    }
    for (from, to) in [(1, 0), (30, 0), (500, 400), (1000, 900)] {
        let name = format!("{from} to {to} days ago");
        let last_seen = days(from, to);
        let midnight = |day: Date| day.midnight().assume_utc();
        let created = Times {
            from: last_seen.from.map(midnight),
            to: last_seen.to.map(midnight),
        };
        all.push((
            format!("created {name}"),
            Filters {
                created,
                ..Filters::default()
            },
        ));
        all.push((
            format!("seen {name}"),
            Filters {
                last_seen,
                ..Filters::default()
            },
        ));
        let provider = Some("apple".to_owned());
        all.push((
            format!("created {name}, apple"),
            Filters {
                created,
                provider,
                ..Filters::default()
            },
        ));
    }
    all
}

async fn lists(pool: &Database) {
    let today = OffsetDateTime::from_unix_timestamp(vestibule::clock::now())
        .unwrap()
        .date();
    let providers = listing::providers(pool).await.unwrap();
    measure!("providers", listing::providers(pool));
    for (name, filters) in filters(today, &providers) {
        measure!(format!("{name}: estimate"), count::estimate(pool, &filters));
        for &sort in Sort::VARIANTS {
            let order: &str = sort.into();
            measure!(
                format!("{name}: {order}"),
                listing::page(pool, &filters, sort, None, PAGE)
            );
            let deep = deep(pool, &filters, sort).await;
            let page = listing::page(pool, &filters, sort, deep.as_ref(), PAGE);
            if let Some(cursor) = page.await.unwrap().before {
                let page = || listing::page(pool, &filters, sort, deep.as_ref(), PAGE);
                measure!(format!("{name}: {order}, deep"), page());
                let page = || listing::page(pool, &filters, sort, Some(&cursor), PAGE);
                measure!(format!("{name}: {order}, deep, backwards"), page());
            }
        }
    }
}

/// A cursor far back in a list, behind tens of thousands of users.
async fn deep(pool: &Database, filters: &Filters, sort: Sort) -> Option<Cursor> {
    let mut cursor = None;
    for _ in 0..10 {
        match listing::page(pool, filters, sort, cursor.as_ref(), 5_000)
            .await
            .unwrap()
            .after
        {
            Some(after) => cursor = Some(after),
            None => break,
        }
    }
    cursor
}

async fn searches(pool: &Database) {
    let providers = listing::providers(pool).await.unwrap();
    let (email, subject, id): (String, String, Uuid) = sqlx::query_as(
        "SELECT u.email, i.subject, u.id FROM users u JOIN identities i ON i.user_id = u.id
         WHERE u.email IS NOT NULL ORDER BY u.id DESC LIMIT 1",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    let texts = [
        ("address", email.as_str()),
        ("subject", &subject),
        ("id", &id.to_string()),
        ("one letter", "m"),
        ("beginning of addresses", "maria.garcia"),
        ("beginning of names", "maría g"),
        ("nothing", "nobody has that"),
        ("a word of names", "lovelace"),
        ("words of names", "lovelace ada"),
        ("a beginning of many words", "mar"),
        ("part of names", "ovelac"),
        ("part of a few", &email[4..16]),
        ("part of most", "exampl"),
        ("part of some", "old-company"),
        ("%", "%"),
    ];
    for (name, text) in texts {
        measure!(
            format!("search, {name}"),
            search(pool, text, &providers, &Filters::default(), None, PAGE)
        );
        for provider in ["google", "facebook"] {
            let filters = Filters {
                provider: Some(provider.into()),
                ..Filters::default()
            };
            measure!(
                format!("search, {name}, {provider}"),
                search(pool, text, &providers, &filters, None, PAGE)
            );
        }
    }
}

async fn person(pool: &Database) {
    let user: Uuid = sqlx::query_scalar(
        "SELECT user_id FROM events WHERE user_id IS NOT NULL ORDER BY id DESC LIMIT 1",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    let email = directory::user(pool, user)
        .await
        .unwrap()
        .unwrap()
        .user
        .email;
    measure!("person: user", directory::user(pool, user));
    measure!("person: identities", identities::of_user(pool, user));
    measure!("person: sessions", sessions::of_user(pool, user));
    measure!("person: events", event_log::of_user(pool, user, 100));
    if email.is_some() {
        measure!(
            "person: others' attempts",
            event_log::claiming(pool, user, 20)
        );
    }
    for &what in EventCategory::VARIANTS {
        let filter = Filter {
            what,
            ..Filter::default()
        };
        measure!(
            format!("audit: {what:?}"),
            event_log::page(pool, &filter, None, 100)
        );
    }
    let filter = Filter {
        email,
        ..Filter::default()
    };
    measure!(
        "audit: an address",
        event_log::page(pool, &filter, None, 100)
    );
}

/// A page of the admin API.
async fn backend_page(
    pool: &Database,
    filters: &Filters,
    sort: Sort,
    start: Option<&Cursor>,
) -> Result<(), Error> {
    let page = listing::page(pool, filters, sort, start, 100).await?;
    let ids: Vec<_> = page.users.iter().map(|user| user.id).collect();
    merging::users(pool, &ids).await.map(drop)
}

/// A search of the admin API.
async fn backend_search(pool: &Database, text: &str) -> Result<(), Error> {
    let providers = listing::providers(pool).await?;
    let found = search(pool, text, &providers, &Filters::default(), None, 100).await?;
    let ids: Vec<_> = found.users.iter().map(|user| user.id).collect();
    merging::users(pool, &ids).await.map(drop)
}

/// Creates a user as a backend does.
async fn backend_user(pool: &Database) -> Result<Uuid, Error> {
    let name = Uuid::now_v7();
    let identity = NewIdentity {
        provider: "google".into(),
        subject: name.to_string(),
        email: None,
        email_verified: false,
    };
    let email = Email::parse(&format!("{name}@bench.example"));
    let new = NewUser {
        email,
        identities: vec![identity],
        ..NewUser::default()
    };
    match backend::create(pool, &new, Actor::Operator("bench"), &Origin::default()).await? {
        Created::Done(id) => Ok(id),
        taken => panic!("{taken:?}"),
    }
}

/// The statements of each call of the admin API, and the look-up of its key.
async fn admin_api(pool: &Database) {
    measure!("admin API: key", api_keys::find(pool, &[0; 32]));
    let all = Filters::default();
    for &sort in Sort::VARIANTS {
        let order: &str = sort.into();
        measure!(
            format!("admin API: users, {order}"),
            backend_page(pool, &all, sort, None)
        );
        let deep = deep(pool, &all, sort).await;
        measure!(
            format!("admin API: users, {order}, deep"),
            backend_page(pool, &all, sort, deep.as_ref())
        );
    }
    for text in ["mar", "maria.garcia", "lovelace ada", "nobody has that"] {
        measure!(
            format!("admin API: search, {text}"),
            backend_search(pool, text)
        );
    }
    let (user, email, provider, subject): (Uuid, String, String, String) = sqlx::query_as(
        "SELECT u.id, u.email, i.provider, i.subject FROM users u JOIN identities i ON i.user_id = u.id
         JOIN sessions s ON s.identity_id = i.id WHERE u.email IS NOT NULL ORDER BY u.id DESC LIMIT 1",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    let email = Email::parse(&email).unwrap();
    measure!("admin API: a user", merging::users(pool, &[user]));
    measure!(
        "admin API: a user by e-mail",
        backend::by_email(pool, &email)
    );
    measure!(
        "admin API: a user by identity",
        identities::owner(pool, &provider, &subject)
    );
    measure!(
        "admin API: nobody, perhaps merged",
        merging::merged_into(pool, Uuid::now_v7())
    );
    measure!("admin API: sessions", sessions::of_user(pool, user));
    measure!(
        "admin API: events of a user",
        backend::events_of(pool, user, Uuid::max(), 1_001)
    );
    let middle: Uuid =
        sqlx::query_scalar("SELECT id FROM events ORDER BY id DESC OFFSET 100000 LIMIT 1")
            .fetch_optional(pool)
            .await
            .unwrap()
            .unwrap_or_default();
    for (place, after) in [
        ("beginning", Uuid::nil()),
        ("middle", middle),
        ("end", Uuid::now_v7()),
    ] {
        measure!(
            format!("admin API: feed, {place}"),
            backend::events_after(pool, after, 1_000)
        );
    }
    measure!("admin API: create", backend_user(pool));
    let origin = Origin::default();
    let by = Author {
        actor: Actor::Operator("bench"),
        reason: Some("a bench"),
        origin: &origin,
    };
    let made = |change: Change| async move {
        let preview = preview(pool, change, by.actor)
            .await?
            .expect("the user exists");
        let outcome = make(pool, &preview, None, by).await?;
        assert_eq!(outcome, Outcome::Done, "{change:?}");
        Ok::<_, Error>(())
    };
    let user = backend_user(pool).await.unwrap();
    for change in [
        Change::Disable { user },
        Change::Enable { user },
        Change::EndSessions { user },
    ] {
        measure!(
            format!("admin API: {}, dry run", change.name()),
            preview(pool, change, Actor::Operator("bench"))
        );
        measure!(format!("admin API: {}", change.name()), made(change));
    }
    measure!("admin API: create, create and merge", async {
        let from = backend_user(pool).await?;
        let into = backend_user(pool).await?;
        made(Change::Merge { from, into }).await
    });
    measure!("admin API: create, create and move", async {
        let from = backend_user(pool).await?;
        let to = backend_user(pool).await?;
        let identity = identities::of_user(pool, from).await?[0].id;
        made(Change::Move { identity, from, to }).await
    });
    measure!("admin API: create and delete", async {
        made(Change::Delete {
            user: backend_user(pool).await?,
        })
        .await
    });
    // The erasure of the deleted users' traces runs in the background of the service.
    let rest: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM users WHERE email LIKE '%@bench.example'")
            .fetch_all(pool)
            .await
            .unwrap();
    for user in rest {
        made(Change::Delete { user }).await.unwrap();
    }
}
