//! The nightly dump of `deploy/vestibule-backup.service`, and the restores in docs/database.md.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use rustix::process::geteuid;
use vestibule::dev::postgres::{Options, Postgres};

use crate::deploy::tools::{alone, folder, postgres, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::process::until;

/// A shell that runs these lines, as PostgreSQL's user if this user is root.
fn shell(lines: &str, folder: &Path) -> Command {
    let drop = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command
        .args(if geteuid().is_root() { &drop[..] } else { &[] })
        .args(["--", "sh", "-euc", lines]);
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", postgres().display()));
    command
}

/// Runs lines of shell as a server's superuser.
fn run(lines: &str, folder: &Path, server: &Postgres, database: &str) -> Output {
    let mut shell = shell(lines, folder);
    shell.env("PGHOST", server.socket_dir());
    shell.envs([
        ("PGUSER", "vestibule"),
        ("PGPORT", "5432"),
        ("PGDATABASE", database),
    ]);
    shell.output().unwrap()
}

/// Runs lines that have to succeed, and returns what they print.
fn succeed(lines: &str, folder: &Path, server: &Postgres, database: &str) -> String {
    let output = run(lines, folder, server, database);
    assert!(
        output.status.success(),
        "{lines}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The indented lines of a section that follow its first line with these words.
fn block(page: &str, section: &str, words: &str) -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let (_, section) = page
        .split_once(&format!("\n{section}\n"))
        .expect("it is there");
    let lines = section.lines().skip_while(|line| !line.contains(words));
    let block = lines.skip_while(|line| !line.starts_with("    "));
    let block: Vec<_> = block.map_while(|line| line.strip_prefix("    ")).collect();
    assert!(!block.is_empty(), "{section}: {words}");
    block.join("\n")
}

fn server(folder: &Path, settings: &[(&str, &str)]) -> Postgres {
    let settings = settings
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    Postgres::start(&Options {
        durable: false,
        settings,
        ..Options::new(folder)
    })
    .unwrap()
}

fn url(server: &Postgres, role: &str, database: &str) -> String {
    server
        .url(database)
        .replace("://vestibule@", &format!("://{role}@"))
}

fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = files.filter(|path| {
        path.extension()
            .is_some_and(|its| its == "dump" || its == "sql")
    });
    let mut files: Vec<_> = files
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nightly_dump_can_be_restored_on_a_new_server() {
    let Some(dump) = program("pg_dump", (14, 0)) else {
        return;
    };
    let _alone = alone().await;
    let servers = folder("backup-servers");
    let source = server(&servers.join("source"), &[]);
    let target = server(&servers.join("target"), &[]);
    let folder = folder("backup");
    let two_roles = block("docs/production.md", "## Database", "another one serves");
    let limits = shipped("pgbouncer.ini", &[]);
    let limits: Vec<_> = limits
        .lines()
        .filter_map(|line| line.strip_prefix(";     "))
        .collect();
    let limits = limits
        .join("\n")
        .replace("vestibule SET", "vestibule_service SET");
    assert!(
        limits.contains("ALTER ROLE vestibule_service SET statement_timeout"),
        "{limits}"
    );
    fs::write(folder.join("roles"), format!("{two_roles}\n{limits}")).unwrap();
    succeed(
        "psql --no-psqlrc --set=ON_ERROR_STOP=1 --file=roles",
        &folder,
        &source,
        "postgres",
    );
    let instance = Vestibule::new(
        &folder,
        &url(&source, "vestibule_owner", "vestibule"),
        "http://127.0.0.1:1",
    );
    instance.prints(&["migrate"]);
    instance.prints(&["keys", "rotate", "--now"]);
    instance.appoint("ada@example.com");

    let exporter = folder.join("exporter");
    fs::create_dir(&exporter).unwrap();
    fs::set_permissions(&exporter, fs::Permissions::from_mode(0o777)).unwrap();
    let unit = shipped(
        "vestibule-backup.service",
        &[
            ("/usr/bin/pg_dump ", &format!("{} ", dump.display())),
            (
                "/usr/bin/pg_dumpall",
                dump.with_file_name("pg_dumpall").to_str().unwrap(),
            ),
            (
                "/var/lib/prometheus/node-exporter",
                exporter.to_str().unwrap(),
            ),
            ("%%", "%"),
        ],
    );
    let lines: Vec<_> = unit
        .lines()
        .filter_map(|line| {
            line.strip_prefix("ExecStart=")
                .or(line.strip_prefix("ExecStartPost=+"))
        })
        .collect();
    assert_eq!(lines.len(), 5);
    let night = |database: &str| {
        lines
            .iter()
            .map(|line| run(line, &folder, &source, database))
            .find(|output| !output.status.success())
    };
    for name in ["2001-01-01T0230Z.dump", "2001-01-01T0230Z.roles.sql"] {
        let aged = File::create(folder.join(name)).unwrap();
        aged.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let before = files(&folder);
    let failed = night("no_such_database").expect("there is nothing to dump");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("does not exist"));
    assert_eq!(files(&folder), before, "a dump that failed touches none");
    let reported = exporter.join("vestibule_backup.prom");
    assert!(!reported.exists(), "nor is it reported");
    if let Some(failed) = night("vestibule") {
        panic!("{}", String::from_utf8_lossy(&failed.stderr));
    }
    let kept = files(&folder);
    let [dump, roles] = &kept[..] else {
        panic!("the old ones are gone: {kept:?}")
    };
    assert!(
        dump.ends_with("Z.dump") && roles.ends_with("Z.roles.sql"),
        "{kept:?}"
    );
    assert!(
        !fs::read_to_string(folder.join(roles))
            .unwrap()
            .contains("PASSWORD"),
        "no password is in it"
    );
    let reported = fs::read_to_string(reported).unwrap();
    let (_, time) = reported
        .trim_end()
        .split_once("vestibule_backup_timestamp_seconds ")
        .unwrap();
    assert!(time.parse::<u64>().unwrap() > 1_700_000_000, "{reported}");
    // The lines for another machine run without a superuser.
    let line = lines[1].replace("unfinished.roles", "as_owner");
    succeed(
        &format!("export PGUSER=vestibule_owner; {line}"),
        &folder,
        &source,
        "vestibule",
    );

    let script = block(
        "docs/database.md",
        "### Restoring a dump",
        "as the superuser",
    )
    .replace("=vestibule ", "=vestibule_owner ")
    .replace("2026-01-31T0230Z.dump", dump)
    .replace("2026-01-31T0230Z.roles.sql", roles);
    succeed(&script, &folder, &target, "postgres");
    let restored = url(&target, "vestibule_service", "vestibule_restored");
    let instance = instance.with("DATABASE_URL", &restored);
    assert!(
        instance
            .prints(&["staff", "list"])
            .contains("ada@example.com")
    );
    let said = instance.check();
    assert!(
        said.contains("signing keys: 1 can be decrypted")
            && said.contains("migrations are applied"),
        "{said}"
    );
    let ask = "psql --tuples-only --no-align --command='SHOW statement_timeout' vestibule_restored vestibule_service";
    assert_eq!(succeed(ask, &folder, &target, "postgres").trim(), "10s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_backup_and_the_archive_lead_to_any_moment() {
    if program("pg_basebackup", (14, 0)).is_none() {
        return;
    }
    let _alone = alone().await;
    let folder = folder("moment");
    let own = |text: &str| text.replace("/mnt/backup", folder.to_str().unwrap());
    let settings = own(&block(
        "docs/database.md",
        "### To any moment",
        "In `postgresql.conf`",
    ));
    let settings: Vec<_> = settings
        .lines()
        .map(|line| line.split_once(" = ").unwrap())
        .collect();
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, value.trim_matches('\'')))
        .collect();
    let replicated = [
        &settings[..],
        &[("wal_level", "replica"), ("max_wal_senders", "4")],
    ]
    .concat();
    let source = server(&folder.join("source"), &replicated);
    succeed(
        "mkdir wal; createdb vestibule",
        &folder,
        &source,
        "postgres",
    );
    let instance = Vestibule::new(&folder, &source.url("vestibule"), "http://127.0.0.1:1");
    instance.prints(&["migrate"]);
    let page = |words| own(&block("docs/database.md", "### To any moment", words));
    succeed(&page("Every week"), &folder, &source, "postgres");

    let ask = |sql: &str| {
        let sql = format!("psql --tuples-only --no-align --command=\"{sql}\"");
        succeed(&sql, &folder, &source, "vestibule")
            .trim()
            .to_owned()
    };
    instance.appoint("before@example.com");
    let moment = ask("SELECT clock_timestamp()");
    instance.appoint("after@example.com");
    let last = ask("SELECT pg_walfile_name(pg_switch_wal())");
    until("it is archived", async || {
        folder.join("wal").join(&last).exists()
    })
    .await;
    drop(source);

    let restore = page("To restore, as the user").replace("2026-01-31 09:41:00+00", &moment);
    let sockets = format!(
        "echo \"unix_socket_directories = '{}'\" >>restored/postgresql.auto.conf",
        folder.display()
    );
    let script = restore.replace("pg_ctl", &format!("{sockets}\npg_ctl"));
    let _restored = Restored(&folder);
    let output = shell(&script, &folder).output().unwrap();
    let log = fs::read_to_string(folder.join("restored.log")).unwrap_or_default();
    assert!(
        output.status.success(),
        "{} {log}",
        String::from_utf8_lossy(&output.stderr)
    );
    let url = format!(
        "postgres://vestibule@localhost/vestibule?host={}&sslmode=disable",
        folder.to_str().unwrap().replace('/', "%2F")
    );
    let instance = instance.with("DATABASE_URL", &url);
    let staff = instance.prints(&["staff", "list"]);
    assert!(
        staff.contains("before@example.com") && !staff.contains("after@example.com"),
        "{staff}"
    );
}

/// The server that the recipe starts. Dropping this stops it.
struct Restored<'a>(&'a Path);

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        let stop = shell("pg_ctl --pgdata=restored --mode=immediate stop", self.0)
            .output()
            .unwrap();
        assert!(stop.status.success() || std::thread::panicking(), "it runs");
    }
}
