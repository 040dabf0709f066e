//! `vestibule import`, as an operator runs it: real files, a real database, and a running service.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::admin::lists::events as event_log;
use vestibule::admin::lists::events::Filter;
use vestibule::events::kind::EventCategory;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::missing::skip;
use crate::support::process;
use crate::support::token::{at, claims, with};

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Writes a file with a name of its own.
fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("import");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("{}-{name}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    fs::write(&path, content).unwrap();
    path
}

/// Builds the command in the release profile, with two providers.
fn command(url: &str, arguments: &[&str]) -> Command {
    let second = (
        "ROCKET_PROVIDERS",
        r#"{second={client_id="client.example",preset="google"}}"#,
    );
    let complete = process::complete_settings(url, "https://issuer.example/tokeninfo");
    let mut command = process::command(
        &[&complete[..], &[second]].concat(),
        &[&["import"], arguments].concat(),
    );
    command.stdin(Stdio::null());
    command
}

/// The result of an import: exit code, counts, and the refused rows by their lines.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    imported: usize,
    already: usize,
    left_out: usize,
    refused: Vec<(u64, String)>,
    out: String,
    error: String,
}

impl Ended {
    fn read(output: &Output, list: &Path) -> Self {
        let out = text(&output.stdout);
        let error = text(&output.stderr);
        let count = |word: &str| {
            let line = out.lines().find(|line| line.contains(word));
            line.map_or(0, |line| {
                line.split_whitespace().next().unwrap().parse().unwrap()
            })
        };
        let mut refused: Vec<(u64, String)> = fs::read(list)
            .map(|list| {
                csv::Reader::from_reader(list.as_slice())
                    .deserialize()
                    .map(Result::unwrap)
                    .collect()
            })
            .unwrap_or_default();
        refused.sort_unstable();
        assert_eq!(count(" refused"), refused.len(), "{out}{error}");
        let imported = count(" imported");
        let already = count(" already");
        let left_out = count(" users left out");
        if output.status.code() != Some(1) {
            assert_eq!(
                count(" rows read"),
                imported + already + left_out + refused.len(),
                "{out}"
            );
        }
        Self {
            code: output.status.code(),
            imported,
            already,
            left_out,
            refused,
            out,
            error,
        }
    }

    fn counts(&self) -> (Option<i32>, usize, usize, usize) {
        (self.code, self.imported, self.already, self.refused.len())
    }

    /// Returns the only reason why this line was refused.
    #[track_caller]
    fn why(&self, line: u64) -> &str {
        let mut reasons = self.refused.iter().filter(|(refused, _)| *refused == line);
        let (Some((_, why)), None) = (reasons.next(), reasons.next()) else {
            panic!("line {line}: {:#?}", self.refused)
        };
        why
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn import(database: &Database, path: &Path) -> Ended {
    import_with(database, path, &[]).await
}

async fn import_with(database: &Database, path: &Path, arguments: &[&str]) -> Ended {
    let mut command = command(
        &database.url,
        &[&[path.to_str().unwrap()], arguments].concat(),
    );
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    Ended::read(
        &output,
        &PathBuf::from(format!("{}.refused.csv", path.display())),
    )
}

/// Returns all users with their identities as lines, without values that differ between imports.
async fn everybody(database: &Database) -> Vec<String> {
    database.values("SELECT concat_ws('|', CASE WHEN substr(u.id::text, 15, 1) = '7' THEN 'new' ELSE u.id::text END, u.email, u.email_verified,
                          u.name, u.picture, CASE WHEN u.created_at < now() - interval '1 day' THEN u.created_at END,
                          u.disabled_at IS NOT NULL, u.seen_noted_on, u.imported_at = u.updated_at,
                          (SELECT string_agg(concat_ws(':', i.provider, i.subject, i.email, i.email_verified, i.name), ',' ORDER BY i.provider, i.subject)
                           FROM identities i WHERE i.user_id = u.id))
         FROM users u ORDER BY 1").await
}

const PEOPLE: &str = "\u{feff}id,email,email_verified,name,picture,created_at,disabled,provider,subject,shoe size\r\n\
    8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01,Ada@Example.com,true,Ada Lovelace,https://pictures.example/ada,2021-05-31T12:00:00Z,false,idp,ada-1,38\r\n\
    8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01,ada@example.com,true,Ada Lovelace,,,,second,ada-2,\r\n\
    \r\n\
    ,grace@example.com,false,\"Hopper, \"\"Amazing\"\" Grace\",,2022-01-01T00:00:00.5+01:00,,idp,grace,\r\n\
    ,alan@example.com,t,,,,true,,,\r\n\
    ,alan@example.com,t,,,,true,second,alan,\r\n\
    ,,,Nobody,,,,second,nobody,\r\n";
const THE_SAME_PEOPLE: &str = r#"{"id":"8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01","email":"Ada@Example.com","email_verified":true,"name":"Ada Lovelace","picture":"https://pictures.example/ada","created_at":"2021-05-31T12:00:00Z","disabled":false,"identities":[{"provider":"idp","subject":"ada-1"},{"provider":"second","subject":"ada-2","email":"ada@example.com","email_verified":"true"}],"shoe size":38}

{"email":"grace@example.com","email_verified":"false","name":"Hopper, \"Amazing\" Grace","created_at":"2022-01-01T00:00:00.5+01:00","provider":"idp","subject":"grace","picture":null}
{"email":"alan@example.com","email_verified":true,"disabled":true,"provider":"second","subject":"alan","name":""}
{"name":"Nobody","identities":[{"provider":"second","subject":"nobody"}]}
"#;

const IGNORING: &[&str] = &["--ignore", "shoe size"];

#[tokio::test(flavor = "multi_thread")]
async fn a_file_brings_everybody_once_and_the_same_in_either_format() {
    let database = Database::create().await;
    let other = Database::create().await;
    let path = file("people.csv", PEOPLE);
    let ended = import_with(&database, &path, IGNORING).await;
    assert_eq!(ended.counts(), (Some(0), 6, 0, 0), "{ended:?}");
    assert_eq!(ended.error, "");
    let people = everybody(&database).await;
    assert_eq!(
        people,
        [
            "8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01|ada@example.com|t|Ada Lovelace|https://pictures.example/ada|2021-05-31 12:00:00+00|f|t|idp:ada-1:Ada@Example.com:f:Ada Lovelace,second:ada-2:ada@example.com:f:Ada Lovelace",
            "new|alan@example.com|t|t|t|second:alan:alan@example.com:f",
            "new|f|Nobody|f|t|second:nobody:f:Nobody",
            "new|grace@example.com|f|Hopper, \"Amazing\" Grace|2021-12-31 23:00:00.5+00|f|t|idp:grace:grace@example.com:f:Hopper, \"Amazing\" Grace",
        ]
    );
    let again = import_with(&database, &path, IGNORING).await;
    assert_eq!(again.counts(), (Some(0), 0, 6, 0), "{again:?}");
    assert_eq!(everybody(&database).await, people);
    let events: Vec<(String, String, String)> = database
        .all("SELECT kind, actor, detail::text FROM events")
        .await;
    let told = r#"{"users": 4, "identities": 5}"#;
    assert_eq!(
        events,
        [(
            "users_imported".into(),
            "the command line".into(),
            told.into()
        )]
    );
    let filter = Filter {
        what: EventCategory::Staff,
        ..Filter::default()
    };
    let audit = event_log::page(&database.service, &filter, None, 10)
        .await
        .unwrap()
        .0;
    assert_eq!(audit[0].about.as_deref(), Some("4 users, 5 identities"));
    let ids = "SELECT count(*) FROM users WHERE email = 'grace@example.com' AND id < '017e1400-0000-7000-8000-000000000000'";
    assert_eq!(
        database.count(ids).await,
        1,
        "a new id tells the time of the sign-up"
    );

    let path = file("people.jsonl", THE_SAME_PEOPLE);
    let ended = import_with(&other, &path, IGNORING).await;
    assert_eq!(ended.counts(), (Some(0), 4, 0, 0), "{ended:?}");
    assert_eq!(everybody(&other).await, people);
    assert_eq!(
        import_with(&database, &path, IGNORING).await.counts(),
        (Some(0), 0, 4, 0)
    );
    assert_eq!(everybody(&database).await, people);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rows_are_listed_by_line_and_do_not_block_others() {
    let database = Database::create().await;
    let mut rows = b"email,provider,subject,id\n".to_vec();
    let mut expected = Vec::new();
    let mut sound = 0;
    let mut line = 2;
    let long = "x".repeat(3 << 20);
    for (row, why) in [
        ("ada@example.com,,,", ""),
        ("too@example.com,few", "has 2 fields, but the header has 4"),
        (
            "too@example.com,,,,many",
            "has 5 fields, but the header has 4",
        ),
        (
            ",,,",
            "has neither an `email` nor a `provider` with a `subject`",
        ),
        ("b@example.com,elsewhere,1,", ""),
        (&long, "is longer than 1048576 bytes"),
        ("c@example.com,idp,1,", ""),
        (",idp,1,", ""),
        ("e@example.com,,,00000000-0000-4000-8000-000000000001", ""),
        (",idp,2,00000000-0000-4000-8000-000000000001", ""),
        ("E@example.com,,,00000000-0000-4000-8000-000000000001", ""),
        (
            "e@example.com,,,00000000-0000-4000-8000-000000000002",
            "its `email` belongs to a user with another id",
        ),
        (
            "\"quoted, and \"\"more\"\"@example.com\",,,",
            "`email` is not exactly one e-mail address",
        ),
    ] {
        rows.extend(row.as_bytes());
        rows.push(b'\n');
        if why.is_empty() {
            sound += 1;
        } else {
            expected.push((line, why.to_owned()));
        }
        line += 1 + row.matches('\n').count() as u64;
    }
    rows.extend(
        b"caf\xe9@example.com,,,\nz@example.com,,,\n\"never@example.com,,,\nclosed@example.com,,,",
    );
    expected.push((line, "is not UTF-8".into()));
    expected.push((line + 2, "has a quotation mark that is never closed".into()));
    let ended = import(&database, &file("rows.csv", rows)).await;
    assert_eq!(ended.refused, expected);
    assert_eq!(
        (ended.code, ended.imported + ended.already),
        (Some(3), sound + 2),
        "{ended:?}"
    );
    assert_eq!(database.rows().await[..2], [6, 2]);

    // Rows that contradict existing users.
    let rows = "email,provider,subject,id\nd@example.com,idp,1,\n\
        f@example.com,,,00000000-0000-4000-8000-000000000001\n,idp,1,00000000-0000-4000-8000-000000000003\n";
    let ended = import(&database, &file("contradicting.csv", rows)).await;
    assert_eq!(ended.counts(), (Some(3), 0, 0, 3), "{ended:?}");
    assert_eq!(ended.why(2), "its identity belongs to another user");
    assert_eq!(
        ended.why(3),
        "its `id` belongs to a user with another e-mail address"
    );
    assert_eq!(ended.why(4), "its identity belongs to another user");

    let lines = [
        r#"{"email":"g@example.com"}"#,
        r#"{"email":"h@example.com","email":"i@example.com"}"#,
        r#"{"identities":[{"provider":"idp","subject":"2","subject":"3"}]}"#,
        r#"{"identities":[{"provider":"idp","subject":"3"},{"provider":"idp","subject":"3"}]}"#,
        r#"{"email":"#,
        r#"["h@example.com"]"#,
        r#"{"email":["h@example.com"]}"#,
        r#"{"identities":{"provider":"idp","subject":"2"}}"#,
        "",
        &format!(r#"{{"email":"h@example.com","name":"{long}"}}"#),
        r#"{"email":"h@example.com","email_verified":1}"#,
        r#"{"email":"j@example.com"}"#,
    ];
    let ended = import(&database, &file("lines.ndjson", lines.join("\n"))).await;
    assert_eq!(ended.counts(), (Some(3), 2, 0, 9), "{ended:?}");
    let told: Vec<_> = (2..=8).chain(10..=11).map(|line| ended.why(line)).collect();
    assert_eq!(
        told,
        [
            "has a duplicate member",
            "has a duplicate member",
            "has a duplicate identity",
            "is not JSON (column 9)",
            "is not a JSON object",
            "`email` has the wrong type",
            "`identities` has the wrong type",
            "is longer than 1048576 bytes",
            "`email_verified` has the wrong type",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_owner_takes_an_imported_address_without_joining_unverified_users() {
    let app = App::start().await;
    let path = file(
        "owners.csv",
        "email,email_verified,name,provider,subject\n\
         ada@example.com,true,Ada,second,ada-elsewhere\n\
         grace@example.com,false,Not Grace,second,mallory\n",
    );
    assert_eq!(
        import(&app.database, &path).await.counts(),
        (Some(0), 2, 0, 0)
    );

    // An imported identity signs in as an existing user.
    let mallory = with(
        claims("mallory", "grace@example.com"),
        &json!({ "iss": "https://second.example", "email_verified": false }),
    );
    let answer = app.sign_in_at("second", &mallory).await;
    assert_eq!(
        (answer.status.as_u16(), answer.outcome().as_str()),
        (200, "signed_in"),
        "{}",
        answer.text
    );
    let intruder = answer.user_id();
    let session = answer.refresh_token();

    let answer = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.outcome().as_str()),
        (200, "linked"),
        "{}",
        answer.text
    );
    let answer = app.sign_in(&claims("grace", "grace@example.com")).await;
    assert_eq!(answer.outcome(), "created", "{}", answer.text);
    assert_ne!(answer.user_id(), intruder);
    assert_eq!(answer.json()["user"]["email_verified"], true);
    assert_eq!(
        app.refresh(&session).await.status,
        200,
        "each has an account of their own"
    );

    // Importing the file again neither restores access nor takes anything from a user.
    let again = import(&app.database, &path).await;
    assert_eq!((again.code, again.already), (Some(3), 1), "{again:?}");
    assert!(
        again.why(3).contains("belongs to another user"),
        "{again:?}"
    );
    let identities: Vec<String> = app
        .database
        .values(
            "SELECT coalesce(u.email, 'nobody') || ' ' || i.provider || ' ' || i.subject
         FROM identities i JOIN users u ON u.id = i.user_id ORDER BY 1",
        )
        .await;
    assert_eq!(
        identities,
        [
            "ada@example.com idp ada",
            "ada@example.com second ada-elsewhere",
            "grace@example.com idp grace",
            "nobody second mallory"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_a_way_to_somebody_elses_account() {
    let app = App::start().await;
    let victim = app.sign_in(&claims("victim", "victim@example.com")).await;
    let id = victim.user_id();
    let rows = format!(
        "email,email_verified,id,provider,subject\n\
         victim@example.com,false,,idp,mallory-1\n\
         victim@example.com,,,idp,mallory-2\n\
         ,,{id},idp,mallory-3\n\
         victim@example.com,true,{id},idp,mallory-4\n\
         mallory@example.com,true,,idp,victim\n\
         mallory@example.com,true,{id},,\n\
         victim@example.com,true,,,\n\
         victim@example.com,true,,idp,victim\n\
         newcomer@example.com,true,,idp,newcomer\n\
         newcomer@example.com,false,,idp,mallory-5\n\
         unproven@example.com,false,,idp,unproven\n\
         unproven@example.com,false,,idp,mallory-6\n\
         unproven@example.com,true,,idp,mallory-7\n"
    );
    let before = everybody(&app.database).await;
    let path = file("mallory.csv", rows);
    let ended = import(&app.database, &path).await;
    assert_eq!(ended.counts(), (Some(3), 2, 2, 9), "{ended:?}");
    for line in [2, 3, 4, 5] {
        assert!(ended.why(line).contains("nothing is added"), "{ended:?}");
    }
    assert_eq!(ended.why(6), "its identity belongs to another user");
    assert_eq!(
        ended.why(7),
        "its `id` belongs to a user with another e-mail address"
    );
    for line in [11, 13, 14] {
        assert!(
            ended
                .why(line)
                .contains("an unverified address is not linked"),
            "{ended:?}"
        );
    }
    let after = everybody(&app.database).await;
    let kept = after.iter().filter(|line| before.contains(line)).count();
    assert_eq!((kept, after.len()), (1, 3), "{after:#?}");
    assert_eq!(
        import(&app.database, &path).await.refused,
        ended.refused,
        "and again"
    );
    assert_eq!(everybody(&app.database).await, after);
    assert_eq!(app.refresh(&victim.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_adds_identities_to_earlier_users_with_proven_addresses() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let unverified = with(
        claims("eve", "grace@example.com"),
        &json!({ "email_verified": false }),
    );
    assert_eq!(app.sign_in(&unverified).await.outcome(), "created");
    let barred = app.sign_in(&claims("barred", "barred@example.com")).await;
    let path = file(
        "late.csv",
        "email,email_verified,name,provider,subject,disabled\n\
         Ada@example.com,true,Another Ada,second,ada-before,\n\
         ada@example.com,true,,second,ada-long-before,\n\
         grace@example.com,true,,second,grace-before,\n\
         barred@example.com,true,,second,barred-before,true\n",
    );
    let ended = import(&app.database, &path).await;
    assert_eq!(ended.counts(), (Some(3), 3, 0, 1), "{ended:?}");
    assert!(ended.why(5).contains("nothing is added"), "{ended:?}");
    // Eve has the address unverified, and the old system has verified it for Grace.
    let eves = app
        .sign_in(&with(
            claims("eve", "grace@example.com"),
            &json!({ "email": null }),
        ))
        .await
        .json();
    assert_eq!(eves["user"]["email"], json!(null));
    let grace = with(
        claims("grace-before", "grace@example.com"),
        &json!({ "iss": "https://second.example" }),
    );
    assert_eq!(
        app.sign_in_at("second", &grace).await.outcome(),
        "signed_in"
    );
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events WHERE kind = 'email_lost'")
            .await,
        1
    );
    let before = with(
        claims("ada-before", "ada@example.com"),
        &json!({ "iss": "https://second.example" }),
    );
    let signed_in = app.sign_in_at("second", &before).await;
    assert_eq!(
        (signed_in.outcome(), signed_in.user_id()),
        ("signed_in".to_owned(), ada.user_id())
    );
    assert_eq!(
        app.refresh(&ada.refresh_token()).await.status,
        200,
        "nothing of hers is taken"
    );
    assert_eq!(app.refresh(&barred.refresh_token()).await.status, 200);
    let again = import(&app.database, &path).await;
    assert_eq!(again.counts(), (Some(3), 0, 3, 1), "{again:?}");
}

/// Returns a file of this many people: first a row for each at `idp`, then a row for each at
/// `second`.
fn csv_of_people(people: i64) -> String {
    let row =
        |number, provider| format!("p{number}@example.com,true,P {number},{provider},s{number}\n");
    let rows = ["idp", "second"]
        .into_iter()
        .flat_map(|provider| (0..people).map(move |number| row(number, provider)));
    let header = "email,email_verified,name,provider,subject\n".to_owned();
    std::iter::once(header).chain(rows).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_killed_midway_and_repeated_matches_the_file() {
    const PEOPLE: i64 = 40_000;
    const IDENTITIES: &str = "SELECT count(*) FROM identities";
    let database = Database::create().await;
    let path = file("people.csv", csv_of_people(PEOPLE));
    let mut there = 0;
    for _ in 0..3 {
        let mut child = command(&database.url, &[path.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Waits until the import has written something, and kills it while it continues.
        while database.count(IDENTITIES).await == there && child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let halves = "SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id)";
        assert_eq!(database.count(halves).await, 0, "nobody is there by half");
        let now = database.count(IDENTITIES).await;
        assert!(
            there < now && now < 2 * PEOPLE,
            "it was in the middle: {there}, {now}"
        );
        there = now;
    }
    // Statements of the killed import may still run for a moment; their effect equals the next
    // import's.
    let ended = import(&database, &path).await;
    assert_eq!((ended.code, ended.refused.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(
        ended.imported + ended.already,
        usize::try_from(2 * PEOPLE).unwrap()
    );
    let exactly = "SELECT count(*) FROM generate_series(0, 39999) n
        JOIN users u ON u.email = 'p' || n || '@example.com' AND u.email_verified AND u.name = 'P ' || n
        JOIN identities i ON i.user_id = u.id AND i.subject = 's' || n AND i.provider IN ('idp', 'second')";
    assert_eq!(database.count(exactly).await, 2 * PEOPLE);
    let [users, identities, ..] = database.rows().await;
    assert_eq!(
        (users * 2, identities),
        (usize::try_from(2 * PEOPLE).unwrap(), users * 2)
    );
    let counted =
        "SELECT sum((detail->>'users')::bigint)::bigint FROM events WHERE kind = 'users_imported'";
    assert_eq!(
        database.count(counted).await,
        PEOPLE,
        "the audit has them all, across the kills"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_during_an_import_create_no_duplicate_users() {
    const PEOPLE: i64 = 15_000;
    let app = App::start().await;
    let path = file("people.csv", csv_of_people(PEOPLE));
    let imported = import(&app.database, &path);
    let signed_in = async {
        for number in (0..PEOPLE).step_by(250) {
            let answer = app
                .sign_in(&claims(
                    &format!("s{number}"),
                    &format!("p{number}@example.com"),
                ))
                .await;
            assert!(answer.status.is_success(), "{}", answer.text);
        }
    };
    let (ended, ()) = tokio::join!(imported, signed_in);
    // Users who signed in before their rows keep their identity; the row's other identity is not
    // added.
    assert!(
        ended
            .refused
            .iter()
            .all(|(_, why)| why.contains("nothing is added")),
        "{ended:?}"
    );
    assert!(ended.refused.len() <= 60, "{ended:?}");
    let [users, identities, sessions] = app.database.rows().await;
    assert_eq!(users, usize::try_from(PEOPLE).unwrap());
    assert_eq!(
        (identities, sessions),
        (2 * users - ended.refused.len(), 60)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_read_too_and_what_is_refused_is_said() {
    let database = Database::create().await;
    let run = |arguments: &[&str], input: &str| {
        let mut child = command(&database.url, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program closes its input if it fails before it reads.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output = run(
        &["-", "--format", "csv"],
        "email\nada@example.com\nnobody\n",
    );
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        text(&output.stderr),
        "line 3: `email` is not exactly one e-mail address\n"
    );
    let list = file("list.csv", "what an earlier import left");
    let arguments = [
        "-",
        "--format",
        "jsonl",
        "--refused",
        list.to_str().unwrap(),
    ];
    assert_eq!(run(&arguments, "{}\n").status.code(), Some(3));
    assert!(
        fs::read_to_string(&list)
            .unwrap()
            .contains("\n1,has neither")
    );
    assert_eq!(
        run(&arguments, "{\"email\":\"ada@example.com\"}")
            .status
            .code(),
        Some(0)
    );
    assert!(!list.exists(), "nothing is refused any more");

    for wrong in [&["-"][..], &["people.txt"], &["-", "--format", "xml"]] {
        let output = run(wrong, "");
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong:?}"
        );
    }
    for (wrong, words) in [
        ("", "it is missing"),
        ("mail\na@example.com\n", "unknown columns: `mail`"),
        ("name\nAda\n", "neither `email` nor"),
        ("e\0m\0a\0i\0l\0", "unknown"),
        ("email,name,email\n", "names `email` twice"),
        ("email,E-Mail\n", "names `email` twice"),
        ("email,\"name\n", "never closed"),
        ("sep=;\n", "it is missing"),
        (
            "x1,mail@example.com,false,hash==,salt==,,1508255889000\n",
            "the first row is a user",
        ),
    ] {
        let output = run(&["-", "--format", "csv"], wrong);
        let said = text(&output.stderr);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(1), 1),
            "{said}"
        );
        assert!(said.contains(words) && !said.contains("hash=="), "{said}");
    }
}

/// Selects kind, reason, actor and provider of the events of linked identities.
const LINKED: &str =
    "SELECT kind || ' ' || coalesce(reason, '-') || ' ' || coalesce(actor, '-') || ' ' || provider
    FROM events WHERE kind = 'identity_linked' ORDER BY id";

#[tokio::test(flavor = "multi_thread")]
async fn an_import_brings_no_deleted_user_back() {
    let app = App::start().await;
    let path = file(
        "again.csv",
        "id,email,email_verified,provider,subject\n\
         8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01,ada@example.com,true,idp,ada\n\
         8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a02,alan@example.com,true,,\n\
         8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a03,joan@example.com,false,,\n\
         ,grace@example.com,true,idp,grace\n",
    );
    assert_eq!(
        import(&app.database, &path).await.counts(),
        (Some(0), 4, 0, 0)
    );
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let alan = app.sign_in(&claims("alan", "alan@example.com")).await;
    for gone in [&ada, &grace, &alan] {
        assert_eq!(
            app.delete(&gone.access_token(), "/api/v1/me").await.status,
            204
        );
    }
    // Joan is merged into another user, so that her id belongs to no user any more.
    let into = app.sign_in(&claims("joan", "joan@new.example")).await;
    let joan = Uuid::parse_str("8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a03").unwrap();
    let merge = Change::Merge {
        from: joan,
        into: into.user(),
    };
    assert!(matches!(app.by_staff(merge).await, Some(Outcome::Done)));

    let again = import(&app.database, &path).await;
    assert_eq!(again.counts(), (Some(3), 0, 0, 4), "{again:?}");
    for line in [2, 3, 5] {
        assert_eq!(
            again.why(line),
            "its user, or its identity, was deleted here"
        );
    }
    assert_eq!(
        again.why(4),
        "its `id` is that of a user who was merged into another one here"
    );
    assert_eq!(app.database.rows().await[0], 1);

    // The hash of a deleted identity expires after a day, the event of a deletion only with all
    // events.
    app.database.run("DELETE FROM deleted_identities").await;
    let later = import(&app.database, &path).await;
    assert_eq!(later.counts(), (Some(3), 1, 0, 3), "{later:?}");
    assert_eq!(later.refused, again.refused[..3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_an_import_adds_to_a_user_is_recorded() {
    let app = App::start().await;
    let pool = &app.database.pool;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('shop', '{identity.linked}')"
    );
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let path = file(
        "live.csv",
        "email,email_verified,provider,subject\n\
         ada@example.com,true,second,ada-before\n\
         ada@example.com,true,second,ada-long-before\n\
         new@example.com,true,idp,new\n\
         new@example.com,true,second,new\n",
    );
    assert_eq!(
        import(&app.database, &path).await.counts(),
        (Some(0), 4, 0, 0)
    );
    let linked = "identity_linked imported the command line second";
    assert_eq!(
        app.database.values::<String>(LINKED).await,
        [linked, linked]
    );
    let told: Vec<String> = app
        .database
        .values("SELECT facts #>> '{identity,subject}' FROM webhook_messages ORDER BY id")
        .await;
    assert_eq!(told, ["ada-before", "ada-long-before"]);
    let users: Vec<String> = app
        .database
        .values("SELECT DISTINCT user_id::text FROM webhook_messages")
        .await;
    assert_eq!(users, [ada.user_id()]);
    assert_eq!(
        import(&app.database, &path).await.counts(),
        (Some(0), 0, 4, 0)
    );
    assert_eq!(
        app.database.values::<String>(LINKED).await.len(),
        2,
        "an import again adds nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_import_links_to_a_user_who_is_disabled_or_hijacked() {
    let app = App::start().await;
    for name in ["ada", "eve", "far"] {
        app.sign_in(&claims(name, &format!("{name}@example.com")))
            .await;
    }
    app.database
        .run("UPDATE users SET disabled_at = now() WHERE email = 'eve@example.com'")
        .await;
    app.database
        .run("UPDATE identities SET reported_at = now(), reported_reason = 'hijacking' WHERE subject = 'ada'")
        .await;
    let path = file(
        "barred.csv",
        "email,email_verified,provider,subject\n\
         ada@example.com,true,second,ada\n\
         eve@example.com,true,second,eve\n\
         far@example.com,true,second,far\n",
    );
    let ended = import(&app.database, &path).await;
    assert_eq!(ended.counts(), (Some(3), 1, 0, 2), "{ended:?}");
    assert!(ended.why(2).contains("is suspended"), "{ended:?}");
    assert!(ended.why(3).contains("nothing is added"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_gets_at_most_twenty_identities_from_rows() {
    let database = Database::create().await;
    let header = "email,email_verified,provider,subject\n";
    let row = |subject: usize| format!("ada@example.com,true,idp,{subject}\n");
    let rows: String = std::iter::once(header.to_owned())
        .chain((1..=22).map(row))
        .collect();
    let ended = import(&database, &file("many.csv", rows)).await;
    assert_eq!(ended.counts(), (Some(3), 20, 0, 2), "{ended:?}");
    assert_eq!(ended.why(23), "its user would have more than 20 identities");
    let identities: Vec<_> = (1..=21)
        .map(|subject| json!({ "provider": "second", "subject": subject.to_string() }))
        .collect();
    let lines = json!({ "email": "grace@example.com", "identities": identities }).to_string();
    let ended = import(&database, &file("many.jsonl", lines)).await;
    assert_eq!(ended.why(1), "its user would have more than 20 identities");
    assert_eq!(database.rows().await[..2], [1, 20]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_again_vouches_for_no_existing_user() {
    const PROVEN: &str = "SELECT count(*) FROM users u WHERE email_vouched
        OR EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.email_verified)";
    let app = App::start().await;
    let row = "ada@example.com,true,second,ada\n";
    let path = file(
        "vouched.csv",
        format!("email,email_verified,provider,subject\n{row}"),
    );
    assert_eq!(
        import(&app.database, &path).await.counts(),
        (Some(0), 1, 0, 0)
    );
    let vouched = "SELECT count(*) FROM users WHERE email_vouched AND email_verified";
    assert_eq!(app.database.count(vouched).await, 1);
    let flags = "SELECT count(*) FROM identities WHERE email_verified";
    assert_eq!(
        app.database.count(flags).await,
        0,
        "no token has shown that the identity has the address"
    );
    // The import's verification has ended, as after the end of an identity's proof.
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(ada.outcome(), "linked");
    app.database
        .run("UPDATE users SET email_vouched = false")
        .await;
    let more = file(
        "more.csv",
        format!("email,email_verified,provider,subject\n{row}ada@example.com,true,second,ada-2\n"),
    );
    assert_eq!(
        import(&app.database, &more).await.counts(),
        (Some(0), 1, 1, 0)
    );
    assert_eq!(app.database.count(vouched).await, 0);
    app.database
        .run("DELETE FROM identities WHERE subject = 'ada' AND provider = 'idp'")
        .await;
    assert_eq!(app.database.count(PROVEN).await, 0);
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM users WHERE email_verified")
            .await,
        0
    );
    let again = import(&app.database, &more).await;
    assert_eq!((again.imported, again.already), (0, 2), "{again:?}");
    assert_eq!(app.database.count(PROVEN).await, 0);
    assert_eq!(
        app.sign_in(&claims("next-owner", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_read_however_they_are_spelt_and_unknown_ones_named() {
    let rows = "true\u{b7}Ada\u{b7}2024-01-02 03:04:05.5+00\u{b7}1\u{b7}ada@example.com\u{b7}idp\u{b7}ada\n";
    for (separator, end) in [(",", "\n"), (";", "\r\n"), ("\t", "\r")] {
        let database = Database::create().await;
        let header = "\u{feff}Email-Verified\u{b7} Name \u{b7}createdAt\u{b7}DISABLED\u{b7}E-Mail\u{b7}Provider\u{b7}\u{200b}subject\n";
        let text = format!("{header}{rows}")
            .replace('\u{b7}', separator)
            .replace('\n', end);
        let ended = import(&database, &file("spelt.csv", text)).await;
        assert_eq!(ended.counts(), (Some(0), 1, 0, 0), "{ended:?}");
        let ada =
            "new|ada@example.com|t|Ada|2024-01-02 03:04:05.5+00|t|t|idp:ada:ada@example.com:f:Ada";
        assert_eq!(everybody(&database).await, [ada]);
    }
    let database = Database::create().await;
    let line = r#"{"E-Mail":" ada@example.com ","emailVerified":true,"Identities":[{"Provider":"IDP","Sub-ject":"1"}]}"#;
    assert_eq!(
        import(&database, &file("spelt.jsonl", line)).await.counts(),
        (Some(0), 1, 0, 0)
    );
    let twice = r#"{"email":"ada@example.com","E-Mail":"eve@example.com"}"#;
    assert_eq!(
        import(&database, &file("twice.jsonl", twice)).await.why(1),
        "has a duplicate member"
    );

    // The separator is named by a first line, or is the one with the most known columns.
    for (number, text) in [
        "sep=;\r\nemail;name\r\nada@example.com;Ada\r\n",
        "\u{feff}SEP=|\nemail|name\nada@example.com|Ada\n",
        "sep=\t\nemail\tname\nada@example.com\tAda\n",
        "email;name;Price (net, gross, each)\nada@example.com;Ada;1\n",
        "\"name\"\t\"email\"\t\"Cost per 1,000; or, if you like, less\"\nAda\tada@example.com\t\"1,5\"\n",
    ]
    .into_iter()
    .enumerate()
    {
        let database = Database::create().await;
        let ignored = ["Price (net gross each)", "Cost per 1000; or if you like less"];
        let arguments = ignored.map(|name| ["--ignore", name]).concat();
        let path = file(&format!("separator-{number}.csv"), text);
        let ended = import_with(&database, &path, &arguments).await;
        assert_eq!(ended.counts(), (Some(0), 1, 0, 0), "{text} {ended:?}");
        let name = "SELECT name FROM users WHERE email = 'ada@example.com'";
        assert_eq!(database.value::<String>(name).await, "Ada", "{text}");
    }
    let path = file(
        "extra.csv",
        "email,Shoe Size,mail,\nada@example.com,38,x,\ngrace@example.com,,,lost\n",
    );
    let ended = import(&database, &path).await;
    assert_eq!(
        (ended.code, ended.imported, ended.error.lines().count()),
        (Some(1), 0, 1),
        "{ended:?}"
    );
    for word in ["`Shoe Size`, `mail`", "email_verified", "--ignore"] {
        assert!(ended.error.contains(word), "{ended:?}");
    }
    let ignored = import_with(&database, &path, &["--ignore", "shoe-size,mail"]).await;
    assert_eq!(ignored.counts(), (Some(3), 0, 1, 1), "{ignored:?}");
    assert_eq!(
        ignored.why(3),
        "has a value in column 4, which has no name in the header"
    );
    let lines = "{\"email\":\"joan@example.com\",\"Shoe Size\":38}\n{\"email\":\"alan@example.com\"}\n\
        {\"identities\":[{\"provider\":\"idp\",\"subject\":\"7\",\"since\":\"1999\"}]}";
    let path = file("extra.jsonl", lines);
    let ended = import(&database, &path).await;
    assert_eq!(ended.counts(), (Some(3), 1, 0, 2), "{ended:?}");
    assert_eq!(
        ended.why(1),
        "has the unknown member `Shoe Size`; `--ignore` leaves it out"
    );
    assert_eq!(
        ended.why(3),
        "has the unknown member `since`; `--ignore` leaves it out"
    );
    let ignored = import_with(
        &database,
        &path,
        &["--ignore", "Shoe Size", "--ignore", "since"],
    )
    .await;
    assert_eq!(ignored.counts(), (Some(0), 2, 1, 0), "{ignored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_costs_no_other_row() {
    let database = Database::create().await;
    let mut rows = b"email,name\n".to_vec();
    let mut bad = Vec::new();
    let mut good = 0;
    let long = format!("long@example.com,\"{}\"", "x".repeat(2 << 20));
    let unclosed = "has a quotation mark that is never closed";
    let after = "has text between a closing quotation mark and the end of its field";
    for (line, (row, why)) in (2..).zip([
        (&b"a@example.com,\"Ada"[..], after),
        (b"b@example.com,\"Bob \"\"the\"\" Builder\"", ""),
        (b"caf\xe9@example.com,Caf\xe9", "is not UTF-8"),
        (b"c@example.com,Carol \"C\" Curry", ""),
        (b"\"d@example.com,Dan", after),
        (b"\"e@example.com\",Eve", ""),
        (b"f@example.com,Fay\0", ""),
        (
            b"g\0@example.com,Gus",
            "`email` is not exactly one e-mail address",
        ),
        (long.as_bytes(), "is longer than 1048576 bytes"),
        (b"h@example.com,Hal,", "has 3 fields, but the header has 2"),
        (b"i@example.com,\"Ida\" Ick", after),
        (b"j@example.com,\"Jo\" ", after),
        (b"k@example.com,\"Kim", unclosed),
        (b"l@example.com,Lea", ""),
    ]) {
        rows.extend(row);
        rows.push(b'\n');
        if why.is_empty() {
            good += 1;
        } else {
            bad.push((line, why.to_owned()));
        }
    }
    // These exceed the size limit of a row, so that the search for the closing quotation mark ends
    // before the file does.
    for number in 0..40_000 {
        rows.extend(format!("n{number}@example.com,A name of some length\n").bytes());
    }
    let ended = import(&database, &file("bad.csv", rows)).await;
    assert_eq!(ended.refused, bad);
    assert_eq!(ended.counts(), (Some(3), good + 40_000, 0, bad.len()));

    let several = "email,name\nm@example.com,\"Mia\r\nof two lines\"\nn@example.com,\"Ned,\no@example.com,Oda\n";
    let ended = import(&database, &file("lines.csv", several)).await;
    assert_eq!(ended.counts(), (Some(3), 2, 0, 1), "{ended:?}");
    assert_eq!(ended.why(4), unclosed);
    let name = "SELECT name FROM users WHERE email = 'm@example.com'";
    assert_eq!(database.value::<String>(name).await, "Miaof two lines");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_read_as_databases_and_spreadsheets_write_them() {
    let database = Database::create().await;
    let rows = "email,name,created_at,provider,subject\n\
        ada@example.com,\\N,\\N,\\N,\\N\n\
        grace@example.com,NULL,2024-01-02T03:04:05+0000,NULL,NULL\n\
        '+1@example.com,'007,,idp,'108204268033311374519\n\
        e@example.com,'Abd al-Rahman,,idp,8.96529E+19\n\
        f@example.com,Fay,,idp,\"4,687E+11\"\n\
        g@example.com,Gus,1.70416E+12,,\n";
    let ended = import(&database, &file("written.csv", rows)).await;
    assert_eq!(ended.counts(), (Some(3), 3, 0, 3), "{ended:?}");
    for line in [5, 6] {
        assert!(
            ended.why(line).contains("rounded by a spreadsheet"),
            "{ended:?}"
        );
    }
    assert!(
        ended.why(7).contains("`created_at` is not a time"),
        "{ended:?}"
    );
    assert_eq!(
        everybody(&database).await,
        [
            "new|+1@example.com|f|007|f|t|idp:108204268033311374519:+1@example.com:f:007",
            "new|ada@example.com|f|f|t",
            "new|grace@example.com|f|2024-01-02 03:04:05+00|f|t",
        ]
    );
}

/// Runs a program on a file of `deploy/moving`; returns `None` if the program is not installed.
fn moved_by(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let run = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = run else {
        skip(program);
        return None;
    };
    assert!(
        output.status.success(),
        "{program}: {}",
        text(&output.stderr)
    );
    Some(output.stdout)
}

/// Ten kinds of users, a thousand of each: with Google and GitHub (0 and 1), GitHub (2), a password
/// (3), Google (4 to 6), only a phone number (7), anonymous (8), and with Twitter and no address
/// (9).
const SUPABASE: &str = "CREATE SCHEMA auth;
    CREATE TABLE auth.users (id uuid PRIMARY KEY, email text, email_confirmed_at timestamptz, phone text,
        raw_user_meta_data jsonb, created_at timestamptz, banned_until timestamptz, deleted_at timestamptz,
        is_anonymous boolean NOT NULL, is_sso_user boolean NOT NULL DEFAULT false);
    CREATE TABLE auth.identities (user_id uuid, provider text, provider_id text, email text, identity_data jsonb,
        created_at timestamptz);
    CREATE INDEX ON auth.identities (user_id);
    CREATE TABLE people AS SELECT gen_random_uuid() AS id, n, n % 10 AS kind FROM generate_series(0, 9999) AS n;
    INSERT INTO auth.users
    SELECT id, CASE WHEN kind < 7 THEN 'u' || n || '@example.com' ELSE '' END, CASE WHEN kind < 7 THEN now() END,
           CASE WHEN kind = 7 THEN '49301' || n END,
           CASE WHEN kind <> 5 THEN jsonb_build_object('full_name', 'User ' || n) END,
           CASE WHEN kind <> 6 THEN now() - n * interval '1 hour' END, NULL, NULL, kind = 8
    FROM people;
    INSERT INTO auth.identities
    SELECT id, provider, provider || '-' || n, CASE WHEN kind < 7 THEN 'u' || n || '@example.com' END,
           jsonb_build_object('email_verified', CASE WHEN n % 3 = 0 THEN 'unknown' ELSE 'true' END), now()
    FROM people JOIN (VALUES (0, 'google'), (0, 'github'), (1, 'google'), (1, 'github'), (2, 'github'), (3, 'email'),
                             (4, 'google'), (5, 'google'), (6, 'google'), (7, 'phone'), (9, 'twitter'))
                     AS has (kind, provider) USING (kind)";

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_users_of_supabase_are_all_accounted_for() {
    let old = Database::bare().await;
    let database = Database::create().await;
    sqlx::raw_sql(SUPABASE).execute(&old.pool).await.unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/moving/supabase.sql");
    let Some(lines) = moved_by(
        "psql",
        &["-XAt", "-v", "ON_ERROR_STOP=1", "-f", script, &old.url],
    ) else {
        return;
    };
    let path = file("supabase.jsonl", lines);
    let ended = import(&database, &path).await;
    // The file has all users except the thousand anonymous ones: a thousand have only a phone
    // number, a thousand Twitter.
    assert_eq!(ended.counts(), (Some(0), 7_000, 0, 0), "{ended:?}");
    assert_eq!(ended.left_out, 2_000, "{ended:?}");
    assert!(
        ended
            .out
            .contains("4000 identities left out: `github` (3000), `twitter` (1000)"),
        "{}",
        ended.out
    );
    assert_eq!(database.rows().await[..2], [7_000, 5_000]);
    let again = import(&database, &path).await;
    assert_eq!(
        (again.code, again.already, again.left_out),
        (Some(0), 7_000, 2_000),
        "{again:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_firebase_is_imported_whatever_one_user_lacks() {
    let database = Database::create().await;
    let user = |changes: serde_json::Value| {
        let sound = json!({ "localId": "x", "emailVerified": true, "createdAt": "1704164645678", "disabled": false });
        with(sound, &changes)
    };
    let google =
        |id: &str| json!([{ "providerId": "google.com", "rawId": id, "email": "a@example.com" }]);
    let export = json!({ "users": [
        user(json!({ "email": "ada@example.com", "providerUserInfo": google("1") })),
        user(json!({ "email": "grace@example.com", "createdAt": null, "providerUserInfo": google("2") })),
        user(json!({ "email": "alan@example.com", "createdAt": "Tue, 02 Jan 2024 03:04:05 GMT",
                     "providerUserInfo": [{ "providerId": "password", "rawId": "alan@example.com" }] })),
        user(json!({ "email": "joan@example.com", "providerUserInfo": [{ "providerId": "github.com", "rawId": "3" }] })),
        user(json!({ "phoneNumber": "+4930123", "providerUserInfo": [{ "providerId": "phone", "rawId": "+4930123" }] })),
        user(json!({ "providerUserInfo": [{ "providerId": "twitter.com", "rawId": "4" }] })),
        user(json!({})),
    ] });
    let export = file("export.json", export.to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/moving/firebase.jq");
    let Some(lines) = moved_by("jq", &["-cf", script, export.to_str().unwrap()]) else {
        return;
    };
    let ended = import(&database, &file("firebase.jsonl", lines)).await;
    assert_eq!(
        (ended.counts(), ended.left_out),
        ((Some(0), 4, 0, 0), 2),
        "{ended:?}"
    );
    assert!(
        ended
            .out
            .contains("2 identities left out: `github.com` (1), `twitter.com` (1)"),
        "{}",
        ended.out
    );
    let created: Vec<String> = database
        .values("SELECT email || ' ' || (created_at AT TIME ZONE 'UTC')::text FROM users WHERE created_at < '2025-01-01' ORDER BY 1")
        .await;
    let at = |name: &str, time: &str| format!("{name}@example.com 2024-01-02 {time}");
    assert_eq!(
        created,
        [
            at("ada", "03:04:05.678"),
            at("alan", "03:04:05"),
            at("joan", "03:04:05.678")
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_subject_signs_in_as_the_same_user() {
    let app = App::start().await;
    let old = at("second", "old", "relay-1@privaterelay.example");
    let ada = app.sign_in_at("second", &old).await;
    let early = app
        .sign_in_at("second", &at("second", "early-new", "early@example.com"))
        .await;
    app.sign_in_at("second", &at("second", "early-old", "other@example.com"))
        .await;
    let path = file(
        "moved.csv",
        "provider,subject,new_subject\n\
         second,old,new\n\
         second,nobody,nobody-new\n\
         second,early-old,early-new\n\
         second,old,old\n\
         elsewhere,old,new\n",
    );
    let ended = import(&app.database, &path).await;
    assert_eq!(
        (ended.counts(), ended.left_out),
        ((Some(3), 1, 0, 3), 1),
        "{ended:?}"
    );
    assert_eq!(ended.why(3), "no user has its `subject`");
    assert_eq!(ended.why(4), "its identity belongs to another user");
    assert_eq!(ended.why(5), "has a duplicate identity");
    assert_eq!(
        app.database.values::<String>(LINKED).await,
        ["identity_linked imported the command line second"]
    );

    let new = app
        .sign_in_at(
            "second",
            &at("second", "new", "relay-2@privaterelay.example"),
        )
        .await;
    assert_eq!(
        (new.outcome(), new.user_id()),
        ("signed_in".to_owned(), ada.user_id()),
        "{}",
        new.text
    );
    assert_eq!(
        new.json()["user"]["email"],
        "relay-2@privaterelay.example",
        "the address follows"
    );
    assert_eq!(app.refresh(&ada.refresh_token()).await.status, 200);
    assert_eq!(app.refresh(&early.refresh_token()).await.status, 200);
    let again = import(&app.database, &path).await;
    assert_eq!(again.counts(), (Some(3), 0, 1, 3), "{again:?}");
    let mixed = file(
        "mixed.csv",
        "email,provider,subject,new_subject\nada@example.com,second,old,new-2\n",
    );
    let why = "`new_subject` needs a `provider` and a `subject`, and no other value beside them";
    assert_eq!(import(&app.database, &mixed).await.why(2), why);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_database_is_reported_without_its_password() {
    let mut database = Database::gone();
    database.url =
        "postgres://vestibule:hunter2-hunter2@127.0.0.1:1/vestibule?application_name=hunter2"
            .into();
    let path = file("people.csv", PEOPLE);
    let ended = import(&database, &path).await;
    assert_eq!(
        (ended.code, ended.error.lines().count()),
        (Some(1), 1),
        "{ended:?}"
    );
    assert!(
        ended.error.contains("DATABASE_URL") && !ended.error.contains("hunter2"),
        "{ended:?}"
    );
}
