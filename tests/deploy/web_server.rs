//! A web server that signs its users in (docs/web.md): the proxies believe who it says they are, and nobody
//! else who says so.

use std::sync::Arc;

use reqwest::Client;
use serde_json::json;

use crate::deploy::haproxy::HaProxy;
use crate::deploy::nginx::Nginx;
use crate::deploy::phone;
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;
use crate::support::provider::Provider;
use crate::support::token;

/// Where the web server is, and where somebody else is.
const WEB_SERVER: &str = "127.0.0.98";
const ELSEWHERE: &str = "127.0.0.99";

/// Whoever asks, what they say, and whom the service takes them for.
const CASES: [(&str, Option<&str>, &str); 5] = [
    (WEB_SERVER, Some("203.0.113.7"), "203.0.113.7"),
    (WEB_SERVER, Some("198.51.100.1, 203.0.113.7"), "203.0.113.7"),
    (WEB_SERVER, Some("2001:db8::7"), "2001:db8::7"),
    (WEB_SERVER, None, WEB_SERVER),
    (ELSEWHERE, Some("203.0.113.7"), ELSEWHERE),
];

async fn users_are_who_the_web_server_says(client: impl Fn(&str) -> Client, url: &str, provider: &Provider) {
    for (number, (from, said, expected)) in CASES.into_iter().enumerate() {
        let (client, token) = (client(from), token::opaque());
        provider.accept(&token, token::claims(&format!("subject-{number}"), "ada@example.com"));
        let body = json!({ "id_token": token });
        let request = phone::post(&client, url, "/api/v1/auth/oauth/idp", &body);
        let request = said.into_iter().fold(request, |request, said| request.header("X-Forwarded-For", said));
        let session = phone::ask(request, "sign-in").await.unwrap();
        let sessions = phone::read(&client, url, &session, "/api/v1/me/sessions").await.unwrap();
        let current = sessions["sessions"].as_array().unwrap().iter().find(|s| s["current"] == true).unwrap();
        assert_eq!(current["ip"], expected, "{from} says {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_server_names_its_users_through_the_proxies_and_nobody_else_does() {
    let _alone = alone().await;
    let (folder, database) = (folder("web-server"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let instances = Vestibule::two(&folder, &database.url, &provider).await;
    let instances = [&instances[0], &instances[1]];
    // As the files say how.
    let condition = "    #     unless { src 10.0.0.30 } { req.hdr(X-Forwarded-For) -m found }\n";
    let set = "set-header X-Forwarded-For %[src]";
    let believing = format!(
        "{set} {}",
        condition.trim_start_matches([' ', '#']).trim_end().replace("10.0.0.30", WEB_SERVER)
    );
    if let Some(proxy) = HaProxy::start_with(&folder, &instances, &[(condition, ""), (set, &believing)]) {
        proxy.sees(2).await;
        let client = |from: &str| proxy.client().local_address(from.parse().ok()).build().unwrap();
        users_are_who_the_web_server_says(client, &proxy.url(), &provider).await;
    }
    let believing = format!("set_real_ip_from {WEB_SERVER};");
    let changes = [
        ("# set_real_ip_from 10.0.0.30;", &*believing),
        ("# real_ip_header X-Forwarded-For;", "real_ip_header X-Forwarded-For;"),
    ];
    if let Some(proxy) = Nginx::start_with(&folder, &instances, &changes).await {
        let client = |from: &str| {
            proxy.certificate.client(proxy.address).local_address(from.parse().ok()).build().unwrap()
        };
        users_are_who_the_web_server_says(client, &proxy.url(), &provider).await;
    }
}
