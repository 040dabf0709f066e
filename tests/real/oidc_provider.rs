//! oidc-provider, from npm. `tests/real/oidc_provider.mjs` configures it.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::json;

use crate::deploy::tools::{Running, folder};
use crate::deploy::vestibule::Vestibule;
use crate::real::installed::{node, project};
use crate::real::person::{staff, tokens};
use crate::real::service::{at_provider, sign_in};
use crate::support::cluster::Database;
use crate::support::process::{eventually, free_port};

/// A client secret with characters that Basic has to encode (RFC 6749, section 2.3.1).
const SECRET: &str = "hush: + % &";
const NONCE: &str = "n-0S6_WzA2Mj";

/// Its configuration.
struct Options<'a> {
    port: u16,
    /// The URL of the service, to which staff return.
    service: &'a str,
    authentication: &'a str,
    /// The kind that its access tokens state.
    access: &'a str,
}

impl<'a> Options<'a> {
    fn new(service: &'a str) -> Self {
        Self {
            port: free_port(),
            service,
            authentication: "client_secret_basic",
            access: "at+jwt",
        }
    }

    fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts it, with a new key.
    async fn start(&self, node: &Path, folder: &Path) -> Running {
        let options = json!({
            "port": self.port, "back": format!("{}/admin/sign-in/callback", self.service), "secret": SECRET,
            "authentication": self.authentication, "access": self.access,
        });
        let log = folder.join(format!("oidc-provider-{}.log", self.port));
        let running = Running::start(node, &log, |command| {
            command
                .arg(project("tests/real/oidc_provider.mjs"))
                .arg(options.to_string());
        });
        let document = format!("{}/.well-known/openid-configuration", self.issuer());
        eventually(
            &format!("oidc-provider answers; see {}", log.display()),
            async || reqwest::get(&document).await.ok(),
        )
        .await;
        running
    }
}

/// An instance whose users sign in at this provider.
fn instance(
    folder: &Path,
    database: &Database,
    issuer: &str,
    settings: &[(&str, &str)],
) -> Vestibule {
    let provider = [
        ("IDP_PRESET", "oidc"),
        ("IDP_ISSUER", issuer),
        ("IDP_CLIENT_ID", "phone"),
    ];
    at_provider(folder, database, &[&provider, settings].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn id_tokens_sign_in_and_marked_access_tokens_do_not() {
    let Some(node) = node() else { return };
    let folder = folder("real-kinds");
    let database = Database::create().await;
    for access in ["at+jwt", "scope", "Bearer"] {
        let options = Options {
            access,
            ..Options::new("http://127.0.0.1")
        };
        let _provider = options.start(&node, &folder).await;
        let instance = instance(&folder, &database, &options.issuer(), &[])
            .started()
            .await;
        let tokens = tokens(&options.issuer(), "phone", access, None).await;
        let [id_token, access_token] =
            ["id_token", "access_token"].map(|name| tokens[name].as_str().unwrap());
        let answer = sign_in(&instance, id_token, None).await;
        assert_eq!(answer.outcome(), "created", "{access}: {answer:?}");
        let answer = sign_in(&instance, access_token, None).await;
        assert_eq!(
            (answer.status, &*answer.error()),
            (StatusCode::UNAUTHORIZED, "invalid_token"),
            "{access}"
        );
        let detail = answer.json()["detail"].to_string();
        assert!(
            detail.contains("access token") && detail.contains("send the id_token"),
            "{access}: {detail}"
        );
        let told = || instance.said().contains("access token").then_some(());
        eventually("the log tells of the access token", async || told()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_nonce_keeps_out_unmarked_access_tokens() {
    let Some(node) = node() else { return };
    let folder = folder("real-nonce");
    let database = Database::create().await;
    let options = Options {
        access: "nothing",
        ..Options::new("http://127.0.0.1")
    };
    let _provider = options.start(&node, &folder).await;
    let always = [("IDP_NONCE", "always")];
    let instance = instance(&folder, &database, &options.issuer(), &always)
        .started()
        .await;
    let tokens = tokens(&options.issuer(), "phone", "ada", Some(NONCE)).await;
    let [id_token, access_token] =
        ["id_token", "access_token"].map(|name| tokens[name].as_str().unwrap());
    assert_eq!(
        sign_in(&instance, id_token, Some(NONCE)).await.outcome(),
        "created"
    );
    for (token, nonce) in [
        (access_token, None),
        (access_token, Some(NONCE)),
        (id_token, None),
    ] {
        let answer = sign_in(&instance, token, nonce).await;
        assert_eq!(
            (answer.status, &*answer.error()),
            (StatusCode::UNAUTHORIZED, "nonce_mismatch"),
            "{answer:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_rotation_delays_sign_ins_but_refuses_none() {
    let Some(node) = node() else { return };
    let folder = folder("real-rotation");
    let database = Database::create().await;
    let options = Options::new("http://127.0.0.1");
    let mut provider = options.start(&node, &folder).await;
    let instance = instance(&folder, &database, &options.issuer(), &[])
        .started()
        .await;
    let id_token = async || {
        let tokens = tokens(&options.issuer(), "phone", "ada", None).await;
        tokens["id_token"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        sign_in(&instance, &id_token().await, None).await.outcome(),
        "created"
    );
    drop(provider);
    provider = options.start(&node, &folder).await;
    let answer = sign_in(&instance, &id_token().await, None).await;
    assert_eq!(
        answer.outcome(),
        "signed_in",
        "the first new key: {answer:?}"
    );
    drop(provider);
    let _provider = options.start(&node, &folder).await;
    let id_token = id_token().await;
    eventually("the second new key is known", async || {
        let answer = sign_in(&instance, &id_token, None).await;
        if answer.status == StatusCode::SERVICE_UNAVAILABLE {
            assert!(answer.header("Retry-After").is_some(), "{answer:?}");
            return None;
        }
        assert_eq!(answer.outcome(), "signed_in", "{answer:?}");
        Some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_sign_in_however_the_provider_has_the_service_authenticate() {
    let Some(node) = node() else { return };
    let folder = folder("real-staff");
    for authentication in ["client_secret_basic", "client_secret_post"] {
        let database = Database::create().await;
        let settings = [("IDP_CLIENT_ID", "staff"), ("IDP_CLIENT_SECRET", SECRET)];
        let instance = instance(&folder, &database, "http://127.0.0.1:1", &settings);
        let url = instance.url();
        let options = Options {
            authentication,
            ..Options::new(&url)
        };
        let _provider = options.start(&node, &folder).await;
        let instance = instance
            .with("IDP_ISSUER", &options.issuer())
            .started()
            .await;
        let said = instance.check();
        assert!(!said.contains("wrong "), "{authentication}: {said}");
        instance.appoint("ada@example.com");
        let (landed, mut browser) = staff(&url, "ada").await;
        assert_eq!(
            landed.header("location"),
            Some("/admin/users"),
            "{authentication}: {}",
            landed.text
        );
        assert_eq!(browser.get("/admin").await.status, 200);

        let instance = instance.with("IDP_CLIENT_SECRET", "another one");
        let said = instance.check();
        let wrong = said.lines().find(|line| line.starts_with("wrong "));
        assert!(
            wrong.is_some_and(|line| line.contains("IDP_CLIENT_SECRET")),
            "{authentication}: {said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_of_a_provider_that_introspects_no_id_token() {
    let Some(node) = node() else { return };
    let folder = folder("real-introspection");
    let database = Database::create().await;
    let options = Options::new("http://127.0.0.1");
    let _provider = options.start(&node, &folder).await;
    let settings = [
        ("IDP_CLIENT_ID", "staff"),
        ("IDP_CLIENT_SECRET", SECRET),
        ("IDP_VERIFY", "tokeninfo"),
    ];
    let instance = instance(&folder, &database, &options.issuer(), &settings);
    instance.prints(&["migrate"]);
    let said = instance.check();
    let wrong = said.lines().find(|line| line.starts_with("wrong "));
    assert!(
        wrong.is_some_and(|line| line.contains("IDP_VERIFY")),
        "{said}"
    );
}
