//! A database whose disk is full.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::cluster::{Database, cluster};
use crate::support::process::{Process, complete_settings, eventually, run};
use crate::support::provider::Provider;
use crate::support::token::{claims, opaque};

/// A small file system, which may belong to PostgreSQL's user, until this value is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(name: &str, owner: &Path) -> Option<Self> {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&place).unwrap();
        let owner = fs::metadata(owner).unwrap();
        let options = format!("size=64m,mode=700,uid={},gid={}", owner.uid(), owner.gid());
        let command = ["mount", "-t", "tmpfs", "-o", &options, "vestibule"];
        let mounted = as_root(&command, &place);
        if !mounted {
            fs::remove_dir(&place).unwrap();
            // Not an error, even where `CI` is set: tests may run in a container whose root cannot
            // mount.
            let said =
                "\nSKIPPED: nobody may mount a file system here: a full disk was not tried out\n";
            std::io::stderr().write_all(said.as_bytes()).unwrap();
        }
        mounted.then_some(Self(place))
    }

    /// Writes a file until nothing more fits.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        as_root(&["umount", "--lazy"], &self.0);
        let _ = fs::remove_dir(&self.0);
    }
}

fn as_root(command: &[&str], place: &Path) -> bool {
    let root = rustix::process::geteuid().is_root();
    let whole = ["sudo", "-n"]
        .iter()
        .skip(if root { 2 } else { 0 })
        .chain(command);
    let mut whole = whole.copied();
    let mut process = Command::new(whole.next().unwrap());
    process
        .args(whole)
        .arg(place)
        .status()
        .is_ok_and(|status| status.success())
}

/// Signs a new person in, and returns the status and the error.
async fn sign_in(service: &Process, provider: &Provider) -> (u16, String) {
    let token = opaque();
    let person = Uuid::new_v4();
    provider.accept(
        &token,
        claims(&person.to_string(), &format!("{person}@example.com")),
    );
    let answer = service.sign_in("idp", &json!({ "id_token": token })).await;
    (answer.status.as_u16(), answer.error())
}

/// Returns the line of `vestibule check` about the disk.
async fn checked(database: &Database, provider: &Provider) -> String {
    let output = run(
        &complete_settings(&database.url, &provider.tokeninfo_url()),
        &["check"],
    )
    .await;
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines()
        .find(|line| line.contains("its disk"))
        .unwrap_or_else(|| panic!("{said}"))
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_not_ready_while_the_database_disk_is_full() {
    let postgres = cluster().await;
    let name = format!("full_{}", Uuid::now_v7().simple());
    let Some(disk) = Disk::mount(&name, postgres.data_dir()) else {
        return;
    };
    let superuser = sqlx::PgPool::connect(&postgres.url("postgres"))
        .await
        .unwrap();
    let run = async |sql: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&superuser)
            .await
            .unwrap()
    };
    run(format!(
        "CREATE TABLESPACE {name} LOCATION '{}'",
        disk.0.display()
    ))
    .await;
    let database = Database::of_locale(&format!("TABLESPACE {name}")).await;
    let provider = Provider::start().await;
    let settings = [("ROCKET_RATE_LIMIT", "{enabled=false}")];
    let service = Process::ready(&database, &provider, &settings).await;
    assert_eq!(sign_in(&service, &provider).await.0, 201);
    assert!(checked(&database, &provider).await.starts_with("ok "));

    let filler = disk.fill();
    let refused = eventually("no page is free any more", async || {
        let (status, error) = sign_in(&service, &provider).await;
        (status != 201).then_some((status, error))
    })
    .await;
    assert_eq!(
        refused,
        (503, "service_unavailable".to_owned()),
        "{}",
        service.log()
    );
    let ready = reqwest::get(format!("{}/readyz", service.url))
        .await
        .unwrap();
    assert_eq!(ready.status(), 503);
    let ready: Value = serde_json::from_str(&ready.text().await.unwrap()).unwrap();
    assert_eq!(
        (&ready["database"], &ready["migrations"]),
        (&json!("disk_full"), &json!("ok"))
    );
    for _ in 0..3 {
        let line = checked(&database, &provider).await;
        assert!(
            line.starts_with("wrong ") && line.contains("No space left on device"),
            "{line}"
        );
    }
    assert_eq!(
        sign_in(&service, &provider).await.0,
        503,
        "nothing was freed"
    );

    // The service becomes ready without a sign-in.
    fs::remove_file(filler).unwrap();
    service.answers("/readyz", 200).await;
    assert_eq!(sign_in(&service, &provider).await.0, 201);
    assert!(checked(&database, &provider).await.starts_with("ok "));
    assert!(
        service.log().contains("database: disk_full"),
        "{}",
        service.log()
    );

    drop(service);
    let left = "SELECT count(*) FROM staff_sign_ins";
    assert_eq!(
        database.count(left).await,
        0,
        "what was tried is rolled back"
    );
    drop(database);
    run(format!("DROP TABLESPACE {name}")).await;
}
