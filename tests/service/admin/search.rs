//! The search of staff: matches, their order, and special characters as plain text.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use uuid::Uuid;
use vestibule::admin::lists::users::search::{Position, search, suggest};
use vestibule::admin::lists::users::{Filters, Sort, Status, page, providers};
use vestibule::database::migrations;

use crate::support::cluster::Database;
use crate::support::missing::skip;

const PAGE: usize = 10;
const NOBODY: [Uuid; 0] = [];

async fn add(pool: &PgPool, email: Option<&str>, name: Option<&str>, subject: &str) -> Uuid {
    let id = Uuid::now_v7();
    run!(
        pool,
        "INSERT INTO users (id, email, name) VALUES ($1, $2, $3)",
        id,
        email,
        name
    );
    run!(
        pool,
        "INSERT INTO identities (id, user_id, provider, subject) VALUES ($1, $2, 'google', $3)",
        Uuid::now_v7(),
        id,
        subject
    );
    id
}

/// Sets the address and the name that a provider reported, and lets the user have visited since.
async fn describe(pool: &PgPool, user: Uuid, email: Option<&str>, name: Option<&str>) {
    run!(
        pool,
        "UPDATE identities SET email = $2, name = $3 WHERE user_id = $1",
        user,
        email,
        name
    );
    run!(
        pool,
        "UPDATE users SET seen_noted_on = current_date WHERE id = $1",
        user
    );
}

async fn find(pool: &PgPool, text: &str) -> Vec<Uuid> {
    find_among(pool, text, &Filters::default()).await
}

async fn find_among(pool: &PgPool, text: &str, filters: &Filters) -> Vec<Uuid> {
    let found = search(
        &pool.clone().into(),
        text,
        &providers(&pool.clone().into()).await.unwrap(),
        filters,
        None,
        PAGE,
    )
    .await
    .unwrap();
    assert_eq!(found.after, None, "{text}");
    found.users.into_iter().map(|user| user.id).collect()
}

/// Returns a database with trigram indexes, made by the migrations or later by the operator.
/// Returns `None` if PostgreSQL lacks the extension, which is an error if `CI` is set.
async fn with_trigrams(by_operator: bool) -> Option<Database> {
    let database = Database::bare().await;
    if database
        .count("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'")
        .await
        == 0
    {
        skip("pg_trgm is not installed: no search for parts has been tried");
        return None;
    }
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operation.md")).unwrap();
    let statements: Vec<_> = page
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.starts_with("CREATE EXTENSION") || line.starts_with("CREATE INDEX CONCURRENTLY")
        })
        .collect();
    assert_eq!(statements.len(), 3);
    if by_operator {
        migrations::apply(&mut connection).await.unwrap();
    }
    for sql in statements.into_iter().take(if by_operator { 3 } else { 1 }) {
        sqlx::query(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    migrations::apply(&mut connection).await.unwrap();
    Some(database)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_match_comes_first_and_each_user_once() {
    let database = Database::create().await;
    let pool = &database.pool;
    let by_name = add(
        pool,
        Some("zoe@example.com"),
        Some("Ann@Example.com the second"),
        "1",
    )
    .await;
    let longer = add(pool, Some("ann@example.com.au"), None, "2").await;
    let by_subject = add(pool, None, None, "Ann@example.com").await;
    let exact = add(pool, Some("ann@example.com"), Some("Ann@example.com"), "4").await;
    assert_eq!(
        find(pool, "Ann@example.com").await,
        [exact, by_subject, longer, by_name]
    );
    assert_eq!(
        find(pool, "ann@example.com").await,
        [exact, longer, by_name],
        "subjects are as they are"
    );
    assert_eq!(find(pool, &exact.to_string().to_uppercase()).await, [exact]);
    assert_eq!(
        find(pool, &by_subject.simple().to_string()).await,
        [by_subject]
    );
    // Matches by address come first, then matches by name, each in its own order.
    assert_eq!(find(pool, "ANN").await, [exact, longer, by_name]);
    assert_eq!(
        find(pool, "nn@").await,
        NOBODY,
        "without the indexes, nothing is found by its middle"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_staff_paste_finds_the_person_within_it() {
    let database = Database::create().await;
    let pool = &database.pool;
    let ada = add(
        pool,
        Some("ada@example.com"),
        Some("Ada Love-Lace"),
        "uid=ada,ou=People",
    )
    .await;
    let emil = add(
        pool,
        Some("emil@xn--mnchen-3ya.example"),
        Some("ҖӘМИЛӘ"),
        "2",
    )
    .await;
    let sara = add(pool, Some("sara@bücher.example"), Some("שָׂרָה"), "3").await;
    let ada_id = ada.to_string();
    let upper = ada.to_string().to_uppercase();
    for text in [
        "Ada Lovelace <ada@example.com>",
        "mailto:ada@example.com?subject=Hi",
        "ada@example.com,",
        "<ADA@example.com>;",
        "From: \"Ada\" (ada@example.com)",
        "\u{201e}Ada Love-Lace\u{201c}",
        "'ada love\u{2011}lace'",
        "(Ada Love\u{2013}Lace)",
        "Ada\u{200b} Love\u{2212}Lace",
        "uid=ada,ou=People",
        "\"uid=ada,ou=People\"",
        "ada@\u{200b}example.com",
        "\u{202a}ada@example.com\u{202c}",
        "<mailto:ada@example.com|ada@example.com>",
        "ada\u{ff20}example.com",
        "\u{ff41}\u{ff44}\u{ff41}@example.com",
        &ada_id.replace('-', "\u{2013}"),
        &format!("https://id.example/admin/users/{ada_id}?page=2"),
        &format!("user_id={upper};"),
        &format!("{{{ada_id}}}"),
    ] {
        assert_eq!(find(pool, text).await, [ada], "{text}");
    }
    for (text, user) in [
        ("emil@münchen.example", emil),
        ("Emil <EMIL@xn--mnchen-3ya.example>", emil),
        ("җәмилә", emil),
        ("sara@xn--bcher-kva.example", sara),
        ("שרה", sara),
    ] {
        assert_eq!(find(pool, text).await, [user], "{text}");
    }
    assert_eq!(find(pool, "Somebody <else@example.com>").await, NOBODY);
    assert_eq!(find(pool, "<>").await, NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_character_means_itself() {
    let mut databases = vec![Database::create().await];
    databases.extend(with_trigrams(false).await);
    for database in databases {
        let pool = &database.pool;
        let texts = [
            "100%",
            "a_b",
            "back\\slash",
            "quo'te",
            "quo\"te",
            "[a-z]+",
            "per%cent",
            "$1",
            "é\u{10ffff}",
        ];
        for (number, text) in texts.into_iter().enumerate() {
            add(
                pool,
                Some(&format!("user{number}@example.com")),
                Some(text),
                text,
            )
            .await;
        }
        for (number, text) in texts.into_iter().enumerate() {
            let found = find(pool, text).await;
            assert_eq!(found.len(), 1, "{text}");
            let email: String = value!(pool, "SELECT email FROM users WHERE id = $1", found[0]);
            assert_eq!(email, format!("user{number}@example.com"), "{text}");
        }
        let long = "x".repeat(10_000);
        for text in [
            "%", "_", "%%%", "___", "\\", "'", "a%b", "user%", "us_r1", "(a+)+$", ".*", &long,
        ] {
            assert_eq!(find(pool, text).await, NOBODY, "{text:.20}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_applies_filters_and_reports_further_matches() {
    let database = Database::create().await;
    let pool = &database.pool;
    let mut ids = Vec::new();
    for number in 0..=PAGE {
        let email = format!("ann{number:02}@example.com");
        ids.push(
            add(
                pool,
                Some(&email),
                Some("Ann"),
                &format!("subject-{number}"),
            )
            .await,
        );
    }
    let found = search(
        &database.service,
        "ann",
        &[],
        &Filters::default(),
        None,
        PAGE,
    )
    .await
    .unwrap();
    assert!(found.after.is_some());
    assert_eq!(
        found.users.iter().map(|user| user.id).collect::<Vec<_>>(),
        ids[..PAGE]
    );

    run!(
        pool,
        "UPDATE users SET disabled_at = now() WHERE id = $1",
        ids[3]
    );
    let disabled = Filters {
        status: Some(Status::Disabled),
        ..Filters::default()
    };
    let active = Filters {
        status: Some(Status::Active),
        ..Filters::default()
    };
    let elsewhere = Filters {
        provider: Some("apple".into()),
        ..Filters::default()
    };
    let id = ids[3].to_string();
    for text in ["ann", "ann03@example.com", "subject-3", &id] {
        assert_eq!(find_among(pool, text, &disabled).await, [ids[3]], "{text}");
        assert_eq!(find_among(pool, text, &elsewhere).await, NOBODY, "{text}");
        assert!(
            !find_among(pool, text, &active).await.contains(&ids[3]),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_extension_parts_are_found_after_beginnings() {
    for by_operator in [false, true] {
        let Some(database) = with_trigrams(by_operator).await else {
            return;
        };
        let pool = &database.pool;
        let middle = add(pool, Some("joann@example.com"), None, "1").await;
        let name = add(pool, Some("zoe@example.com"), Some("Zoe Annis"), "2").await;
        let beginning = add(pool, Some("ann@example.com"), Some("Joanna"), "3").await;
        assert_eq!(find(pool, "ANN").await, [beginning, name, middle]);
        assert_eq!(find(pool, "oanna").await, [beginning]);
        let active = Filters {
            status: Some(Status::Active),
            ..Filters::default()
        };
        let disabled = Filters {
            status: Some(Status::Disabled),
            ..Filters::default()
        };
        assert_eq!(find_among(pool, "nnis", &active).await, [name]);
        assert_eq!(find_among(pool, "nnis", &disabled).await, NOBODY);
        assert_eq!(
            find(pool, "xample  NNIS oe").await,
            [name],
            "each word is somewhere"
        );
        assert_eq!(find(pool, "nnis joan").await, NOBODY, "and none is nowhere");
        assert_eq!(find(pool, "nn").await, NOBODY, "two letters are no trigram");
        assert_eq!(
            find(pool, "n@e").await,
            NOBODY,
            "nor are three characters that are not all letters"
        );
        sqlx::query("DROP INDEX users_name_trigrams_idx")
            .execute(pool)
            .await
            .unwrap();
        assert_eq!(
            find(pool, "nnis").await,
            NOBODY,
            "half of the indexes are none"
        );
    }
}

/// Returns databases in the locales that change how PostgreSQL compares letters: none, all of
/// Unicode, and Turkish.
async fn in_locales() -> Vec<Database> {
    let mut databases = Vec::new();
    for locale in ["C", "C.UTF-8"] {
        databases.push(Database::of_locale(&format!("LOCALE '{locale}'")).await);
    }
    let icu = "SELECT count(*) FROM pg_collation
               WHERE collname = 'tr-x-icu' AND current_setting('server_version_num')::int >= 150000";
    if databases[0].count(icu).await > 0 {
        databases.push(Database::of_locale("LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'tr'").await);
    } else {
        skip(
            "PostgreSQL is older than 15 or has no ICU: no search has been tried in a Turkish database",
        );
    }
    for database in &databases {
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        migrations::apply(&mut connection).await.unwrap();
    }
    databases
}

#[tokio::test(flavor = "multi_thread")]
async fn name_search_and_order_ignore_case_accents_and_locale() {
    for database in in_locales().await {
        let pool = &database.pool;
        let mut users = Vec::new();
        let names = [
            "Ada  Lovelace",
            "José  GARCÍA Márquez",
            "MÜLLER, Jürgen",
            "Łukasz Wójcik",
            "Søren Ångström",
            "İSMAİL Yılmaz",
            "Ольга ИВАНОВА",
            "Νίκος ΠΑΠΠΆΣ",
            "Jean-Luc Strauß",
            "Siobhán O’Brien",
            "Nguyễn Thị Ánh",
            "김 민준",
        ];
        for (number, name) in names.into_iter().enumerate() {
            users.push(add(pool, None, Some(name), &format!("subject {number}")).await);
        }
        for (number, texts) in [
            &[
                "lovelace ada",
                "ADA   lovelace",
                "ada lovelace",
                "love ad",
                "Àda Lövelace",
            ][..],
            &[
                "jose",
                "JOSE\u{301}",
                "marquez josé",
                "garcia",
                "josé garcía",
            ],
            &["müller", "muller", "Muller, JÜRGEN", "jurgen"],
            &["lukasz", "ŁUKASZ", "wojcik łuk"],
            &["soren", "SØREN", "angstrom", "a\u{30a}ngstrom soren"],
            &["ismail", "ismaıl", "yilmaz", "YILMAZ ismail", "İsmail"],
            &["ольга", "ОЛЬГА", "иванова ольга"],
            &["νικος", "Παππάς", "παππασ νίκοσ"],
            &["strauss", "luc", "jean luc", "STRAUSS jean"],
            &["o'brien", "O\u{2bc}brien siobhan"],
            &["nguyen anh", "Anh", "thi nguyễn"],
            &["김", "민준", "민준 김"],
        ]
        .into_iter()
        .enumerate()
        {
            for text in texts {
                assert_eq!(find(pool, text).await, [users[number]], "{text}");
            }
        }
        for text in [
            "ada garcia",
            "lovelace adam",
            "ada lovelace lovelaces",
            "ace",
            "e",
            "- -",
        ] {
            assert_eq!(find(pool, text).await, NOBODY, "{text}");
        }
        let page = page(
            &database.service,
            &Filters::default(),
            Sort::Name,
            None,
            PAGE + 2,
        )
        .await
        .unwrap();
        let listed: Vec<_> = page
            .users
            .iter()
            .map(|user| user.name.clone().unwrap())
            .collect();
        let order = [0, 5, 8, 1, 3, 2, 10, 9, 4, 7, 6, 11].map(|number| names[number]);
        assert_eq!(listed, order, "as a reader expects, whatever the locale");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_found_by_what_any_provider_says_of_them() {
    let database = Database::create().await;
    let pool = &database.pool;
    let user = add(pool, Some("a.l@example.com"), Some("Countess"), "1").await;
    describe(
        pool,
        user,
        Some("Ada.Lovelace@Elsewhere.example"),
        Some("Augusta Ada King"),
    )
    .await;
    let other = add(pool, Some("grace@example.com"), None, "2").await;
    describe(pool, other, Some("hopper@example.com"), None).await;
    for text in [
        "ada.lovelace@elsewhere.EXAMPLE",
        "lovelace",
        "king augusta",
        "king lovelace",
        "count",
    ] {
        assert_eq!(find(pool, text).await, [user], "{text}");
    }
    assert_eq!(find(pool, "hopper@example.com").await, [other]);
    assert_eq!(
        find(pool, "hopper king").await,
        NOBODY,
        "the words are of one person"
    );
    run!(
        pool,
        "UPDATE users SET name = 'Amazing Grace', own_name = true WHERE id = $1",
        other
    );
    assert_eq!(
        find(pool, "grac amazing").await,
        [other],
        "by her own word, too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn search_pages_hold_each_user_once_with_best_matches_first() {
    let Some(database) = with_trigrams(false).await else {
        return;
    };
    let pool = &database.pool;
    let mut best_first = vec![add(pool, None, Some("Zoe"), "ann").await];
    for number in 0..9 {
        let email = format!("ann{number}@example.com");
        best_first.push(add(pool, Some(&email), Some("Ann"), &email).await);
    }
    for number in 0..9 {
        best_first.push(add(pool, None, Some("Ann"), &format!("name {number}")).await);
    }
    let mut others = Vec::new();
    for number in 0..9 {
        let user = add(pool, None, Some("Zoe  Ánn"), &format!("word {number}")).await;
        // Some users are still waiting, and others have an identity that a provider described.
        if number > 4 {
            describe(pool, user, None, Some("zoe-ann")).await;
        }
        others.push(user);
    }
    best_first.extend(others.drain(..).rev());
    for number in 0..9 {
        others.push(add(pool, None, Some("Joann"), &format!("part {number}")).await);
    }
    best_first.extend(others.drain(..).rev());
    let providers = providers(&database.service).await.unwrap();
    for size in [1, 4, 9, 10, 36, 37, 50] {
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let page = search(
                &database.service,
                "ann",
                &providers,
                &Filters::default(),
                start.as_ref(),
                size,
            )
            .await
            .unwrap();
            found.extend(page.users.iter().map(|user| user.id));
            // The cursor makes a round trip through its form in URLs.
            let Some(after) = page
                .after
                .map(|after| Position::decode(&after.encode()).unwrap())
            else {
                break;
            };
            assert_eq!(page.users.len(), size);
            start = Some(after);
        }
        assert_eq!(found, best_first, "by {size}");
    }
}

#[test]
fn a_forged_position_is_none() {
    let id = Uuid::nil();
    let encode = |json: String| URL_SAFE_NO_PAD.encode(json);
    assert!(Position::decode(&encode(format!(r#"["name","ann","{id}"]"#))).is_some());
    for forged in [
        String::new(),
        "x".repeat(1_000_000),
        encode(format!(r#"["name",null,"{id}"]"#)),
        encode(format!(r#"["words","ann","{id}"]"#)),
        encode(format!(r#"["name","a\u0000b","{id}"]"#)),
        encode(format!(r#"["name; DROP TABLE users","ann","{id}"]"#)),
        encode(r#"["words",null,"1 OR 1=1"]"#.into()),
    ] {
        assert_eq!(Position::decode(&forged), None, "{forged:.60}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_restored_with_its_indexes() {
    let database = Database::create().await;
    add(
        &database.pool,
        Some("ada@example.com"),
        Some("Ádá Lovelace"),
        "1",
    )
    .await;
    let mut connection = database.pool.acquire().await.unwrap();
    // As `pg_restore` does, and PostgreSQL 17 itself during maintenance.
    sqlx::query("SET search_path = ''")
        .execute(&mut *connection)
        .await
        .unwrap();
    for table in ["users", "identities"] {
        let reindex = AssertSqlSafe(format!("REINDEX TABLE public.{table}"));
        sqlx::query(reindex)
            .execute(&mut *connection)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_encoding_is_refused() {
    let database = Database::of_locale("ENCODING 'LATIN1' LOCALE 'C'").await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let error = migrations::apply(&mut connection).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("the encoding of the database is LATIN1"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_word_is_corrected_by_the_names_of_users() {
    let Some(database) = with_trigrams(false).await else {
        return;
    };
    let pool = &database.pool;
    for (number, name) in [
        "Grace Hopper",
        "Ada Lovelace",
        "Grace Hooper-Smith",
        "Mary Jackson",
    ]
    .iter()
    .enumerate()
    {
        add(pool, None, Some(name), &number.to_string()).await;
    }
    for (text, expected) in [
        ("lovlace", Some("lovelace")),
        ("Ada Lovlace", Some("ada lovelace")),
        ("jakcson, mary", Some("jackson mary")),
        ("ada lovelace", None),
        ("zzzzzz", None),
        ("%", None),
    ] {
        assert_eq!(
            suggest(&database.service, text).await.unwrap().as_deref(),
            expected,
            "{text}"
        );
    }
}
