//! The embedded PostgreSQL, as root and not, killed in every way.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, getpgid, kill_process, test_kill_process};
use vestibule::dev::postgres::{Error, Options, Postgres};

use crate::support::folder::{Folder, folder};

/// A directory of its own for one test.
struct Scratch(Folder);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = folder(&format!(
            "postgres-{}",
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::set_permissions(&*folder, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn root(&self) -> PathBuf {
        self.0.join("it's a $root")
    }
}

fn options(root: &Path) -> Options {
    Options {
        durable: false,
        ..Options::new(root)
    }
}

fn start(root: &Path) -> Postgres {
    Postgres::start(&options(root)).unwrap()
}

/// Returns the output of a statement, or `None` if the server did not acknowledge it.
fn ask(url: &str, sql: &str) -> Option<String> {
    let output = Command::new("psql")
        .args(["-X", "-w", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"])
        .args(["-d", url, "-c", sql])
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Polls until the condition gives something.
fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn pid(raw: u32) -> Pid {
    Pid::from_raw(raw.try_into().unwrap()).unwrap()
}

fn kill(raw: u32) {
    kill_process(pid(raw), Signal::KILL).unwrap();
}

fn park(root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "postgres::park_here", "--ignored", "--nocapture"])
        .env("PARK_ROOT", root)
        .stdout(Stdio::piped());
    command
}

/// The program that [`park`] runs: starts a server, tells its URL, and stays.
#[test]
#[ignore = "it is run by other tests, as a program of its own"]
fn park_here() {
    let options = Options::new(std::env::var_os("PARK_ROOT").expect("run by another test"));
    let started = Postgres::start(&options).and_then(|postgres| {
        postgres.ensure_database("app")?;
        Ok(postgres)
    });
    match &started {
        Ok(postgres) => println!("\n{}", postgres.url("app")),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
    loop {
        thread::park();
    }
}

/// A program that owns a server, killed when it is dropped.
struct Program {
    child: Child,
    /// URL of its server, which is ready.
    url: String,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map(Result::unwrap)
            .find(|line| line.starts_with("postgres"));
        Self {
            url: url.expect("a server runs").trim().to_owned(),
            child,
        }
    }

    fn in_root(root: &Path) -> Self {
        Self::start(park(root))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(program: &mut Child) {
    program.kill().unwrap();
    program.wait().unwrap();
}

/// The server that runs in this root, by its own account.
fn server_of(root: &Path) -> Option<u32> {
    fs::read_to_string(data_dir(root)?.join("postmaster.pid"))
        .ok()?
        .lines()
        .next()?
        .parse()
        .ok()
}

fn data_dir(root: &Path) -> Option<PathBuf> {
    fs::read_dir(root)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join("PG_VERSION").exists())
}

#[test]
fn a_server_in_a_fresh_root_runs_until_it_is_stopped() {
    let scratch = Scratch::new();
    let postgres = Postgres::start(&Options::new(scratch.root())).unwrap();

    for _ in 0..2 {
        postgres.ensure_database("an \"odd' name/?").unwrap();
    }
    let url = postgres.url("an \"odd' name/?");
    assert_eq!(ask(&url, "SELECT 6 * 7").unwrap(), "42");
    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("listen_addresses", ""),
        ("TimeZone", "UTC"),
    ] {
        assert_eq!(ask(&url, &format!("SHOW {setting}")).unwrap(), value);
    }

    let socket_dir = postgres.socket_dir().to_owned();
    let found = fs::symlink_metadata(&socket_dir).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o700);
    assert_eq!(
        found.uid(),
        fs::metadata(postgres.data_dir()).unwrap().uid()
    );

    let server = pid(postgres.pid());
    assert_eq!(getpgid(Some(server)).unwrap(), server);
    postgres.stop();
    assert!(!socket_dir.exists());
    eventually("the server has gone", || test_kill_process(server).err());

    let again = start(&scratch.root());
    assert_eq!(
        ask(&again.url("an \"odd' name/?"), "SELECT 1").unwrap(),
        "1"
    );
}

#[test]
fn a_server_killed_during_a_query_can_be_restarted() {
    let scratch = Scratch::new();
    let postgres = start(&scratch.root());
    let url = postgres.url("postgres");
    let endless = "DO $$ BEGIN LOOP END LOOP; END $$";
    let mut query = Command::new("psql")
        .args(["-X", "-d", &url, "-c", endless])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the query runs", || {
        ask(
            &url,
            "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'",
        )
        .filter(|answer| answer == "1")
    });
    kill(postgres.pid());
    end(&mut query);
    drop(postgres);
    start(&scratch.root());
}

#[test]
fn a_server_ends_with_its_program_however_that_ends() {
    let scratch = Scratch::new();
    let program = Program::in_root(&scratch.root());
    let server = pid(server_of(&scratch.root()).unwrap());
    drop(program);
    eventually("the server has gone", || test_kill_process(server).err());
}

#[test]
fn a_program_killed_during_writes_restarts_without_losing_acknowledged_rows() {
    // Every other time the server is killed as well.
    let scratch = Scratch::new();
    let mut expected: Vec<u32> = Vec::new();
    let mut next = 0;
    for round in 0..6 {
        let program = Program::in_root(&scratch.root());
        let url = program.url.clone();
        ask(&url, "CREATE TABLE IF NOT EXISTS t (i int)").unwrap();
        let rows = ask(&url, "SELECT coalesce(string_agg(i::text, ','), '') FROM t").unwrap();
        for value in &expected {
            assert!(
                rows.split(',').any(|row| row == value.to_string()),
                "round {round}: {value} was acknowledged and is lost"
            );
        }

        // The writer reports each acknowledged row and goes on until the next server runs. The
        // program is killed after the third row.
        let (tell, told) = mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let done = Arc::clone(&done);
            move || {
                while !done.load(Ordering::Relaxed) {
                    if ask(&url, &format!("INSERT INTO t VALUES ({next})")).is_some() {
                        tell.send(next).unwrap();
                    }
                    next += 1;
                }
                next
            }
        });
        expected.extend(told.iter().take(3));
        let server = server_of(&scratch.root()).unwrap();
        drop(program);
        if round % 2 == 1 {
            // It may have ended.
            let _ = kill_process(pid(server), Signal::KILL);
        }
        let _next = Program::in_root(&scratch.root());
        assert_ne!(server_of(&scratch.root()), Some(server));
        done.store(true, Ordering::Relaxed);
        expected.extend(told.iter());
        next = writer.join().unwrap();
    }
    assert!(expected.len() >= 18);
}

#[test]
fn a_second_program_is_refused_and_told_who_holds_the_root() {
    let scratch = Scratch::new();
    let program = Program::in_root(&scratch.root());
    let options = options(&scratch.root());
    assert_eq!(
        Postgres::beside(&options, "app").unwrap().as_ref(),
        Some(&program.url)
    );
    let error = Postgres::start(&options).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InUse { .. }));
    assert!(
        text.contains(&format!(
            "process {});",
            server_of(&scratch.root()).unwrap()
        )),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
    drop(program);
    start(&scratch.root());
    assert_eq!(Postgres::beside(&options, "app").unwrap(), None);
}

#[test]
fn a_program_killed_in_initdb_leaves_nothing_that_hinders_the_next() {
    let scratch = Scratch::new();
    let root = scratch.root();
    let unfinished = || {
        let entries = fs::read_dir(&root).ok()?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.to_string_lossy().contains(".unfinished-"))
    };
    let mut program = park(&root).spawn().unwrap();
    eventually("initdb is at work", || {
        unfinished().filter(|path| path.join("PG_VERSION").exists())
    });
    end(&mut program);
    // As if initdb had been killed as well.
    fs::create_dir_all(root.join("postgres-15.unfinished-1/base")).unwrap();

    let postgres = start(&root);
    assert_eq!(ask(&postgres.url("postgres"), "SELECT 1").unwrap(), "1");
    assert!(!root.join("postgres-15.unfinished-1").exists());
    postgres.stop();
    start(&root);
    assert_eq!(unfinished(), None);
}

#[test]
fn a_stale_pid_file_that_names_a_stranger_is_no_obstacle() {
    let scratch = Scratch::new();
    let root = scratch.root();
    start(&root).stop();
    let data_dir = data_dir(&root).unwrap();
    // A process of the same user, which PostgreSQL itself would take for its server.
    let mut stranger = Command::new("sleep");
    stranger.arg("1000");
    if geteuid().is_root() {
        stranger.uid(fs::metadata(&data_dir).unwrap().uid());
    }
    let mut stranger = stranger.spawn().unwrap();
    let file = data_dir.join("postmaster.pid");
    fs::write(
        &file,
        format!("{}\n{}\n", stranger.id(), data_dir.display()),
    )
    .unwrap();

    let postgres = start(&root);
    assert_eq!(ask(&postgres.url("postgres"), "SELECT 1").unwrap(), "1");
    assert!(test_kill_process(pid(stranger.id())).is_ok());
    end(&mut stranger);
}

#[test]
fn an_inaccessible_root_is_replaced_by_a_folder_in_var_tmp() {
    if !geteuid().is_root() {
        // Without root, the server runs as this user, who can enter the folder.
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(&*scratch.0, fs::Permissions::from_mode(0o700)).unwrap();
    let mut places = Vec::new();
    for _ in 0..2 {
        let postgres = start(&scratch.root());
        assert_eq!(ask(&postgres.url("postgres"), "SELECT 1").unwrap(), "1");
        places.push(postgres.data_dir().parent().unwrap().to_owned());
    }
    assert_eq!(places[0], places[1]);
    assert!(places[0].starts_with("/var/tmp"));
    fs::remove_dir_all(&places[0]).unwrap();
}

#[test]
fn a_wrong_bin_directory_is_one_line_that_names_the_variable() {
    let scratch = Scratch::new();
    let output = park(&scratch.root())
        .env("VESTIBULE_PG_BIN", "/nonexistent")
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("VESTIBULE_PG_BIN is set to /nonexistent"),
        "{text}"
    );
}

#[test]
fn a_server_that_cannot_start_says_why_on_one_line() {
    let scratch = Scratch::new();
    let mut options = options(&scratch.root());
    options.settings = vec![("shared_buffers".to_owned(), "nonsense".to_owned())];
    let error = Postgres::start(&options).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::NotStarted(..)));
    assert!(text.contains("nonsense"), "{text}");
    assert_eq!(text.lines().count(), 1);
    start(&scratch.root());
}

#[test]
fn variables_meant_for_other_servers_change_nothing() {
    let scratch = Scratch::new();
    let mut command = park(&scratch.root());
    command
        .env("PGPORT", "1")
        .env("PGDATA", "/nonexistent")
        .env("PGHOST", "/nonexistent");
    command.env("PGOPTIONS", "--nonsense");
    let program = Program::start(command);
    assert_eq!(ask(&program.url, "SHOW port").unwrap(), "5432");
}
