//! The nightly dump of `deploy/vestibule-backup.service`, and its way back in docs/database.md.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use sqlx::postgres::PgConnectOptions;

use crate::deploy::tools::{alone, folder, postgres, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::cluster::{Database, cluster};

/// Runs a line of a shell beside the database of these options.
fn run(line: &str, folder: &Path, options: &PgConnectOptions, database: &str) -> Output {
    let host =
        options.get_socket().map_or_else(|| options.get_host().into(), |path| path.display().to_string());
    Command::new("sh")
        .args(["-euc", line])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", postgres().display()))
        .envs([("PGHOST", host.as_str()), ("PGUSER", options.get_username()), ("PGDATABASE", database)])
        .env("PGPORT", options.get_port().to_string())
        .output()
        .unwrap()
}

fn dumps(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let dumps = files.filter(|path| path.extension().is_some_and(|its| its == "dump"));
    dumps.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nightly_dump_comes_back_as_written_beside_the_database() {
    let Some(dump) = program("pg_dump", (14, 0)) else { return };
    let _alone = alone().await;
    let (folder, database) = (folder("backup"), Database::create().await);
    let options: PgConnectOptions = database.url.parse().unwrap();
    let name = options.get_database().unwrap();
    let instance = Vestibule::new(&folder, &database.url, "http://127.0.0.1:1");
    assert!(instance.run(&["keys", "rotate", "--now"]).status.success());
    assert!(instance.run(&["staff", "add", "ada@example.com", "--role", "admin"]).status.success());

    let unit =
        shipped("vestibule-backup.service", &[("/usr/bin/pg_dump", dump.to_str().unwrap()), ("%%", "%")]);
    let lines: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    let night = |database: &str| {
        lines
            .iter()
            .map(|line| run(line, &folder, &options, database))
            .find(|output| !output.status.success())
    };
    let aged = File::create(folder.join("2001-01-01T0230Z.dump")).unwrap();
    aged.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let failed = night("no_such_database").expect("there is nothing to dump");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("does not exist"));
    assert_eq!(dumps(&folder), ["2001-01-01T0230Z.dump"], "a dump that failed touches none");
    if let Some(failed) = night(name) {
        panic!("{}", String::from_utf8_lossy(&failed.stderr));
    }
    let kept = dumps(&folder);
    assert!(kept.len() == 1 && kept[0] != "2001-01-01T0230Z.dump", "the old one is gone: {kept:?}");

    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/database.md")).unwrap();
    let (_, section) = page.split_once("\n### Restoring a dump\n").expect("it is there");
    let block = section.lines().skip_while(|line| !line.starts_with("    "));
    let block: Vec<_> = block.map_while(|line| line.strip_prefix("    ")).collect();
    let restored = format!("{name}_restored");
    let script = block
        .join("\n")
        .replace("vestibule_restored", &restored)
        .replace("=vestibule ", &format!("={} ", options.get_username()))
        .replace("vestibule.dump", &kept[0]);
    let output = run(&script, &folder, &options, "postgres");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let instance = instance.with("DATABASE_URL", &cluster().await.url(&restored));
    let staff = instance.run(&["staff", "list"]);
    assert!(String::from_utf8_lossy(&staff.stdout).contains("ada@example.com"));
    let said = String::from_utf8(instance.run(&["check"]).stdout).unwrap();
    assert!(
        said.contains("signing keys: 1 can be decrypted") && said.contains("migrations are applied"),
        "{said}"
    );
    let drop = run(&format!("dropdb {restored}"), &folder, &options, "postgres");
    assert!(drop.status.success());
}
