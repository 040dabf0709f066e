//! Keycloak, from Maven Central. One server, in which each test has a realm of its own.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::deploy::tools::{Running, folder};
use crate::deploy::vestibule::Vestibule;
use crate::real::installed::keycloak;
use crate::real::person::{json as good, staff};
use crate::real::service::{at_provider, sign_in};
use crate::support::cluster::Database;
use crate::support::process::{eventually, free_port};

const ADMIN: &str = "admin";
const SECRET: &str = "hush";
/// Ada's password, which `person::sign_in` types.
const PASSWORD: &str = "a password";

static SERVER: OnceCell<String> = OnceCell::const_new();

/// The server's URL. The first call starts it.
async fn server(home: &Path) -> &'static str {
    SERVER.get_or_init(|| start(home)).await
}

async fn start(home: &Path) -> String {
    let home = home.to_owned();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let log = home.join(format!("of-the-tests-{port}.log"));
    let hostname = format!("--hostname={url}");
    let output = log.clone();
    let (tell, started) = mpsc::channel();
    // The system ends the server with the thread that started it. The first test's thread ends too
    // early.
    thread::spawn(move || {
        let threads = "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory";
        // The command that `bin/kc.sh` starts. The script would leave it running when it is killed.
        let _running = Running::start(Path::new("/usr/bin/env"), &output, |command| {
            command.args(["java", "-XX:TieredStopAtLevel=1", "-Xmx512m"]);
            command.arg(format!(
                "-Djava.util.concurrent.ForkJoinPool.common.threadFactory={threads}"
            ));
            command.arg(format!("-Dkc.home.dir={}", home.display()));
            command.arg(format!(
                "-Djboss.server.config.dir={}",
                home.join("conf").display()
            ));
            command.arg("-Djava.util.logging.manager=org.jboss.logmanager.LogManager");
            command.arg("-cp").arg(home.join("lib/quarkus-run.jar"));
            command.args([
                "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
                "start",
                "--optimized",
            ]);
            command.args([
                "--cache=local",
                "--http-enabled=true",
                "--http-host=127.0.0.1",
            ]);
            command.arg(format!("--http-port={port}")).arg(hostname);
            command
                .env("KC_BOOTSTRAP_ADMIN_USERNAME", ADMIN)
                .env("KC_BOOTSTRAP_ADMIN_PASSWORD", ADMIN);
        });
        tell.send(()).unwrap();
        loop {
            thread::park();
        }
    });
    started.recv().unwrap();
    eventually(
        &format!("Keycloak answers; see {}", log.display()),
        async || {
            let answer = reqwest::get(format!("{url}/realms/master")).await.ok()?;
            (answer.status() == StatusCode::OK).then_some(())
        },
    )
    .await;
    url
}

/// A realm with Keycloak's defaults, the user Ada, and three clients: `app`; `narrow`, whose access
/// tokens have only itself as audience; and `backend`, which has a secret.
struct Realm {
    server: &'static str,
    name: &'static str,
}

impl Realm {
    /// Creates a realm. The provider redirects staff to `callback`.
    async fn new(home: &Path, name: &'static str, callback: &str) -> Self {
        let realm = Self {
            server: server(home).await,
            name,
        };
        realm
            .ask(Method::POST, "", &json!({ "realm": name, "enabled": true }))
            .await;
        let client = |id: &str, more: Value| {
            let mut client = json!({ "clientId": id, "redirectUris": [callback], "directAccessGrantsEnabled": true });
            client
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            client
        };
        let mapper = json!({
            "name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
            "config": {
                "included.client.audience": "narrow", "access.token.claim": "true", "id.token.claim": "false",
            },
        });
        let clients = [
            client("app", json!({ "publicClient": true })),
            client(
                "narrow",
                json!({ "publicClient": true, "fullScopeAllowed": false, "protocolMappers": [mapper] }),
            ),
            client(
                "backend",
                json!({ "publicClient": false, "secret": SECRET }),
            ),
        ];
        for client in clients {
            realm
                .ask(Method::POST, &format!("/{name}/clients"), &client)
                .await;
        }
        let password = json!({ "type": "password", "value": PASSWORD, "temporary": false });
        let ada = json!({
            "username": "ada", "enabled": true, "email": "ada@example.com", "emailVerified": true,
            "firstName": "Ada", "lastName": "Lovelace", "credentials": [password],
        });
        realm
            .ask(Method::POST, &format!("/{name}/users"), &ada)
            .await;
        realm
    }

    fn issuer(&self) -> String {
        format!("{}/realms/{}", self.server, self.name)
    }

    /// Sends a request to Keycloak's admin API.
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let client = Client::new();
        let form = [
            ("grant_type", "password"),
            ("client_id", "admin-cli"),
            ("username", ADMIN),
            ("password", ADMIN),
        ];
        let token = format!(
            "{}/realms/master/protocol/openid-connect/token",
            self.server
        );
        let token = good(client.post(token).form(&form)).await;
        let request = client
            .request(method, format!("{}/admin/realms{path}", self.server))
            .bearer_auth(token["access_token"].as_str().unwrap())
            .header("Content-Type", "application/json")
            .body(body.to_string());
        good(request).await
    }

    /// Ada's `id_token` and access token for a client without a secret, by her password.
    async fn tokens(&self, client_id: &str) -> [String; 2] {
        let form = [
            ("grant_type", "password"),
            ("client_id", client_id),
            ("username", "ada"),
            ("password", PASSWORD),
            ("scope", "openid"),
        ];
        let url = format!("{}/protocol/openid-connect/token", self.issuer());
        let tokens = good(Client::new().post(url).form(&form)).await;
        ["id_token", "access_token"].map(|name| tokens[name].as_str().unwrap().to_owned())
    }

    /// Ends Ada's sessions.
    async fn sign_out(&self) {
        let found = self
            .ask(
                Method::GET,
                &format!("/{}/users?username=ada", self.name),
                &Value::Null,
            )
            .await;
        let id = found[0]["id"].as_str().unwrap();
        self.ask(
            Method::POST,
            &format!("/{}/users/{id}/logout", self.name),
            &Value::Null,
        )
        .await;
    }

    /// An instance whose users sign in at this realm, at `backend` and those clients.
    fn instance(
        &self,
        folder: &Path,
        database: &Database,
        clients: &str,
        verify: &str,
    ) -> Vestibule {
        let more = [
            ("IDP_ADDITIONAL_CLIENT_IDS", clients),
            ("IDP_VERIFY", verify),
        ];
        self.configure(at_provider(folder, database, &more))
    }

    /// Configures the instance for the realm's client `backend`.
    fn configure(&self, instance: Vestibule) -> Vestibule {
        instance
            .with("IDP_PRESET", "keycloak")
            .with("IDP_ISSUER", &self.issuer())
            .with("IDP_CLIENT_ID", "backend")
            .with("IDP_CLIENT_SECRET", SECRET)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keycloaks_id_tokens_sign_in_and_its_access_tokens_never_do() {
    let Some(home) = keycloak() else { return };
    let realm = Realm::new(&home, "kinds", "http://127.0.0.1/back").await;
    let folder = folder("real-keycloak");
    let database = Database::create().await;
    // With `account`, the access tokens of a default realm have an audience of ours.
    for clients in ["app,narrow", "app,narrow,account"] {
        for verify in ["jwks", "tokeninfo", "both"] {
            let instance = realm
                .instance(&folder, &database, clients, verify)
                .started()
                .await;
            let said = instance.check();
            assert!(!said.contains("wrong "), "{verify}: {said}");
            for client in ["app", "narrow"] {
                let [id_token, access_token] = realm.tokens(client).await;
                let what = format!("{client} of {clients}, verified by {verify}");
                let answer = sign_in(&instance, &id_token, None).await;
                assert!(
                    answer.status.is_success(),
                    "{what}: {answer:?}\n{}",
                    instance.said()
                );
                let answer = sign_in(&instance, &access_token, None).await;
                assert_eq!(
                    answer.status,
                    StatusCode::UNAUTHORIZED,
                    "{what}: {answer:?}"
                );
                let detail = answer.json()["detail"].to_string();
                assert!(detail.contains("access token"), "{what}: {detail}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_rejects_id_tokens_of_ended_keycloak_sessions() {
    let Some(home) = keycloak() else { return };
    let realm = Realm::new(&home, "sessions", "http://127.0.0.1/back").await;
    let folder = folder("real-keycloak-ended");
    let database = Database::create().await;
    for verify in ["tokeninfo", "both"] {
        let instance = realm
            .instance(&folder, &database, "app", verify)
            .started()
            .await;
        let [id_token, _] = realm.tokens("app").await;
        let answer = sign_in(&instance, &id_token, None).await;
        assert!(answer.status.is_success(), "{verify}: {answer:?}");
        realm.sign_out().await;
        let answer = sign_in(&instance, &id_token, None).await;
        assert_eq!(
            (answer.status, &*answer.error()),
            (StatusCode::UNAUTHORIZED, "invalid_token"),
            "{verify}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_sign_in_at_keycloak_and_wrong_secrets_are_reported() {
    let Some(home) = keycloak() else { return };
    let folder = folder("real-keycloak-staff");
    let database = Database::create().await;
    let instance = at_provider(&folder, &database, &[]);
    let url = instance.url();
    let realm = Realm::new(&home, "staff", &format!("{url}/admin/sign-in/callback")).await;
    let mut instance = realm.configure(instance).started().await;
    instance.appoint("ada@example.com");
    let (landed, mut browser) = staff(&url, "ada").await;
    assert_eq!(
        landed.header("location"),
        Some("/admin/users"),
        "{}",
        landed.text
    );
    assert_eq!(browser.get("/admin").await.status, 200);

    instance.tell_to_stop();
    instance.ended().await;
    let instance = instance
        .with("IDP_CLIENT_SECRET", "another one")
        .started()
        .await;
    let said = instance.check();
    let wrong = said.lines().find(|line| line.starts_with("wrong "));
    assert!(
        wrong.is_some_and(|line| line.contains("IDP_CLIENT_SECRET")),
        "{said}"
    );
    let (refused, _) = staff(&url, "ada").await;
    assert!(
        refused.status.is_client_error() || refused.status.is_server_error(),
        "{}",
        refused.text
    );
    let said = eventually("the log names the setting", async || {
        Some(instance.said()).filter(|said| said.contains("IDP_CLIENT_SECRET"))
    })
    .await;
    assert!(!said.contains("internal_error"), "{said}");
}
