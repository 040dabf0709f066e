//! Three PostgreSQL servers under Patroni, with `deploy/patroni`: acknowledged changes survive the
//! loss of the leader.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::{Connection, Executor, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;
use vestibule::accounts::tokens::refresh_token::{RefreshToken, Successors};
use vestibule::secret::Secret;

use crate::deploy::phone;
use crate::deploy::tools::{Running, folder, postgres, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::process::{SECRET_KEY, eventually, free_port, until};
use crate::support::provider::Provider;
use crate::support::token;

const NODES: usize = 3;
/// The addresses in `deploy/patroni`, which each node replaces.
const SHIPPED: [&str; NODES] = ["10.0.0.21", "10.0.0.22", "10.0.0.23"];
const PHONES: usize = 6;
/// Longest time without sign-ins, with a reserve for other tests that run meanwhile.
const BEARABLE: Duration = Duration::from_mins(1);

/// One machine: Patroni with its PostgreSQL.
struct Node {
    sql: String,
    rest: String,
    data: PathBuf,
    patroni: Option<Running>,
}

impl Node {
    fn new(folder: &Path, number: usize) -> Self {
        let address = |port| format!("127.0.0.{}:{port}", 31 + number);
        Self {
            sql: address(free_port()),
            rest: address(free_port()),
            data: folder.join(format!("db{}", number + 1)),
            patroni: None,
        }
    }

    fn start(&mut self, program: &Path, folder: &Path, etcd: &str, number: usize) {
        let name = format!("db{}", number + 1);
        let yml = shipped(
            "patroni/patroni.yml",
            &[
                ("10.0.0.31:2379, 10.0.0.32:2379, 10.0.0.33:2379", etcd),
                ("10.0.0.0/24", "127.0.0.0/8"),
                ("/run/postgresql", folder.to_str().unwrap()),
            ],
        );
        let file = folder.join("patroni.yml");
        fs::write(&file, yml).unwrap();
        let pgpass = folder.join(format!("{name}.pgpass"));
        let environment = shipped(
            "patroni/db1.env",
            &[
                ("db1", &name),
                ("10.0.0.21:8008", &self.rest),
                ("10.0.0.21:5432", &self.sql),
                ("/usr/lib/postgresql/15/bin", postgres().to_str().unwrap()),
                ("/var/lib/postgresql/vestibule", self.data.to_str().unwrap()),
                ("/var/lib/postgresql/pgpass", pgpass.to_str().unwrap()),
            ],
        );
        let settings = environment.lines().filter(|line| !line.starts_with('#'));
        let settings: Vec<_> = settings.filter_map(|line| line.split_once('=')).collect();
        let log = folder.join(format!("{name}.log"));
        self.patroni = Some(Running::start_as_server(program, &log, |command| {
            command.arg(&file).envs(settings).current_dir(folder);
        }));
    }

    /// Returns `true` if Patroni reports this role of the node: `primary`, `replica` or
    /// `synchronous`.
    async fn is(&self, what: &str) -> bool {
        let client = Client::builder()
            .timeout(Duration::from_secs(2))
            .build()
            .unwrap();
        let answer = client
            .get(format!("http://{}/{what}", self.rest))
            .send()
            .await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    fn postmaster(&self) -> Option<Pid> {
        let file = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        Pid::from_raw(file.lines().next()?.parse().ok()?)
    }

    /// Kills Patroni and PostgreSQL at once, as a power failure does.
    fn kill(&mut self) {
        drop(self.patroni.take());
        if let Some(postmaster) = self.postmaster() {
            let _ = kill_process(postmaster, Signal::KILL);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until one of the nodes has this role, and returns its number.
async fn which(nodes: &[Node], what: &str) -> usize {
    eventually(&format!("one is {what}"), async || {
        for (number, node) in nodes.iter().enumerate() {
            if node.is(what).await {
                return Some(number);
            }
        }
        None
    })
    .await
}

/// HAProxy before PostgreSQL, with `deploy/patroni/haproxy.cfg`, and its port.
fn proxy(program: &Path, folder: &Path, nodes: &[Node]) -> (Running, u16) {
    let port = free_port();
    let mut changes = vec![
        ("127.0.0.1:5432".to_owned(), format!("127.0.0.1:{port}")),
        (
            "    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n".to_owned(),
            String::new(),
        ),
    ];
    for (address, node) in SHIPPED.iter().zip(nodes) {
        let (host, rest) = node.rest.split_once(':').unwrap();
        let there = format!("{} check addr {host} port {rest}", node.sql);
        changes.push((format!("{address}:5432 check port 8008"), there));
    }
    let changes: Vec<_> = changes
        .iter()
        .map(|(from, to)| (from.as_str(), to.as_str()))
        .collect();
    let file = folder.join("postgresql.cfg");
    fs::write(&file, shipped("patroni/haproxy.cfg", &changes)).unwrap();
    let running = Running::start(program, &folder.join("haproxy.log"), |command| {
        command.args(["-db", "-f"]).arg(&file);
    });
    (running, port)
}

/// A response that a client got: the user and the session, and the hashes of the refresh token and
/// of its successor.
type Promise = (Uuid, Uuid, [Vec<u8>; 2]);

fn promised(answer: &Value) -> Promise {
    let payload = answer["access_token"]
        .as_str()
        .unwrap()
        .split('.')
        .nth(1)
        .unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    let id = |name: &str| claims[name].as_str().unwrap().parse().unwrap();
    let token = RefreshToken::parse(answer["refresh_token"].as_str().unwrap()).unwrap();
    let successor = Successors::new(&Secret::new(SECRET_KEY.to_owned()).into()).of(&token);
    (
        id("sub"),
        id("sid"),
        [token, successor].map(|token| token.token_hash().to_vec()),
    )
}

/// Counts the promises that the database does not know.
async fn broken(promises: &[Promise], connection: &mut PgConnection) -> usize {
    // A session's row has only the hash of its live token, so that only the last promise of each
    // session counts. Its successor may be live if the client missed the response.
    let last: BTreeMap<_, _> = promises
        .iter()
        .map(|(user, session, hashes)| ((user, session), hashes))
        .collect();
    let mut broken = 0;
    for ((user, session), [hash, successor]) in last {
        let known: bool = value!(
            &mut *connection,
            "SELECT EXISTS (SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
                            WHERE i.user_id = $1 AND s.id = $2 AND s.token_hash IN ($3, $4))",
            user,
            session,
            hash,
            successor
        );
        broken += usize::from(!known);
    }
    broken
}

/// Waits until a new user can sign in.
async fn signed_in(client: &Client, instance: &Vestibule, provider: &Provider, who: &str) {
    eventually("sign-ins are back", async || {
        let token = provider.token(token::claims(who, &format!("{who}@example.com")));
        phone::sign_in(client, &instance.url(), &token).await.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_leader_costs_half_a_minute_and_no_acknowledged_write() {
    let (Some(patroni), Some(etcd), Some(haproxy)) = (
        program("patroni", (3, 0)),
        program("etcd", (3, 4)),
        program("haproxy", (2, 6)),
    ) else {
        return;
    };
    let folder = folder("patroni");
    let begun = Instant::now();
    let clients = format!("127.0.0.30:{}", free_port());
    let peers = format!("127.0.0.30:{}", free_port());
    let _etcd = Running::start_as_server(&etcd, &folder.join("etcd.log"), |command| {
        command.arg("--data-dir").arg(folder.join("etcd"));
        command.args(["--listen-client-urls", &format!("http://{clients}")]);
        command.args(["--advertise-client-urls", &format!("http://{clients}")]);
        command.args(["--listen-peer-urls", &format!("http://{peers}")]);
        command.args(["--initial-advertise-peer-urls", &format!("http://{peers}")]);
        command.args(["--initial-cluster", &format!("default=http://{peers}")]);
    });
    eventually("etcd answers", async || {
        reqwest::get(format!("http://{clients}/health")).await.ok()
    })
    .await;
    let mut nodes: Vec<_> = (0..NODES)
        .map(|number| Node::new(&folder, number))
        .collect();
    for (number, node) in nodes.iter_mut().enumerate() {
        node.start(&patroni, &folder, &clients, number);
    }
    let (_proxy, port) = proxy(&haproxy, &folder, &nodes);
    let leader = which(&nodes, "primary").await;
    which(&nodes, "synchronous").await;
    let admin = format!("postgres://postgres:change-this-1@127.0.0.1:{port}/postgres");
    let mut connection = eventually("the leader is found", async || {
        PgConnection::connect(&admin).await.ok()
    })
    .await;
    connection
        .execute("CREATE ROLE vestibule LOGIN PASSWORD 'secret'")
        .await
        .unwrap();
    connection
        .execute("CREATE DATABASE vestibule OWNER vestibule")
        .await
        .unwrap();
    println!("the cluster is up after {:?}", begun.elapsed());

    let database = format!("postgres://vestibule:secret@127.0.0.1:{port}/vestibule");
    let provider = Arc::new(Provider::start().await);
    let servers = nodes
        .iter()
        .map(|node| node.sql.as_str())
        .collect::<Vec<_>>()
        .join(",");
    let all =
        format!("postgres://vestibule:secret@{servers}/vestibule?target_session_attrs=read-write");
    let instance = |url: &str| Vestibule::new(&folder, url, &provider.tokeninfo_url()).started();
    // The first instance connects through HAProxy, the second finds the leader by itself.
    let instances = [instance(&database).await, instance(&all).await];

    let ledger = Arc::<Mutex<Vec<Promise>>>::default();
    let done = Arc::<AtomicBool>::default();
    let told = || ledger.lock().unwrap().len();
    let mut phones = JoinSet::new();
    for phone in 0..PHONES {
        let ledger = ledger.clone();
        let done = done.clone();
        let provider = provider.clone();
        let url = instances[phone % instances.len()].url();
        phones.spawn(async move {
            let client = Client::builder()
                .timeout(Duration::from_secs(10))
                .build()
                .unwrap();
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let subject = format!("{phone}-{number}");
                let token =
                    provider.token(token::claims(&subject, &format!("{subject}@example.com")));
                let Ok(mut session) = phone::sign_in(&client, &url, &token).await else {
                    continue;
                };
                ledger.lock().unwrap().push(promised(&session));
                // A refresh is a promise, too.
                if let Ok(next) = phone::refresh(&client, &url, &session).await {
                    session = next;
                    ledger.lock().unwrap().push(promised(&session));
                }
            }
        });
    }
    until("people sign in", async || told() > 500).await;

    nodes[leader].kill();
    let killed = Instant::now();
    // Responses may still arrive that were under way. Sign-ins work again once a new user has
    // signed in on the new leader.
    let client = Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    let survivors: Vec<_> = (0..NODES).filter(|number| *number != leader).collect();
    let next = eventually("another one leads", async || {
        for number in &survivors {
            if nodes[*number].is("primary").await {
                return Some(*number);
            }
        }
        None
    })
    .await;
    println!("another one leads after {:?}", killed.elapsed());
    let [proxied, direct] = &instances;
    let back = async |instance, who| {
        signed_in(&client, instance, &provider, who).await;
        killed.elapsed()
    };
    let (proxied, direct) = tokio::join!(back(proxied, "proxied"), back(direct, "direct"));
    let without = proxied.max(direct);
    println!(
        "sign-ins are back after {proxied:?} through HAProxy, {direct:?} by the list of servers"
    );
    assert!(without < BEARABLE, "{without:?}");
    let before = told();
    until("people sign in again", async || told() > before + 200).await;
    done.store(true, Ordering::Relaxed);
    phones.join_all().await;

    let direct = format!("postgres://vestibule:secret@{}/vestibule", nodes[next].sql);
    let mut connection = PgConnection::connect(&direct).await.unwrap();
    let promises = ledger.lock().unwrap().clone();
    assert_eq!(
        broken(&promises, &mut connection).await,
        0,
        "of {} promises",
        promises.len()
    );
    println!(
        "{before} promises before, {} in all, none broken",
        promises.len()
    );

    // The killed node returns as a replica.
    nodes[leader].start(&patroni, &folder, &clients, leader);
    until("the old leader follows", async || {
        nodes[leader].is("replica").await
    })
    .await;
    println!("the old leader follows; {:?} in all", begun.elapsed());
}
