//! TLS at a proxy or at the service itself: cookies are `Secure`, and clients cannot forge their
//! address.

use std::fs;
use std::process::Command;

use reqwest::Client;
use serde_json::json;

use crate::deploy::phone;
use crate::deploy::site::{HOST, Site};
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::{Deployment, Vestibule};
use crate::programs::program;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::provider::Provider;
use crate::support::token;

/// The client's real address.
const HERE: &str = "127.0.0.99";
/// The address that it claims in a header.
const CLAIMED: &str = "203.0.113.7";

/// Settings for staff's sign-in.
const OF_STAFF: [(&str, &str); 3] = [
    ("IDP_CLIENT_SECRET", "hush"),
    (
        "IDP_AUTHORIZATION_URL",
        "https://provider.example/authorize",
    ),
    ("IDP_TOKEN_URL", "https://provider.example/token"),
];

/// Asserts the rules that hold wherever TLS ends.
async fn the_rules_hold(client: &Client, site: &Site, provider: &Provider) {
    nobody_is_somebody_else(client, &site.url(), provider).await;
    cookies_are_for_tls_only(client, &site.url()).await;
}

async fn nobody_is_somebody_else(client: &Client, url: &str, provider: &Provider) {
    for (number, header) in ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Request-Id"]
        .into_iter()
        .enumerate()
    {
        let token = provider.token(token::claims(
            &format!("subject-{number}"),
            "ada@example.com",
        ));
        let claimed = if header == "Forwarded" {
            format!("for={CLAIMED}")
        } else {
            CLAIMED.to_owned()
        };
        let request = phone::post(
            client,
            url,
            "/api/v1/auth/oauth/idp",
            &json!({ "id_token": token }),
        );
        let answer = request.header(header, claimed).send().await.unwrap();
        assert_ne!(answer.headers()["x-request-id"], CLAIMED, "{header}");
        let session = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(
            phone::address(client, url, &session).await,
            HERE,
            "{header}"
        );
    }
}

async fn cookies_are_for_tls_only(client: &Client, url: &str) {
    let begun = client
        .post(format!("{url}/admin/sign-in"))
        .send()
        .await
        .unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    for attribute in [
        "__Host-",
        "; Secure",
        "; HttpOnly",
        "; Path=/",
        "; SameSite=Lax",
    ] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    assert!(
        begun.headers()["location"]
            .to_str()
            .unwrap()
            .starts_with("https://provider.example/")
    );
}

/// Phones speak HTTP/2, which the tests' own client does not.
fn a_phone_signs_in_over_http_2(site: &Site, deployment: &Deployment) {
    let Some(curl) = program("curl", (7, 74)) else {
        return;
    };
    let ([known, _], at) = (site.write(&deployment.folder), site.address);
    let token = deployment
        .provider
        .token(token::claims("phone", "phone@example.com"));
    let mut command = Command::new(curl);
    command
        .env_clear()
        .args(["--silent", "--show-error", "--http2", "--cacert"])
        .arg(known);
    command.args(["--resolve", &format!("{HOST}:{}:{}", at.port(), at.ip())]);
    command.args(["--json", &json!({ "id_token": token }).to_string()]);
    command.args([
        "--output",
        "/dev/null",
        "--write-out",
        "HTTP/%{http_version} %{http_code}",
    ]);
    let output = command
        .arg(site.url() + "/api/v1/auth/oauth/idp")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "HTTP/2 201",
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_client_addresses_are_true_and_cookies_secure() {
    let deployment = Deployment::start_with("behind", &OF_STAFF).await;
    let Some(proxy) = deployment.haproxy(&[]).await else {
        return;
    };
    let client = proxy.site.client_at(HERE);
    the_rules_hold(&client, &proxy.site, &deployment.provider).await;
    a_phone_signs_in_over_http_2(&proxy.site, &deployment);
    // HAProxy's log has the address, the path and the response's request id, and no code.
    let callback = proxy.site.url() + "/admin/sign-in/callback?code=a-secret-code";
    let asked = client.get(callback).send().await.unwrap();
    let id = asked.headers()["x-request-id"].to_str().unwrap();
    let line = eventually("the request is logged", async || {
        let log = fs::read_to_string(deployment.folder.join("haproxy.log")).unwrap();
        log.lines()
            .find(|line| line.ends_with(id))
            .map(str::to_owned)
    })
    .await;
    assert!(
        line.contains(&format!("{HERE} 400 GET /admin/sign-in/callback ")),
        "{line}"
    );
    assert!(!line.contains("a-secret-code"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_it_is_the_same() {
    let deployment = Deployment::start_with("nginx", &OF_STAFF).await;
    let Some(proxy) = deployment.nginx(&[]).await else {
        return;
    };
    the_rules_hold(
        &proxy.site.client_at(HERE),
        &proxy.site,
        &deployment.provider,
    )
    .await;
    a_phone_signs_in_over_http_2(&proxy.site, &deployment);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_of_its_own_the_service_does_the_same() {
    let _alone = alone().await;
    let folder = folder("certificate");
    let database = Database::create().await;
    let provider = Provider::start().await;
    let instance =
        Vestibule::new(&folder, &database.url, &provider.tokeninfo_url()).with_all(&OF_STAFF);
    let site = Site::on(instance.port);
    let [certificate, key] = site.write(&folder);
    let tls = format!(
        "{{certs=\"{}\",key=\"{}\"}}",
        certificate.display(),
        key.display()
    );
    let mut instance = instance.with("ROCKET_TLS", &tls);
    instance.start();
    let client = site.client_at(HERE);
    eventually("it is ready", async || {
        client
            .get(site.url() + "/readyz")
            .send()
            .await
            .ok()?
            .error_for_status()
            .ok()
    })
    .await;
    the_rules_hold(&client, &site, &provider).await;
    assert!(
        reqwest::get(instance.url()).await.is_err(),
        "nothing is said in plain text"
    );
    instance.prints(&["health"]);
}
