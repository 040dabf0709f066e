//! A web server that signs its users in (docs/web.md). The proxies accept its users' addresses in
//! `X-Forwarded-For`, and ignore the header from other clients.

use serde_json::json;

use crate::deploy::phone;
use crate::deploy::site::Site;
use crate::deploy::vestibule::Deployment;
use crate::support::provider::Provider;
use crate::support::token;

/// Addresses of the web server and of another client.
const WEB_SERVER: &str = "127.0.0.98";
const ELSEWHERE: &str = "127.0.0.99";

/// Address of a client, its `X-Forwarded-For`, and the address that the service records.
const CASES: [(&str, Option<&str>, &str); 5] = [
    (WEB_SERVER, Some("203.0.113.7"), "203.0.113.7"),
    (WEB_SERVER, Some("198.51.100.1, 203.0.113.7"), "203.0.113.7"),
    (WEB_SERVER, Some("2001:db8::7"), "2001:db8::7"),
    (WEB_SERVER, None, WEB_SERVER),
    (ELSEWHERE, Some("203.0.113.7"), ELSEWHERE),
];

async fn users_are_who_the_web_server_says(site: &Site, provider: &Provider) {
    for (number, (from, said, expected)) in CASES.into_iter().enumerate() {
        let client = site.client_at(from);
        let url = &site.url();
        let claims = token::claims(&format!("subject-{number}"), "ada@example.com");
        let body = json!({ "id_token": provider.token(claims) });
        let request = phone::post(&client, url, "/api/v1/auth/oauth/idp", &body);
        let request = said.into_iter().fold(request, |request, said| {
            request.header("X-Forwarded-For", said)
        });
        let session = phone::ask(request, "sign-in").await.unwrap();
        assert_eq!(
            phone::address(&client, url, &session).await,
            expected,
            "{from} says {said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_web_server_may_forward_client_addresses_through_proxies() {
    // The changes that comments in the shipped files describe.
    let condition = "    #     unless { src 10.0.0.30 } { req.hdr(X-Forwarded-For) -m found }\n";
    let set = "set-header X-Forwarded-For %[src]";
    let believing = format!(
        "{set} {}",
        condition
            .trim_start_matches([' ', '#'])
            .trim_end()
            .replace("10.0.0.30", WEB_SERVER)
    );
    let haproxy = [(condition, ""), (set, &*believing)];
    let believing = format!("set_real_ip_from {WEB_SERVER};");
    let nginx = [
        ("# set_real_ip_from 10.0.0.30;", &*believing),
        (
            "# real_ip_header X-Forwarded-For;",
            "real_ip_header X-Forwarded-For;",
        ),
    ];
    Deployment::through_each_proxy(
        "web-server",
        [&haproxy, &nginx],
        async |site, deployment| {
            users_are_who_the_web_server_says(site, &deployment.provider).await;
        },
    )
    .await;
}
