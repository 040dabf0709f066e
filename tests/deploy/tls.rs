//! Whoever ends TLS, a proxy or the service itself: cookies are for TLS only, and nobody is somebody else.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use reqwest::Client;
use serde_json::json;

use crate::deploy::certificate::{Certificate, HOST};
use crate::deploy::haproxy::HaProxy;
use crate::deploy::nginx::Nginx;
use crate::deploy::phone;
use crate::deploy::tools::{Folder, alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::provider::Provider;
use crate::support::token;

/// Where the client really is.
const HERE: &str = "127.0.0.99";
/// What it says in a header.
const CLAIMED: &str = "203.0.113.7";

fn instance(folder: &Folder, database: &Database, provider: &Provider) -> Vestibule {
    Vestibule::new(folder, &database.url, &provider.tokeninfo_url())
        .with("IDP_CLIENT_SECRET", "hush")
        .with("IDP_AUTHORIZATION_URL", "https://provider.example/authorize")
        .with("IDP_TOKEN_URL", "https://provider.example/token")
}

/// What is the same for both.
async fn nobody_is_somebody_else(client: &Client, url: &str, provider: &Provider) {
    for (number, header) in
        ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Request-Id"].into_iter().enumerate()
    {
        let token = token::opaque();
        provider.accept(&token, token::claims(&format!("subject-{number}"), "ada@example.com"));
        let claimed = if header == "Forwarded" { format!("for={CLAIMED}") } else { CLAIMED.to_owned() };
        let request = client
            .post(format!("{url}/api/v1/auth/oauth/idp"))
            .header("Content-Type", "application/json")
            .header(header, claimed)
            .body(json!({ "id_token": token }).to_string());
        let answer = request.send().await.unwrap();
        assert_ne!(answer.headers()["x-request-id"], CLAIMED, "{header}");
        let session = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let sessions = phone::read(client, url, &session, "/api/v1/me/sessions").await.unwrap();
        let current = sessions["sessions"].as_array().unwrap().iter().find(|s| s["current"] == true).unwrap();
        assert_eq!(current["ip"], HERE, "{header}: {sessions}");
    }
}

async fn cookies_are_for_tls_only(client: &Client, url: &str) {
    let begun = client.post(format!("{url}/admin/sign-in")).send().await.unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    for attribute in ["__Host-", "; Secure", "; HttpOnly", "; Path=/", "; SameSite=Lax"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    assert!(begun.headers()["location"].to_str().unwrap().starts_with("https://provider.example/"));
}

/// Phones speak HTTP/2, which the tests' own client does not.
fn a_phone_signs_in_over_http_2(
    folder: &Folder,
    certificate: &Certificate,
    at: SocketAddr,
    provider: &Provider,
) {
    let Some(curl) = program("curl", (7, 74)) else { return };
    let (known, token) = (folder.join("known.pem"), token::opaque());
    fs::write(&known, &certificate.text).unwrap();
    provider.accept(&token, token::claims("phone", "phone@example.com"));
    let mut command = Command::new(curl);
    command.env_clear().args(["--silent", "--show-error", "--http2", "--cacert"]).arg(known);
    command.args(["--resolve", &format!("{HOST}:{}:{}", at.port(), at.ip())]);
    command.args(["--json", &json!({ "id_token": token }).to_string()]);
    command.args(["--output", "/dev/null", "--write-out", "HTTP/%{http_version} %{http_code}"]);
    let output = command.arg(format!("https://{HOST}:{}/api/v1/auth/oauth/idp", at.port())).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "HTTP/2 201", "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_nobody_is_somebody_else_and_cookies_are_for_tls_only() {
    let _alone = alone().await;
    let (folder, database) = (folder("behind"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let instance =
        || instance(&folder, &database, &provider).with("ROCKET_TRUSTED_PROXIES", "127.0.0.1").started();
    let instances = [instance().await, instance().await];
    let Some(proxy) = HaProxy::start(&folder, &[&instances[0], &instances[1]]) else { return };
    proxy.sees(2).await;
    let client = proxy.client().local_address(HERE.parse().ok()).build().unwrap();
    nobody_is_somebody_else(&client, &proxy.url(), &provider).await;
    cookies_are_for_tls_only(&client, &proxy.url()).await;
    a_phone_signs_in_over_http_2(&folder, &proxy.certificate, proxy.address, &provider);
    // Its log says who asked for what, by the id that the answer has, and no code.
    let asked = client
        .get(format!("{}/admin/sign-in/callback?code=a-secret-code", proxy.url()))
        .send()
        .await
        .unwrap();
    let id = asked.headers()["x-request-id"].to_str().unwrap();
    let line = eventually("the request is logged", async || {
        let log = fs::read_to_string(folder.join("haproxy.log")).unwrap();
        log.lines().find(|line| line.ends_with(id)).map(str::to_owned)
    })
    .await;
    assert!(line.contains(&format!("{HERE} 400 GET /admin/sign-in/callback ")), "{line}");
    assert!(!line.contains("a-secret-code"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_it_is_the_same() {
    let _alone = alone().await;
    let (folder, database) = (folder("nginx"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let instance =
        || instance(&folder, &database, &provider).with("ROCKET_TRUSTED_PROXIES", "127.0.0.1").started();
    let instances = [instance().await, instance().await];
    let Some(proxy) = Nginx::start(&folder, &[&instances[0], &instances[1]]).await else { return };
    let client = proxy.certificate.client(proxy.address).local_address(HERE.parse().ok()).build().unwrap();
    nobody_is_somebody_else(&client, &proxy.url(), &provider).await;
    cookies_are_for_tls_only(&client, &proxy.url()).await;
    a_phone_signs_in_over_http_2(&folder, &proxy.certificate, proxy.address, &provider);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_of_its_own_the_service_does_the_same() {
    let _alone = alone().await;
    let (folder, database) = (folder("certificate"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let certificate = Certificate::new();
    let [text, key] =
        [("certificate.pem", &certificate.text), ("key.pem", &certificate.key)].map(|(name, content)| {
            let file = folder.join(name);
            fs::write(&file, content).unwrap();
            file
        });
    let tls = format!("{{certs=\"{}\",key=\"{}\"}}", text.display(), key.display());
    let mut instance = instance(&folder, &database, &provider).with("ROCKET_TLS", &tls);
    instance.start();
    let address = SocketAddr::from(([127, 0, 0, 1], instance.port));
    let url = format!("https://{HOST}:{}", address.port());
    let client = certificate.client(address).local_address(HERE.parse().ok()).build().unwrap();
    eventually("it is ready", async || {
        client.get(format!("{url}/readyz")).send().await.ok()?.error_for_status().ok()
    })
    .await;
    nobody_is_somebody_else(&client, &url, &provider).await;
    cookies_are_for_tls_only(&client, &url).await;
    assert!(reqwest::get(instance.url()).await.is_err(), "nothing is said in plain text");
    let health = instance.run(&["health"]);
    assert!(health.status.success(), "{}", String::from_utf8_lossy(&health.stderr));
}
