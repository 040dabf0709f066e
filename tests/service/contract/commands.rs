//! Commands other than `serve`: each needs only the settings that it uses.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use serde_json::json;
use uuid::Uuid;
use vestibule::dev::identity_provider::event::KINDS;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::{SECRET_KEY, command, complete_settings, eventually, free_port, run};
use crate::support::token::claims;

const SECRET: (&str, &str) = ("ROCKET_SECRET_KEY", SECRET_KEY);

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fresh(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", Uuid::now_v7().simple()))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_serve_nobody_need_no_provider() {
    let database = Database::create().await;
    let users = fresh("users").with_extension("csv");
    std::fs::write(
        &users,
        "email,email_verified,provider,subject\nada@example.com,true,line,1\n",
    )
    .unwrap();
    let import = ["import", users.to_str().unwrap()];
    for profile in ["release", "debug"] {
        let settings = [
            ("ROCKET_PROFILE", profile),
            ("DATABASE_URL", database.url.as_str()),
        ];
        let staff = ["staff", "add", "ada@example.com", "--role", "admin"];
        for arguments in [&["migrate"][..], &staff, &["staff", "list"], &["prune"]] {
            let output = run(&settings, arguments).await;
            assert!(
                output.status.success(),
                "{profile}, {arguments:?}: {}",
                said(&output)
            );
        }
        let output = run(&settings, &["keys", "list"]).await;
        assert!(
            !output.status.success() && said(&output).contains("`ROCKET_SECRET_KEY`"),
            "{}",
            said(&output)
        );
        let [profile, url] = settings;
        assert!(
            run(&[profile, url, SECRET], &["keys", "rotate", "--now"])
                .await
                .status
                .success()
        );
    }
    // A provider needs only its name for an import.
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", database.url.as_str()),
    ];
    let output = run(&settings, &import).await;
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("`line` (1)"),
        "line is no provider here"
    );
    let [profile, url] = settings;
    let output = run(&[profile, url, ("ROCKET_PROVIDERS", "{line={}}")], &import).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        database
            .count("SELECT count(*) FROM identities WHERE provider = 'line'")
            .await,
        1
    );
    for file in [users.with_extension("csv.refused.csv"), users] {
        let _ = std::fs::remove_file(file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_grants_access_with_export_right_and_end_date() {
    let database = Database::create().await;
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", database.url.as_str()),
    ];
    let staff = async |arguments: &[&str]| run(&settings, &[&["staff"], arguments].concat()).await;
    let limited = ["add", "grace@example.com", "--export", "--until"];
    for (day, remedy) in [
        ("2020-01-01", "is not a day to come"),
        ("soon", "write one as 2026-12-31"),
    ] {
        let output = staff(&[&limited[..], &[day]].concat()).await;
        assert!(
            !output.status.success() && said(&output).contains(remedy),
            "{day}: {}",
            said(&output)
        );
    }
    assert!(
        staff(&["add", "ada@example.com", "--role", "admin"])
            .await
            .status
            .success()
    );
    let output = staff(&[&limited[..], &["2099-12-31"]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));
    let listed = String::from_utf8(staff(&["list"]).await.stdout).unwrap();
    let expected = "ada@example.com\tadmin\t\texport\t\n\
                    grace@example.com\tsupport\t\texport\t2100-01-01T00:00:00Z\n";
    assert_eq!(listed, expected);
    let output = staff(&[
        "add",
        "ada@example.com",
        "--role",
        "admin",
        "--until",
        "2099-12-31",
    ])
    .await;
    assert!(
        said(&output).contains("the only admin whose access does not end"),
        "{}",
        said(&output)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_printed_once_stored_hashed_and_revocable() {
    let database = Database::create().await;
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", database.url.as_str()),
    ];
    let key = async |arguments: &[&str]| run(&settings, &[&["api-key"], arguments].concat()).await;
    assert!(run(&settings, &["migrate"]).await.status.success());
    let added = key(&[
        "add",
        "billing",
        "--role",
        "reader",
        "--expires",
        "2099-12-31",
    ])
    .await;
    assert!(added.status.success(), "{}", said(&added));
    let secret = String::from_utf8(added.stdout).unwrap();
    assert!(
        secret.starts_with("vst_") && secret.trim_end().len() == 47 && secret.lines().count() == 1
    );
    let kept = "SELECT count(*) FROM api_keys k, events e WHERE concat(k, e) LIKE '%' || $1 || '%'";
    let kept: i64 = value!(
        &database.pool,
        kept,
        secret.trim_end().trim_start_matches("vst_")
    );
    assert_eq!(kept, 0);

    let again = key(&["add", "billing", "--role", "admin"]).await;
    assert!(!again.status.success() && said(&again).contains("there is an API key with this name"));
    assert_eq!(again.stdout, b"");
    for (name, day, remedy) in [
        ("Billing", "2099-12-31", "lower-case letters"),
        ("other", "2020-01-01", "is not a day to come"),
    ] {
        let output = key(&["add", name, "--role", "reader", "--expires", day]).await;
        assert!(
            !output.status.success() && said(&output).contains(remedy),
            "{}",
            said(&output)
        );
    }
    let listed = String::from_utf8(key(&["list"]).await.stdout).unwrap();
    let fields: Vec<_> = listed.trim_end_matches('\n').split('\t').collect();
    assert_eq!(
        (fields[0], fields[1], fields[3]),
        ("billing", "reader", "the command line")
    );
    assert_eq!(
        (fields[4], fields[5]),
        ("2100-01-01T00:00:00Z", ""),
        "{listed}"
    );

    assert!(key(&["revoke", "billing"]).await.status.success());
    assert_eq!(key(&["list"]).await.stdout, b"");
    assert!(
        said(&key(&["revoke", "billing"]).await).contains("there is no API key with this name")
    );
    let events = "SELECT count(*) FROM events WHERE kind IN ('api_key_added', 'api_key_revoked')
                  AND actor = 'the command line' AND detail->>'key' = 'billing' AND detail->>'role' = 'reader'";
    assert_eq!(database.count(events).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_starts_the_program_for_development_may_see_the_staff_pages() {
    let directory = fresh("staff");
    let settings = [
        ("ROCKET_DEV_DIR", directory.to_str().unwrap()),
        ("ROCKET_PORT", &free_port().to_string()),
    ];
    let mut program = command(&settings, &[]);
    let mut service = program
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    // A ready service prints the database and, last, the pages.
    let welcome = tokio::task::spawn_blocking(move || {
        let mut welcome = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            welcome.push(line);
            if welcome.last().is_some_and(|line| line.contains("/admin")) {
                break;
            }
        }
        (welcome.join("\n"), lines)
    });
    // The reader stays open, so that the service can go on writing.
    let (welcome, _lines) = welcome.await.unwrap();
    let database = welcome
        .split_once("psql '")
        .and_then(|(_, rest)| rest.split('\'').next())
        .unwrap();
    assert!(database.starts_with("postgres://"), "{welcome}");
    let output = run(&settings, &["staff", "list"]).await;
    let checked = run(&settings, &["check"]).await;
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success());
    assert!(welcome.contains("as ada@example.com: http"), "{welcome}");
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(
        listed.starts_with("ada@example.com\tadmin"),
        "{listed} {}",
        said(&output)
    );
    assert!(
        checked.status.success(),
        "{} {}",
        String::from_utf8_lossy(&checked.stdout),
        said(&checked)
    );
    assert!(
        directory.join("secret_key").is_file(),
        "its things are where it is told to keep them"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A web page can point its own host name at this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_development_server_answers_to_the_names_of_this_machine_alone() {
    let database = Database::create().await;
    let directory = fresh("hosts");
    let port = free_port();
    let settings = [
        ("DATABASE_URL", database.url.as_str()),
        ("ROCKET_DEV_DIR", directory.to_str().unwrap()),
        ("ROCKET_PORT", &port.to_string()),
        ("ROCKET_PUBLIC_URL", "https://vestibule.test"),
    ];
    let mut program = command(&settings, &[]);
    let mut service = program
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = reqwest::Client::new();
    let url = format!("http://127.0.0.1:{port}");
    eventually("it is ready", async || {
        let answer = client.get(format!("{url}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let ours = [
        "127.0.0.1",
        "127.1.2.3",
        "localhost",
        "LocalHost",
        "localhost.",
        "app.localhost",
        "[::1]",
    ];
    let others = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evillocalhost",
        "vestibule.test.evil.example",
        "192.168.0.7",
        "0.0.0.0",
        "[::2]",
    ];
    let public = ["vestibule.test", "Vestibule.Test"];
    let ours = ours.into_iter().chain(public).map(|host| (host, 200));
    let mut wrong = Vec::new();
    for (host, status) in ours.chain(others.map(|host| (host, 400))) {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            for path in ["/dev/idp/mint?email=ada@example.com", "/livez"] {
                let answer = client
                    .get(format!("{url}{path}"))
                    .header("Host", &host)
                    .send()
                    .await
                    .unwrap();
                if answer.status() != status {
                    wrong.push(format!("{host}{path}: {}", answer.status()));
                }
            }
        }
    }
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success());
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_event_sends_each_provider_event_and_shows_its_effect() {
    let database = Database::create().await;
    let directory = fresh("reports");
    let port = free_port();
    let settings = [
        ("DATABASE_URL", database.url.as_str()),
        ("ROCKET_DEV_DIR", directory.to_str().unwrap()),
        ("ROCKET_PORT", &port.to_string()),
    ];
    let of_ada = ["--email", "ada@example.com"];
    let event =
        async |arguments: &[&str]| run(&settings, &[&["dev", "event"], arguments].concat()).await;
    let output = event(&[&["account-disabled"], &of_ada[..]].concat()).await;
    assert!(
        !output.status.success() && said(&output).contains("cargo run"),
        "{}",
        said(&output)
    );

    let mut program = command(&settings, &[]);
    let mut service = program
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = reqwest::Client::new();
    let url = format!("http://127.0.0.1:{port}");
    eventually("it is ready", async || {
        let answer = client.get(format!("{url}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let sign_in = async || {
        let token = run(&settings, &[&["dev", "token"], &of_ada[..]].concat())
            .await
            .stdout;
        let body = json!({ "id_token": String::from_utf8(token).unwrap().trim() });
        let request = client
            .post(format!("{url}/api/v1/auth/oauth/idp"))
            .body(body.to_string());
        let request = request.header("Content-Type", "application/json");
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(sign_in().await, 201);
    for (kind, _) in KINDS {
        let output = event(&[&[kind], &of_ada[..]].concat()).await;
        assert!(output.status.success(), "{kind}: {}", said(&output));
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(
            told.starts_with(&format!("202: the event {kind} ")),
            "{told}"
        );
        assert!(told.contains("/admin/users?q=ada%40example.com"), "{told}");
        let purged = KINDS
            .iter()
            .position(|(other, _)| *other == "account-purged");
        let later = KINDS.iter().position(|(other, _)| *other == kind) >= purged;
        let expected = if kind == "account-disabled" || later {
            403
        } else {
            200
        };
        assert_eq!(sign_in().await, expected, "{kind}");
    }
    let stored = "SELECT count(DISTINCT reason) FROM events WHERE kind = 'provider_event'";
    assert_eq!(database.count(stored).await, 8);
    for (arguments, words) in [
        (&["sessions-revoked"][..], "`email` or `sub` is required"),
        (
            &["sessions-revoked", "--email", "ada"],
            "`email` is not an e-mail address",
        ),
        (
            &["account-enabled", "--sub", "1", "--provider", "other"],
            "404",
        ),
    ] {
        let output = event(arguments).await;
        assert!(
            !output.status.success() && said(&output).contains(words),
            "{}",
            said(&output)
        );
    }
    assert_eq!(
        event(&["account-moved", "--sub", "1"]).await.status.code(),
        Some(2)
    );
    kill_process(Pid::from_child(&service), Signal::KILL).unwrap();
    service.wait().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_manage_users_by_command_and_each_action_is_audited() {
    let app = App::start().await;
    let ada = app
        .sign_in(&claims("subject-of-ada", "ada@example.com"))
        .await;
    let id = ada.user_id();
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", app.database.url.as_str()),
    ];
    let told = async |arguments: &[&str]| {
        let output = run(&settings, arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let output = run(&settings, &["user", "find", "grace@ex"]).await;
    assert!(
        output.status.code() == Some(1) && said(&output).contains("no such user"),
        "{}",
        said(&output)
    );
    let found = told(&["user", "find", "ada@ex"]).await;
    assert!(
        found.starts_with(&format!("{id}\tada@example.com\t\t")) && found.lines().count() == 1,
        "{found}"
    );
    // Direction marks and line separators in stored text must not change the output's lines.
    app.database
        .run("UPDATE users SET name = E'a\\u202eb\\u2028c'")
        .await;
    app.database
        .run("UPDATE events SET email = E'a\\u202eb\\u2028c@example.com'")
        .await;
    let audit = told(&["audit", "--user", &id]).await;
    assert!(audit.contains("a b c@example.com"), "{audit}");
    let shown = told(&["user", "show", &id]).await;
    assert!(
        shown.contains("name\ta b c\n") && shown.contains("a b c@example.com"),
        "{shown}"
    );
    app.database
        .run("UPDATE events SET email = 'ada@example.com'")
        .await;
    for words in [
        "email\tada@example.com (verified)",
        "\tidp\tsubject-of-ada\t",
        "\nsession\t",
        "\tuser_created\t",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for arguments in [
        &["user", "disable", &id][..],
        &["user", "disable", &id, "--reason", " "],
    ] {
        assert_eq!(
            run(&settings, arguments).await.status.code(),
            Some(2),
            "a change has a reason"
        );
    }
    assert_eq!(app.refresh(&ada.refresh_token()).await.status, 200);
    let reason = ["--reason", "ticket 4711"];
    for (change, kind) in [
        ("sign-out", "sessions_ended"),
        ("disable", "user_disabled"),
        ("enable", "user_enabled"),
        ("delete", "user_deleted"),
    ] {
        told(&[&["user", change, &id], &reason[..]].concat()).await;
        assert_eq!(
            by_operator(&app, kind, Some("ticket 4711")).await,
            1,
            "{kind}"
        );
        assert_eq!(app.get(&ada.access_token(), "/api/v1/me").await.status, 401);
        let again = app
            .sign_in(&claims("subject-of-ada", "ada@example.com"))
            .await;
        let expected = match change {
            "disable" => "user_disabled",
            "delete" => "created",
            _ => "signed_in",
        };
        assert_eq!(again.outcome() + &again.error(), expected, "{change}");
    }
    let gone = run(&settings, &[&["user", "delete", &id], &reason[..]].concat()).await;
    assert!(
        !gone.status.success() && said(&gone).contains("there is no user"),
        "{}",
        said(&gone)
    );
    let audit = told(&["audit", "--user", &id]).await;
    for words in [
        "\tuser_deleted\t",
        "\tuser_disabled\t",
        "\tthe command line\t",
        "\tticket 4711\t",
    ] {
        assert!(audit.contains(words), "{words}: {audit}");
    }
    // A search that finds no user is also audited.
    for (kind, times) in [("users_viewed", 2), ("user_viewed", 1), ("audit_viewed", 2)] {
        assert_eq!(by_operator(&app, kind, None).await, times, "{kind}");
    }
}

/// Counts the command line's events of a kind with this reason.
async fn by_operator(app: &App, kind: &str, reason: Option<&str>) -> i64 {
    let count = "SELECT count(*) FROM events WHERE kind = $1 AND actor = 'the command line'
                 AND detail->>'reason' IS NOT DISTINCT FROM $2";
    let count = sqlx::query_scalar(count).bind(kind).bind(reason);
    count.fetch_one(&app.database.pool).await.unwrap()
}

/// Returns the commands that `help` lists.
async fn commands_of(path: &[&str]) -> Vec<String> {
    let help = run(&[], &[&["help"], path].concat()).await;
    let help = String::from_utf8(help.stdout).unwrap();
    let Some((_, listed)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|name| !["", "help"].contains(name))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_that_changes_something_leaves_an_event() {
    let app = App::start().await;
    let database = &app.database;
    let users = fresh("users").with_extension("csv");
    std::fs::write(&users, "email\nlinus@example.com\n").unwrap();
    run!(
        &database.pool,
        "INSERT INTO webhooks (name, events) VALUES ('shop', '{user.merged}')"
    );
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .user_id();
    let complete = complete_settings(&database.url, "http://127.0.0.1:1/");
    let on_ada = ["--reason", "ticket 4711", &ada];
    let add = ["--role", "support"];
    // Each command, its arguments, and the events that it records. Reads record a view or nothing.
    let commands: [(&[&str], &[&str], &[&str]); 27] = [
        (&["serve"], &[], &[]),
        (&["migrate"], &[], &[]),
        (&["check"], &[], &[]),
        (&["health"], &[], &[]),
        (&["completions"], &["bash"], &[]),
        (&["dev"], &[], &[]),
        (&["import"], &[users.to_str().unwrap()], &["users_imported"]),
        (&["prune"], &[], &["pruned"]),
        (&["keys", "list"], &[], &[]),
        (&["keys", "rotate"], &[], &["signing_key_announced"]),
        (&["keys", "rotate"], &["--now"], &["signing_keys_replaced"]),
        (
            &["staff", "add"],
            &[&["grace@example.com"], &add[..]].concat(),
            &["staff_added"],
        ),
        (
            &["staff", "add"],
            &["grace@example.com", "--export"],
            &["staff_role_changed"],
        ),
        (
            &["staff", "reset"],
            &["grace@example.com"],
            &["staff_identity_reset"],
        ),
        (&["staff", "list"], &[], &[]),
        (
            &["staff", "remove"],
            &["grace@example.com"],
            &["staff_removed"],
        ),
        (
            &["api-key", "add"],
            &[&["shop"], &add[..]].concat(),
            &["api_key_added"],
        ),
        (&["api-key", "list"], &[], &[]),
        (&["api-key", "revoke"], &["shop"], &["api_key_revoked"]),
        (&["webhooks", "list"], &[], &[]),
        (&["webhooks", "test"], &["shop"], &[]),
        (
            &["webhooks", "replay"],
            &["shop", "--all"],
            &["webhook_replayed"],
        ),
        (&["user", "sign-out"], &on_ada, &["sessions_ended"]),
        (&["user", "disable"], &on_ada, &["user_disabled"]),
        (&["user", "enable"], &on_ada, &["user_enabled"]),
        (&["user", "show"], &[&ada], &["user_viewed"]),
        (&["user", "delete"], &on_ada, &["user_deleted"]),
    ];
    let finds: [(&[&str], &[&str], &[&str]); 2] = [
        (&["user", "find"], &["ada@example.com"], &["users_viewed"]),
        (&["audit"], &["--user", &ada], &["audit_viewed"]),
    ];
    let all = || commands.iter().chain(&finds);

    let mut known = Vec::new();
    for name in commands_of(&[]).await {
        let below = if name == "dev" {
            Vec::new()
        } else {
            commands_of(&[&name]).await
        };
        if below.is_empty() {
            known.push(vec![name]);
        } else {
            known.extend(below.into_iter().map(|command| vec![name.clone(), command]));
        }
    }
    for command in &known {
        assert!(
            all().any(|(listed, ..)| listed == command),
            "{command:?} is not in the list of this test"
        );
    }
    for (command, arguments, kinds) in all() {
        // These run until they are stopped, or use a database other than the operator's.
        if [&["serve"][..], &["dev"]].contains(command) {
            continue;
        }
        let before: Uuid = value!(&database.pool, "SELECT event_id()");
        run(&complete, &[*command, *arguments].concat()).await;
        let events: Vec<String> = values!(
            &database.pool,
            "SELECT kind FROM events WHERE id > $1 AND actor = 'the command line' ORDER BY id",
            before
        );
        assert_eq!(events, *kinds, "{command:?} {arguments:?}");
    }
    let _ = std::fs::remove_file(users);
}
