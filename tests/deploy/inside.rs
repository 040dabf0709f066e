//! Paths that the proxies hide from the outside, and the isolation of HAProxy, should an attacker
//! take it over.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use reqwest::Client;
use reqwest::redirect::Policy;
use rustix::process::geteuid;
use serde_json::Value;

use crate::deploy::site::Site;
use crate::deploy::tools::{Running, folder, shipped};
use crate::deploy::vestibule::Deployment;
use crate::programs::program;
use crate::support::process::{eventually, free_port};

/// Addresses of staff, of the product's backend, and of other clients.
const STAFF: &str = "127.0.0.97";
const BACKEND: &str = "127.0.0.98";
const OUTSIDE: &str = "127.0.0.99";

async fn asked(client: &Client, url: &str, path: &str) -> u16 {
    client
        .get(format!("{url}{path}"))
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

/// Compares responses through a proxy, to clients at these addresses, with the responses of an
/// instance.
async fn paths_are_for_whom_they_are(site: &Site, instance: &str) {
    let proxy = &site.url();
    let [staff, backend, outside] = [STAFF, BACKEND, OUTSIDE].map(|from| site.client_at(from));
    let all = [&staff, &backend, &outside];
    for (path, number) in [
        ("/admin", 0),
        ("/admin/users?q=ada", 0),
        ("/admin/sign-in", 0),
        ("/api/v1/admin/users", 1),
        ("/api/v1/admin/events?limit=1", 1),
    ] {
        for (other, client) in all.into_iter().enumerate() {
            let expected = if other == number {
                asked(client, instance, path).await
            } else {
                403
            };
            assert_eq!(
                asked(client, proxy, path).await,
                expected,
                "{path}, {other}"
            );
        }
    }
    // The service knows no paths that only resemble these. nginx normalizes them.
    for path in [
        "/%61dmin/sign-in",
        "//admin/sign-in",
        "/x/../admin/sign-in",
        "/ADMIN/sign-in",
    ] {
        let status = asked(&outside, proxy, path).await;
        assert!([403, 404].contains(&status), "{path}: {status}");
    }
    for client in all {
        for path in ["/api/v1/me", "/livez", "/.well-known/jwks.json"] {
            assert_eq!(
                asked(client, proxy, path).await,
                asked(client, instance, path).await,
                "{path}"
            );
        }
        for path in ["/metrics", "/metrics?x", "/readyz"] {
            assert_eq!(asked(client, proxy, path).await, 404, "{path}");
            assert_eq!(asked(client, instance, path).await, 200, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_restrict_admin_pages_and_api_by_network_and_hide_metrics() {
    let [staff, backends] = [
        format!("staff src {STAFF}"),
        format!("backends src {BACKEND}"),
    ];
    let haproxy = [
        ("staff src 127.0.0.0/8", &*staff),
        ("backends src 127.0.0.0/8", &*backends),
    ];
    let [staff, backends] = [STAFF, BACKEND].map(|address| format!("allow {address};"));
    let nginx = [
        ("allow 127.0.0.0/8; # backends", &*backends),
        ("allow 127.0.0.0/8;", &*staff),
    ];
    Deployment::through_each_proxy("inside", [&haproxy, &nginx], async |site, deployment| {
        paths_are_for_whom_they_are(site, &deployment.instances[0].url()).await;
    })
    .await;
}

/// Posts as many bytes as a route accepts, and then one byte more.
async fn bodies_are_as_long_as_the_service_reads(site: &Site, _: &Deployment) {
    let client = site.client().build().unwrap();
    let proxy = site.url();
    for (path, most) in [
        ("/api/v1/auth/refresh", 64 << 10),
        ("/api/v1/providers/idp/events", 256 << 10),
    ] {
        for (length, too_large) in [(most, false), (most + 1, true)] {
            // A client that still sends when the proxy closes may miss the response.
            let answer = eventually("an answer", async || {
                let request = client
                    .post(format!("{proxy}{path}"))
                    .body(" ".repeat(length));
                request
                    .header("Content-Type", "application/json")
                    .send()
                    .await
                    .ok()
            })
            .await;
            let status = answer.status().as_u16();
            let body = answer.text().await.unwrap();
            assert_eq!(
                status == 413,
                too_large,
                "{path}, {length}: {status} {body}"
            );
            let problem: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(
                problem["error"] == "payload_too_large",
                too_large,
                "{problem}"
            );
            assert_eq!(
                problem["request_id"].as_str().map(str::is_empty),
                Some(false),
                "{problem}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_refuse_only_bodies_too_large_for_the_service() {
    Deployment::through_each_proxy("large", [&[]; 2], bodies_are_as_long_as_the_service_reads)
        .await;
}

/// Requests compressible responses, with and without a secret.
async fn only_what_has_no_secret_is_compressed(site: &Site, _: &Deployment) {
    let client = site.client().build().unwrap();
    let proxy = site.url();
    for (path, compressed) in [
        ("/admin/admin.css", true),
        ("/admin/admin.js", true),
        ("/admin/icons.svg", true),
        ("/api/v1/docs/swagger-ui-bundle.js", true),
        ("/admin/sign-in?next=/admin/users%3Fq=ada", false),
        ("/api/v1/docs", false),
        ("/api/v1/openapi.json", false),
        ("/problems", false),
    ] {
        let answer = client
            .get(format!("{proxy}{path}"))
            .header("Accept-Encoding", "gzip")
            .send()
            .await
            .unwrap();
        let encoding = answer
            .headers()
            .get("content-encoding")
            .map(|value| value.to_str().unwrap());
        assert_eq!(
            (answer.status().as_u16(), encoding),
            (200, compressed.then_some("gzip")),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxies_compress_styles_scripts_and_icons_and_no_page() {
    Deployment::through_each_proxy(
        "compressed",
        [&[]; 2],
        only_what_has_no_secret_is_compressed,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_redirects_to_tls_and_logs_request_ids_without_queries() {
    let deployment = Deployment::start("inside-log").await;
    let Some(proxy) = deployment.nginx(&[]).await else {
        return;
    };
    let path = "/admin/sign-in/callback?code=hush";
    let plain = Client::builder().redirect(Policy::none()).build().unwrap();
    let answer = plain
        .get(format!("http://{}{path}", proxy.plain))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 308);
    assert_eq!(
        answer.headers()["location"],
        format!("https://127.0.0.1{path}")
    );
    let client = proxy.site.client().build().unwrap();
    let answer = client
        .get(format!("{}{path}", proxy.site.url()))
        .send()
        .await
        .unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap();
    let line = eventually("the request is in the log", async || {
        fs::read_to_string(&proxy.requests)
            .ok()
            .filter(|lines| lines.contains(id))
    })
    .await;
    assert!(
        line.contains("GET /admin/sign-in/callback ") && !line.contains("hush"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_serves_as_its_own_user_in_an_empty_folder() {
    let Some(haproxy) = program("haproxy", (2, 6)) else {
        return;
    };
    let folder = folder("user");
    let port = format!("bind 127.0.0.1:{}", free_port());
    let database = shipped("patroni/haproxy.cfg", &[("bind 127.0.0.1:5432", &port)]);
    let file = folder.join("haproxy.cfg");
    fs::write(&file, database).unwrap();
    let checked = Command::new(&haproxy)
        .args(["-c", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    if !geteuid().is_root() {
        return;
    }
    let web = shipped("haproxy.cfg", &[]);
    let lines = "    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n";
    assert!(web.contains(lines), "both have the same");
    let running = Running::start(&haproxy, &folder.join("haproxy.log"), |command| {
        command.args(["-db", "-f"]).arg(&file);
    });
    let process = format!("/proc/{}", running.id());
    eventually(
        "it is nobody special, and sees an empty folder",
        async || {
            let root = fs::read_link(format!("{process}/root")).ok()?;
            let user = fs::metadata(&process).ok()?.uid();
            (root.to_str() == Some("/var/lib/haproxy") && user != 0).then_some(())
        },
    )
    .await;
}
