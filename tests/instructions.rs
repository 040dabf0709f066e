//! Compares the instructions that the service executes for each request of a phone with the
//! committed figures. No clock is read. On a busy machine a request may be the first on its
//! connection, which prepares the statement: so several means are taken, and the least counts.
//!
//! All tests run the same program, which is not optimised: these tests compare how much it does,
//! not how fast.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::programs::program;
use crate::support::cluster::Database;
use crate::support::missing::skip;
use crate::support::process::Process;
use crate::support::provider::Provider;
use crate::support::token;

/// Requests per mean.
const REQUESTS: u32 = 10;
/// Means per figure, which is the least of them.
const MEANS: u32 = 4;
/// Allowed difference from the committed figure, in per cent: compilers differ.
const TOLERANCE: f64 = 10.0;

/// A service under `callgrind`.
struct Watched {
    service: Process,
    client: reqwest::Client,
    counts: PathBuf,
    dumps: u32,
}

impl Watched {
    fn control(&self, order: &str) {
        let done = Command::new("callgrind_control")
            .args([order, &self.service.id().to_string()])
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Sends requests one after the other, and returns the least mean of their instructions.
    async fn instructions<T>(
        &mut self,
        first: T,
        request: impl AsyncFn(&Self, T) -> T,
    ) -> (u64, T) {
        let mut state = first;
        for _ in 0..REQUESTS {
            state = request(self, state).await;
        }
        self.control("--zero");
        let mut least = u64::MAX;
        for _ in 0..MEANS {
            for _ in 0..REQUESTS {
                state = request(self, state).await;
            }
            // It resets the counts, too.
            self.control("--dump");
            self.dumps += 1;
            let dump = format!("{}.{}", self.counts.display(), self.dumps);
            let dump = fs::read_to_string(dump).unwrap();
            let total = dump
                .lines()
                .find_map(|line| line.strip_prefix("totals: "))
                .expect("a dump has a total");
            least = least.min(total.parse::<u64>().unwrap() / u64::from(REQUESTS));
        }
        (least, state)
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.service.url));
        let request = request
            .header("Content-Type", "application/json")
            .body(body.to_string());
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phones_requests_take_as_many_instructions_as_were_committed() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skip("the instructions were counted on Linux and x86-64");
    }
    if program("valgrind", (3, 19)).is_none() {
        return;
    }
    let database = Database::create().await;
    let provider = Provider::start().await;
    let counts = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("callgrind-{}", std::process::id()));
    let out = format!("--callgrind-out-file={}", counts.display());
    let arguments = ["--tool=callgrind", "--quiet", &out];
    let limits = [(
        "ROCKET_RATE_LIMIT",
        "{sign_in_per_minute=10000, refresh_per_minute=10000}",
    )];
    let service = Process::start_under(
        "valgrind",
        &arguments,
        &database.url,
        &provider.tokeninfo_url(),
        &limits,
    );
    // Under `callgrind`, the service starts fifty times as slowly.
    service.answers("/livez", 200).await;
    service.answers("/readyz", 200).await;
    let mut watched = Watched {
        service,
        client: reqwest::Client::new(),
        counts,
        dumps: 0,
    };
    let sign_in = async |watched: &Watched, subject: &str| {
        let token = provider.token(token::claims(subject, &format!("{subject}@example.com")));
        watched
            .post("/api/v1/auth/oauth/idp", &json!({ "id_token": token }))
            .await
    };

    let (returning, signed_in) = watched
        .instructions(Value::Null, async |watched, _| {
            sign_in(watched, "ada").await
        })
        .await;
    let (new, _) = watched
        .instructions(0, async |watched, number| {
            sign_in(watched, &format!("user-{number}")).await;
            number + 1
        })
        .await;
    let text = |answer: &Value, name: &str| answer[name].as_str().unwrap().to_owned();
    let (refresh, _) = watched
        .instructions(text(&signed_in, "refresh_token"), async |watched, token| {
            text(
                &watched
                    .post("/api/v1/auth/refresh", &json!({ "refresh_token": token }))
                    .await,
                "refresh_token",
            )
        })
        .await;
    let (me, _) = watched
        .instructions(text(&signed_in, "access_token"), async |watched, token| {
            let request = watched
                .client
                .get(format!("{}/api/v1/me", watched.service.url))
                .bearer_auth(&token);
            assert_eq!(request.send().await.unwrap().status(), 200);
            token
        })
        .await;

    let counted = BTreeMap::from([
        ("me", me),
        ("new user", new),
        ("refresh", refresh),
        ("returning sign-in", returning),
    ]);
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.json");
    let committed: BTreeMap<&str, u64> =
        serde_json::from_str(include_str!("instructions.json")).unwrap();
    println!("{counted:?}");
    #[expect(clippy::cast_precision_loss, reason = "they are millions")]
    let off = counted.iter().any(|(name, count)| {
        let was = committed.get(name).copied().unwrap_or_default() as f64;
        (*count as f64 - was).abs() > was * TOLERANCE / 100.0
    });
    if off {
        let found = serde_json::to_string_pretty(&counted).unwrap();
        panic!(
            "{found}\nrather than {committed:?}: say why it is so, and commit it as {}",
            place.display()
        );
    }
}
