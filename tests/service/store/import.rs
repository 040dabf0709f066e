//! `vestibule import`, as an operator runs it: real files into a real database, beside a service.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use vestibule::admin::audit::store::{self as event_log, EventCategory, Filter};

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process;
use crate::support::token::{claims, with};

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A file of its own.
fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("import");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("{}-{name}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    fs::write(&path, content).unwrap();
    path
}

/// The program in the release profile, with two providers.
fn command(url: &str, arguments: &[&str]) -> Command {
    let second = ("ROCKET_PROVIDERS", r#"{second={client_id="client.example",preset="google"}}"#);
    let complete = process::complete_settings(url, "https://issuer.example/tokeninfo");
    let mut command =
        process::command(&[&complete[..], &[second]].concat(), &[&["import"], arguments].concat());
    command.stdin(Stdio::null());
    command
}

/// How an import ended: its exit code, what it counted, and the refused rows by their lines.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    imported: usize,
    already: usize,
    refused: Vec<(u64, String)>,
    error: String,
}

impl Ended {
    fn read(output: &Output, list: &Path) -> Self {
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        let count = |word: &str| {
            let line = out.lines().find(|line| line.contains(word));
            line.map_or(0, |line| line.split_whitespace().next().unwrap().parse().unwrap())
        };
        let mut refused: Vec<(u64, String)> = fs::read(list)
            .map(|list| csv::Reader::from_reader(list.as_slice()).deserialize().map(Result::unwrap).collect())
            .unwrap_or_default();
        refused.sort_unstable();
        assert_eq!(count(" refused"), refused.len(), "{out}{error}");
        if output.status.code() != Some(1) {
            assert_eq!(count(" rows read"), count(" imported") + count(" already") + refused.len(), "{out}");
        }
        let (imported, already) = (count(" imported"), count(" already"));
        Self { code: output.status.code(), imported, already, refused, error }
    }

    fn counts(&self) -> (Option<i32>, usize, usize, usize) {
        (self.code, self.imported, self.already, self.refused.len())
    }

    /// The one reason why that line was refused.
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
    let mut command = command(&database.url, &[path.to_str().unwrap()]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    Ended::read(&output, &PathBuf::from(format!("{}.refused.csv", path.display())))
}

/// Everybody with everything but what is new each time, in lines.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_file_brings_everybody_once_and_the_same_in_either_format() {
    let (database, other) = (Database::create().await, Database::create().await);
    let path = file("people.csv", PEOPLE);
    let ended = import(&database, &path).await;
    assert_eq!(ended.counts(), (Some(0), 6, 0, 0), "{ended:?}");
    assert_eq!(ended.error, "ignored unknown columns: `shoe size`\n");
    let people = everybody(&database).await;
    assert_eq!(
        people,
        [
            "8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01|ada@example.com|t|Ada Lovelace|https://pictures.example/ada|2021-05-31 12:00:00+00|f|t|idp:ada-1:Ada@Example.com:t:Ada Lovelace,second:ada-2:ada@example.com:t:Ada Lovelace",
            "new|alan@example.com|t|t|t|second:alan:alan@example.com:t",
            "new|f|Nobody|f|t|second:nobody:f:Nobody",
            "new|grace@example.com|f|Hopper, \"Amazing\" Grace|2021-12-31 23:00:00.5+00|f|t|idp:grace:grace@example.com:f:Hopper, \"Amazing\" Grace",
        ]
    );
    let again = import(&database, &path).await;
    assert_eq!(again.counts(), (Some(0), 0, 6, 0), "{again:?}");
    assert_eq!(everybody(&database).await, people);
    let events: Vec<(String, String, String)> =
        database.all("SELECT kind, actor, detail::text FROM events").await;
    let told = r#"{"users": 4, "identities": 5}"#;
    assert_eq!(events, [("users_imported".into(), "the command line".into(), told.into())]);
    let filter = Filter { what: EventCategory::Staff, ..Filter::default() };
    let audit = event_log::page(&database.pool, &filter, None, 10).await.unwrap().0;
    assert_eq!(audit[0].about.as_deref(), Some("4 users, 5 identities"));
    let ids = "SELECT count(*) FROM users WHERE email = 'grace@example.com' AND id < '017e1400-0000-7000-8000-000000000000'";
    assert_eq!(database.count(ids).await, 1, "a new id tells the time of the sign-up");

    let path = file("people.jsonl", THE_SAME_PEOPLE);
    let ended = import(&other, &path).await;
    assert_eq!(ended.counts(), (Some(0), 4, 0, 0), "{ended:?}");
    assert_eq!(ended.error, "ignored unknown columns: `shoe size`\n");
    assert_eq!(everybody(&other).await, people);
    assert_eq!(import(&database, &path).await.counts(), (Some(0), 0, 4, 0));
    assert_eq!(everybody(&database).await, people);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rows_are_listed_by_their_lines_and_keep_no_other_away() {
    let database = Database::create().await;
    let mut rows = b"email,provider,subject,id\n".to_vec();
    let mut expected = Vec::new();
    let mut sound = 0;
    let mut line = 2;
    let long = "x".repeat(3 << 20);
    for (row, why) in [
        ("ada@example.com,,,", ""),
        ("too@example.com,few", "has 2 fields, but the header has 4"),
        ("too@example.com,,,,many", "has 5 fields, but the header has 4"),
        ("\"two\nlines\"@example.com,,,", "`email` is not exactly one e-mail address"),
        (",,,", "has neither an `email` nor a `provider` with a `subject`"),
        ("b@example.com,elsewhere,1,", "`provider` is not a configured provider (idp, second)"),
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
        ("\"quoted, and \"\"more\"\"@example.com\",,,", "`email` is not exactly one e-mail address"),
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
    rows.extend(b"caf\xe9@example.com,,,\nz@example.com,,,\n\"never@example.com,,,\nclosed@example.com,,,");
    expected.push((line, "is not UTF-8".into()));
    expected.push((
        line + 2,
        "has a quotation mark that is never closed, so the rest of the file was read as part of this row"
            .into(),
    ));
    let ended = import(&database, &file("rows.csv", rows)).await;
    assert_eq!(ended.refused, expected);
    assert_eq!((ended.code, ended.imported + ended.already), (Some(3), sound + 1), "{ended:?}");
    assert_eq!(database.rows().await[..2], [4, 2]);

    // Of people who are there.
    let rows = "email,provider,subject,id\nd@example.com,idp,1,\n\
        f@example.com,,,00000000-0000-4000-8000-000000000001\n,idp,1,00000000-0000-4000-8000-000000000003\n";
    let ended = import(&database, &file("contradicting.csv", rows)).await;
    assert_eq!(ended.counts(), (Some(3), 0, 0, 3), "{ended:?}");
    assert_eq!(ended.why(2), "its identity belongs to another user");
    assert_eq!(ended.why(3), "its `id` belongs to a user with another e-mail address");
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
async fn the_owner_of_an_imported_address_gets_it_and_joins_nobody_who_never_proved_it() {
    let app = App::start().await;
    let path = file(
        "owners.csv",
        "email,email_verified,name,provider,subject\n\
         ada@example.com,true,Ada,second,ada-elsewhere\n\
         grace@example.com,false,Not Grace,second,mallory\n",
    );
    assert_eq!(import(&app.database, &path).await.counts(), (Some(0), 2, 0, 0));

    // Known by the identity, as if they had always been here.
    let mallory = with(
        claims("mallory", "grace@example.com"),
        &json!({ "iss": "https://second.example", "email_verified": false }),
    );
    let answer = app.sign_in_at("second", &mallory).await;
    assert_eq!((answer.status.as_u16(), answer.outcome().as_str()), (200, "signed_in"), "{}", answer.text);
    let (intruder, session) = (answer.user_id(), answer.refresh_token());

    let answer = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!((answer.status.as_u16(), answer.outcome().as_str()), (200, "linked"), "{}", answer.text);
    let answer = app.sign_in(&claims("grace", "grace@example.com")).await;
    assert_eq!(answer.outcome(), "created", "{}", answer.text);
    assert_ne!(answer.user_id(), intruder);
    assert_eq!(answer.json()["user"]["email_verified"], true);
    assert_eq!(app.refresh(&session).await.status, 200, "each has an account of their own");

    // The same file does not let them in again, nor take anything from anybody.
    let again = import(&app.database, &path).await;
    assert_eq!((again.code, again.already), (Some(3), 1), "{again:?}");
    assert!(again.why(3).contains("belongs to another user"), "{again:?}");
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
    assert_eq!(ended.why(7), "its `id` belongs to a user with another e-mail address");
    for line in [11, 13, 14] {
        assert!(ended.why(line).contains("an unverified address is not linked"), "{ended:?}");
    }
    let after = everybody(&app.database).await;
    let kept = after.iter().filter(|line| before.contains(line)).count();
    assert_eq!((kept, after.len()), (1, 3), "{after:#?}");
    assert_eq!(import(&app.database, &path).await.refused, ended.refused, "and again");
    assert_eq!(everybody(&app.database).await, after);
    assert_eq!(app.refresh(&victim.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signed_up_before_the_import_and_proved_the_address_gets_what_the_row_has() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let unverified = with(claims("eve", "grace@example.com"), &json!({ "email_verified": false }));
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
    // Eve merely claimed an address that the old system has verified.
    let eves = app.sign_in(&with(claims("eve", "grace@example.com"), &json!({ "email": null }))).await.json();
    assert_eq!(eves["user"]["email"], json!(null));
    let grace =
        with(claims("grace-before", "grace@example.com"), &json!({ "iss": "https://second.example" }));
    assert_eq!(app.sign_in_at("second", &grace).await.outcome(), "signed_in");
    assert_eq!(app.database.count("SELECT count(*) FROM events WHERE kind = 'email_lost'").await, 1);
    let before = with(claims("ada-before", "ada@example.com"), &json!({ "iss": "https://second.example" }));
    let signed_in = app.sign_in_at("second", &before).await;
    assert_eq!((signed_in.outcome(), signed_in.user_id()), ("signed_in".to_owned(), ada.user_id()));
    assert_eq!(app.refresh(&ada.refresh_token()).await.status, 200, "nothing of hers is taken");
    assert_eq!(app.refresh(&barred.refresh_token()).await.status, 200);
    let again = import(&app.database, &path).await;
    assert_eq!(again.counts(), (Some(3), 0, 3, 1), "{again:?}");
}

/// So many people, each with a row for either provider, one behind all others.
fn crowd(people: i64) -> String {
    let row = |number, provider| format!("p{number}@example.com,true,P {number},{provider},s{number}\n");
    let rows = ["idp", "second"]
        .into_iter()
        .flat_map(|provider| (0..people).map(move |number| row(number, provider)));
    let header = "email,email_verified,name,provider,subject\n".to_owned();
    std::iter::once(header).chain(rows).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_and_run_again_it_is_exactly_the_file() {
    const PEOPLE: i64 = 40_000;
    const IDENTITIES: &str = "SELECT count(*) FROM identities";
    let database = Database::create().await;
    let path = file("crowd.csv", crowd(PEOPLE));
    let mut there = 0;
    for _ in 0..3 {
        let mut child = command(&database.url, &[path.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // As soon as it has written something, with the rest under way.
        while database.count(IDENTITIES).await == there && child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let halves =
            "SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id)";
        assert_eq!(database.count(halves).await, 0, "nobody is there by half");
        let now = database.count(IDENTITIES).await;
        assert!(there < now && now < 2 * PEOPLE, "it was in the middle: {there}, {now}");
        there = now;
    }
    // The last one's connections may still be at work for a moment; what they do is what the next one would.
    let ended = import(&database, &path).await;
    assert_eq!((ended.code, ended.refused.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(ended.imported + ended.already, usize::try_from(2 * PEOPLE).unwrap());
    let exactly = "SELECT count(*) FROM generate_series(0, 39999) n
        JOIN users u ON u.email = 'p' || n || '@example.com' AND u.email_verified AND u.name = 'P ' || n
        JOIN identities i ON i.user_id = u.id AND i.subject = 's' || n AND i.provider IN ('idp', 'second')";
    assert_eq!(database.count(exactly).await, 2 * PEOPLE);
    let [users, identities, ..] = database.rows().await;
    assert_eq!((users * 2, identities), (usize::try_from(2 * PEOPLE).unwrap(), users * 2));
    let counted = "SELECT sum((detail->>'users')::bigint)::bigint FROM events WHERE kind = 'users_imported'";
    assert_eq!(database.count(counted).await, PEOPLE, "the audit has them all, across the kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_while_they_are_imported_and_are_one_person_each() {
    const PEOPLE: i64 = 15_000;
    let app = App::start().await;
    let path = file("crowd.csv", crowd(PEOPLE));
    let imported = import(&app.database, &path);
    let signed_in = async {
        for number in (0..PEOPLE).step_by(250) {
            let answer = app.sign_in(&claims(&format!("s{number}"), &format!("p{number}@example.com"))).await;
            assert!(answer.status.is_success(), "{}", answer.text);
        }
    };
    let (ended, ()) = tokio::join!(imported, signed_in);
    // Who came before their rows keeps what they came with; the other identity is not added to them.
    assert!(ended.refused.iter().all(|(_, why)| why.contains("nothing is added")), "{ended:?}");
    assert!(ended.refused.len() <= 60, "{ended:?}");
    let [users, identities, sessions] = app.database.rows().await;
    assert_eq!(users, usize::try_from(PEOPLE).unwrap());
    assert_eq!((identities, sessions), (2 * users - ended.refused.len(), 60));
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
        // Who is told of a mistake before it reads has closed it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output = run(&["-", "--format", "csv"], "email\nada@example.com\nnobody\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr), "line 3: `email` is not exactly one e-mail address\n");
    let list = file("list.csv", "what an earlier import left");
    let arguments = ["-", "--format", "jsonl", "--refused", list.to_str().unwrap()];
    assert_eq!(run(&arguments, "{}\n").status.code(), Some(3));
    assert!(fs::read_to_string(&list).unwrap().contains("\n1,has neither"));
    assert_eq!(run(&arguments, "{\"email\":\"ada@example.com\"}").status.code(), Some(0));
    assert!(!list.exists(), "nothing is refused any more");

    for wrong in [&["-"][..], &["people.txt"], &["-", "--format", "xml"]] {
        let output = run(wrong, "");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{wrong:?}");
    }
    for (wrong, words) in [
        ("", "it is missing"),
        ("e-mail\na@example.com\n", "neither `email` nor"),
        ("email;name\na@example.com;A\n", "separated by commas"),
        ("email,name,email\n", "names `email` twice"),
        ("email,\"name\n", "never closed"),
    ] {
        let output = run(&["-", "--format", "csv"], wrong);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_named_and_its_password_is_not() {
    let mut database = Database::gone();
    database.url =
        "postgres://vestibule:hunter2-hunter2@127.0.0.1:1/vestibule?application_name=hunter2".into();
    let path = file("people.csv", PEOPLE);
    let ended = import(&database, &path).await;
    assert_eq!((ended.code, ended.error.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.error.contains("DATABASE_URL") && !ended.error.contains("hunter2"), "{ended:?}");
}
