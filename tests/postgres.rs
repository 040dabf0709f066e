//! The embedded PostgreSQL, as root and not, killed in every way.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, getpgid, kill_process, test_kill_process};
use vestibule::dev::postgres::{Error, Options, Postgres};

use crate::support::folder::{Folder, folder};

/// A directory of its own for one test, whose server ends with it.
struct Scratch(Folder);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = folder(&format!("postgres-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        fs::set_permissions(&*folder, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn root(&self) -> PathBuf {
        self.0.join("it's a $root")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(left) = server_of(&self.root()) {
            // It may be on its way.
            let _ = kill_process(pid(left), Signal::QUIT);
        }
    }
}

type Lines = Arc<Mutex<Vec<String>>>;

fn options(root: &Path, durable: bool) -> (Options, Lines) {
    let lines = Lines::default();
    let mut options = Options::new(root);
    options.durable = durable;
    options.progress = Arc::new({
        let lines = Arc::clone(&lines);
        move |line| lines.lock().unwrap().push(line.to_owned())
    });
    (options, lines)
}

fn start(root: &Path) -> Postgres {
    Postgres::start(&options(root, false).0).unwrap()
}

fn mentions(lines: &Lines, words: &str) -> bool {
    lines.lock().unwrap().iter().any(|line| line.contains(words))
}

/// What a statement answers, or `None` when the server did not acknowledge it.
fn ask(url: &str, sql: &str) -> Option<String> {
    let output = Command::new("psql")
        .args(["-X", "-w", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"])
        .args(["-d", url, "-c", sql])
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
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
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The program that [`park`] runs: starts a server, tells its URL, and stays.
#[test]
#[ignore = "it is run by other tests, as a program of its own"]
fn park_here() {
    let mut options = Options::new(std::env::var_os("PARK_ROOT").expect("run by another test"));
    options.progress = Arc::new(|line| eprintln!("{line}"));
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

/// The line in which a program tells its server's URL; empty when it ended without one.
fn url_of(program: &mut Child) -> String {
    let lines = BufReader::new(program.stdout.as_mut().unwrap()).lines();
    lines.map(Result::unwrap).find(|line| line.starts_with("postgres")).unwrap_or_default()
}

/// A program that owns a server, and the URL it printed once that was ready.
fn owner(root: &Path) -> (Child, String) {
    let mut program = park(root).spawn().unwrap();
    let url = url_of(&mut program);
    if url.is_empty() {
        let mut why = String::new();
        program.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        panic!("no server: {why}");
    }
    (program, url.trim().to_owned())
}

fn end(mut program: Child) {
    program.kill().unwrap();
    program.wait().unwrap();
}

/// The server that runs in this root, by its own account.
fn server_of(root: &Path) -> Option<u32> {
    fs::read_to_string(data_dir(root)?.join("postmaster.pid")).ok()?.lines().next()?.parse().ok()
}

fn data_dir(root: &Path) -> Option<PathBuf> {
    fs::read_dir(root).ok()?.flatten().map(|entry| entry.path()).find(|path| path.join("PG_VERSION").exists())
}

#[test]
fn a_fresh_root_gets_a_server_that_answers_until_it_is_dropped() {
    let scratch = Scratch::new();
    let (options, lines) = options(&scratch.root(), true);
    let postgres = Postgres::start(&options).unwrap();
    assert!(mentions(&lines, "first start only"));

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
    assert_eq!(found.uid(), fs::metadata(postgres.data_dir()).unwrap().uid());

    let server = pid(postgres.pid().unwrap());
    assert_eq!(getpgid(Some(server)).unwrap(), server);
    postgres.stop();
    assert!(!socket_dir.exists());
    eventually("the server has gone", || test_kill_process(server).err());

    let again = start(&scratch.root());
    assert_eq!(ask(&again.url("an \"odd' name/?"), "SELECT 1").unwrap(), "1");
}

#[test]
fn a_server_killed_in_the_middle_of_an_endless_query_can_be_started_again() {
    let scratch = Scratch::new();
    let postgres = start(&scratch.root());
    let url = postgres.url("postgres");
    let endless = "DO $$ BEGIN LOOP END LOOP; END $$";
    let query =
        Command::new("psql").args(["-X", "-d", &url, "-c", endless]).stderr(Stdio::null()).spawn().unwrap();
    eventually("the query runs", || {
        ask(&url, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'")
            .filter(|answer| answer == "1")
    });
    kill(postgres.pid().unwrap());
    end(query);
    drop(postgres);
    start(&scratch.root());
}

#[test]
fn a_server_replaces_the_one_that_a_killed_program_has_left() {
    let scratch = Scratch::new();
    let (program, url) = owner(&scratch.root());
    end(program);
    let left = server_of(&scratch.root()).unwrap();
    assert_eq!(ask(&url, "SHOW fsync").unwrap(), "on");

    let (options, lines) = options(&scratch.root(), false);
    let postgres = Postgres::start(&options).unwrap();
    assert_ne!(postgres.pid().unwrap(), left);
    assert_eq!(ask(&url, "SHOW fsync").unwrap(), "off");
    assert!(mentions(&lines, "stopping the PostgreSQL of an earlier run"));
}

#[test]
fn a_server_whose_directory_was_removed_gives_way_to_one_with_a_new_directory() {
    let scratch = Scratch::new();
    let (program, url) = owner(&scratch.root());
    let left = server_of(&scratch.root()).unwrap();
    end(program);
    fs::remove_dir_all(scratch.root()).unwrap();

    let postgres = start(&scratch.root());
    assert_eq!(postgres.url("app"), url);
    assert_eq!(ask(&url, "SELECT 1"), None, "a new one has no such database");
    eventually("the other has gone", || test_kill_process(pid(left)).err());
}

#[test]
fn a_program_killed_while_it_writes_can_be_started_again_at_once_and_loses_nothing() {
    // Every other time the server dies with the program; otherwise the next program replaces it.
    let scratch = Scratch::new();
    let mut expected: Vec<u32> = Vec::new();
    let mut next = 0;
    for round in 0..6 {
        let (program, url) = owner(&scratch.root());
        ask(&url, "CREATE TABLE IF NOT EXISTS t (i int)").unwrap();
        let rows = ask(&url, "SELECT coalesce(string_agg(i::text, ','), '') FROM t").unwrap();
        for value in &expected {
            assert!(
                rows.split(',').any(|row| row == value.to_string()),
                "round {round}: {value} was acknowledged and is lost"
            );
        }

        // The writer tells what was acknowledged, and goes on until the next
        // server is there; the kill comes after the third row.
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
        end(program);
        if round % 2 == 1 {
            kill(server);
        }
        let (program, _) = owner(&scratch.root());
        assert_ne!(server_of(&scratch.root()), Some(server));
        done.store(true, Ordering::Relaxed);
        expected.extend(told.iter());
        end(program);
        next = writer.join().unwrap();
    }
    assert!(expected.len() >= 18);
}

#[test]
fn a_second_program_is_refused_and_told_who_holds_the_root() {
    let scratch = Scratch::new();
    let (program, _) = owner(&scratch.root());
    let error = Postgres::start(&options(&scratch.root(), false).0).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InUse { .. }));
    assert!(text.contains(&format!("process {}", program.id())), "{text}");
    assert_eq!(text.lines().count(), 1);
    end(program);
    start(&scratch.root());
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
    let program = park(&root).spawn().unwrap();
    eventually("initdb is at work", || unfinished().filter(|path| path.join("PG_VERSION").exists()));
    end(program);
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
    // Of the same user, which is what PostgreSQL itself would fall for.
    let mut stranger = Command::new("sleep");
    stranger.arg("1000");
    if geteuid().is_root() {
        stranger.uid(fs::metadata(&data_dir).unwrap().uid());
    }
    let stranger = stranger.spawn().unwrap();
    let file = data_dir.join("postmaster.pid");
    fs::write(&file, format!("{}\n{}\n", stranger.id(), data_dir.display())).unwrap();

    let postgres = start(&root);
    assert_eq!(ask(&postgres.url("postgres"), "SELECT 1").unwrap(), "1");
    assert!(test_kill_process(pid(stranger.id())).is_ok());
    end(stranger);
}

#[test]
fn a_root_that_the_server_user_cannot_enter_is_replaced_by_another_place() {
    if !geteuid().is_root() {
        // Without a second user there is nobody to be shut out.
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(&*scratch.0, fs::Permissions::from_mode(0o700)).unwrap();
    let mut places = Vec::new();
    for _ in 0..2 {
        let (options, lines) = options(&scratch.root(), false);
        let postgres = Postgres::start(&options).unwrap();
        assert!(mentions(&lines, "the database is kept in"));
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
    let output = park(&scratch.root()).env("VESTIBULE_PG_BIN", "/nonexistent").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("VESTIBULE_PG_BIN is set to /nonexistent"), "{text}");
}

#[test]
fn a_server_that_cannot_start_says_why_on_one_line() {
    let scratch = Scratch::new();
    let (mut options, _) = options(&scratch.root(), false);
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
    let mut program = park(&scratch.root())
        .env("PGPORT", "1")
        .env("PGDATA", "/nonexistent")
        .env("PGHOST", "/nonexistent")
        .env("PGOPTIONS", "--nonsense")
        .spawn()
        .unwrap();
    let url = url_of(&mut program);
    assert_eq!(ask(&url, "SHOW port").unwrap(), "5432");
    end(program);
}
