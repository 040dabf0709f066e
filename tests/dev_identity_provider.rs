//! The development identity provider over real HTTP, as its clients see it.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use rocket::async_test;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;
use vestibule::dev::Error;
use vestibule::dev::identity_provider::IdentityProvider;
use vestibule::secret::Secret;

use crate::support::folder::{Folder, folder};
use crate::support::process::free_port;
use crate::support::staff_app::serve;

const CLIENT: &str = "development-client";
const SECRET: &str = "a secret: with % and + in it";
const BACK: &str = "http://127.0.0.1:3000/back?kept=yes";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn secret() -> Secret<String> {
    Secret::new(SECRET.into())
}

fn fresh() -> Arc<Folder> {
    Arc::new(folder(&Uuid::now_v7().to_string()))
}

/// A server that serves only the provider, until the test ends.
struct Server {
    port: u16,
    issuer: String,
    folder: Arc<Folder>,
    client: Client,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(fresh(), None).await
    }

    /// Starts a server on a port of its own. Its folder and its issuer may belong to another
    /// server.
    async fn start_with(folder: Arc<Folder>, issuer: Option<&str>) -> Self {
        let port = free_port();
        let issuer =
            issuer.map_or_else(|| format!("http://127.0.0.1:{port}/dev/idp"), str::to_owned);
        let provider =
            IdentityProvider::open(&folder, issuer.clone(), CLIENT.into(), secret()).unwrap();
        serve(provider, port).await;
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .build()
            .unwrap();
        Self {
            port,
            issuer,
            folder,
            client,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/dev/idp{path}", self.port)
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Response {
        self.client
            .get(self.url(path))
            .query(query)
            .send()
            .await
            .unwrap()
    }

    async fn minted(&self, query: &[(&str, &str)]) -> String {
        let response = self.get("/mint", query).await;
        assert_eq!(response.status(), StatusCode::OK);
        let token = response.text().await.unwrap();
        assert!(
            token.bytes().all(|byte| byte.is_ascii_graphic()),
            "nothing but the token: {token:?}"
        );
        token
    }

    async fn tokeninfo(&self, token: &str) -> (StatusCode, Value) {
        json(self.get("/tokeninfo", &[("id_token", token)]).await).await
    }

    /// Posts the page's form.
    async fn choose(&self, request: &[(&str, &str)], form: &[(&str, &str)]) -> Response {
        self.client
            .post(self.url("/authorize"))
            .query(request)
            .form(form)
            .send()
            .await
            .unwrap()
    }

    async fn code(&self) -> String {
        let chosen = self
            .choose(
                &REQUEST,
                &[("email", "ada@example.com"), ("verified", "true")],
            )
            .await;
        parameter(&location(&chosen), "code").unwrap()
    }

    async fn exchange(&self, form: &[(&str, &str)], secret: &str) -> (StatusCode, Value) {
        let encode =
            |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let request = self
            .client
            .post(self.url("/token"))
            .form(form)
            .basic_auth(CLIENT, Some(encode(secret)));
        json(request.send().await.unwrap()).await
    }
}

/// A valid authorization request.
const REQUEST: [(&str, &str); 8] = [
    ("response_type", "code"),
    ("client_id", CLIENT),
    ("redirect_uri", BACK),
    ("scope", "openid email"),
    ("state", "a state & more"),
    ("nonce", "a nonce"),
    ("code_challenge", CHALLENGE),
    ("code_challenge_method", "S256"),
];

/// The same with another value.
fn request_with<'a>(name: &str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    REQUEST
        .map(|(other, old)| (other, if other == name { value } else { old }))
        .to_vec()
}

/// A valid token request.
fn token_request(code: &str) -> [(&str, &str); 4] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
    ]
}

async fn json(response: Response) -> (StatusCode, Value) {
    assert_eq!(header(&response, "content-type"), "application/json");
    (
        response.status(),
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers()[name].to_str().unwrap()
}

fn location(response: &Response) -> Url {
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    Url::parse(header(response, "location")).unwrap()
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(other, _)| other == name)
        .map(|(_, value)| value.into_owned())
}

fn part(token: &str, index: usize) -> Value {
    serde_json::from_slice(
        &URL_SAFE_NO_PAD
            .decode(token.split('.').nth(index).unwrap())
            .unwrap(),
    )
    .unwrap()
}

/// A part of a token with another value for a member.
fn altered(token: &str, index: usize, member: &str, value: &str) -> String {
    let mut part = part(token, index);
    part[member] = value.into();
    URL_SAFE_NO_PAD.encode(part.to_string())
}

#[async_test]
async fn a_code_works_once_with_redirect_uri_verifier_and_client_secret() {
    let server = Server::start().await;
    let wrong = "x".repeat(43);
    for (index, value) in [
        (2, "http://127.0.0.1:3000/back"),
        (3, wrong.as_str()),
        (3, ""),
    ] {
        let code = server.code().await;
        let mut form = token_request(&code);
        form[index].1 = value;
        for form in [form, token_request(&code)] {
            let (status, error) = server.exchange(&form, SECRET).await;
            assert_eq!(
                (status, &error["error"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_grant"))
            );
        }
    }
    let code = server.code().await;
    let (status, error) = server.exchange(&token_request(&code), "wrong").await;
    assert_eq!(
        (status, &error["error"]),
        (StatusCode::UNAUTHORIZED, &json!("invalid_client"))
    );
    assert_eq!(
        server.exchange(&token_request(&code), SECRET).await.0,
        StatusCode::OK
    );
    assert_eq!(
        server.exchange(&token_request(&code), SECRET).await.1["error"],
        "invalid_grant"
    );
}

#[async_test]
async fn a_minted_token_is_what_was_asked_for() {
    let server = Server::start().await;
    let claims = part(&server.minted(&[("email", "Grace@Example.com")]).await, 1);
    assert_eq!(
        [&claims["email"], &claims["name"], &claims["aud"]],
        ["Grace@Example.com", "Grace", CLIENT]
    );
    assert_eq!(
        (claims["sub"].as_str().unwrap().len(), claims.get("nonce")),
        (21, None)
    );

    let request = [
        ("email", "a@example.com"),
        ("sub", "s"),
        ("name", "N"),
        ("verified", "false"),
        ("aud", "other"),
        ("nonce", "n"),
    ];
    let (_, claims) = server.tokeninfo(&server.minted(&request).await).await;
    assert!(
        claims.as_object().unwrap().values().all(Value::is_string),
        "as Google's: {claims}"
    );
    let names = ["sub", "name", "email_verified", "aud", "azp", "nonce"];
    assert_eq!(
        names.map(|name| &claims[name]),
        ["s", "N", "false", "other", "other", "n"]
    );

    let claims = part(&server.minted(&[("sub", "s")]).await, 1);
    assert_eq!(
        (claims.get("email"), claims.get("email_verified")),
        (None, None)
    );

    let of = async |email| part(&server.minted(&[("email", email)]).await, 1);
    let ada = of("ada@example.com").await;
    let same = of("Ada@Example.COM").await;
    let grace = of("grace@example.com").await;
    assert!(
        ada["sub"] == same["sub"] && ada["sub"] != grace["sub"],
        "{ada} {same} {grace}"
    );
    assert!(
        ada["sub"]
            .as_str()
            .unwrap()
            .bytes()
            .all(|byte| byte.is_ascii_digit()),
        "{ada}"
    );
    assert_eq!(
        of("ada.king_lovelace+test@example.com").await["name"],
        "Ada King Lovelace"
    );
    assert_eq!(of("élodie@example.com").await["name"], "Élodie");
    assert_eq!(of("+@example.com").await.get("name"), None);
}

#[async_test]
async fn mint_says_what_is_wrong_in_one_line_of_text() {
    let server = Server::start().await;
    let long = "1".repeat(256);
    for (query, named) in [
        (&[][..], "`email`"),
        (&[("email", "")], "`email`"),
        (&[("email", "a b")], "`email`"),
        (&[("email", "a@example.com"), ("sub", "a\tb")], "`sub`"),
        (&[("sub", &long)], "`sub`"),
        (
            &[("email", "a@example.com"), ("verified", "yes")],
            "`verified`",
        ),
        (
            &[("email", "a@example.com"), ("verifeid", "false")],
            "`verifeid`",
        ),
    ] {
        let response = server.get("/mint", query).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert!(header(&response, "content-type").starts_with("text/plain"));
        let text = response.text().await.unwrap();
        assert!(text.contains(named) && text.lines().count() == 1, "{text}");
    }
}

#[async_test]
async fn tokeninfo_rejects_tokens_that_are_foreign_altered_or_expired() {
    let server = Server::start().await;
    let foreign = Server::start_with(fresh(), Some(&server.issuer)).await;
    let elsewhere = Server::start_with(server.folder.clone(), None).await;
    let ada = [("email", "ada@example.com")];
    let token = server.minted(&ada).await;
    let [header, claims, signature] = *token.split('.').collect::<Vec<_>>() else {
        panic!("{token}")
    };
    let unsigned = altered(&token, 0, "alg", "none");
    let foreign_token = foreign.minted(&ada).await;
    let foreign_signature = foreign_token.rsplit_once('.').unwrap().1;
    for (what, text) in [
        (
            "expired",
            server
                .minted(&[("email", "ada@example.com"), ("expired", "true")])
                .await,
        ),
        (
            "tampered with",
            format!(
                "{header}.{}.{signature}",
                altered(&token, 1, "sub", "admin")
            ),
        ),
        ("unsigned", format!("{unsigned}.{claims}.")),
        (
            "unsigned with a signature",
            format!("{unsigned}.{claims}.{signature}"),
        ),
        (
            "with another algorithm",
            format!(
                "{}.{claims}.{signature}",
                altered(&token, 0, "alg", "HS256")
            ),
        ),
        ("without its signature", format!("{header}.{claims}.")),
        ("by a foreign key", foreign_token.clone()),
        (
            "with a foreign signature",
            format!("{header}.{claims}.{foreign_signature}"),
        ),
        (
            "of another issuer with the same key",
            elsewhere.minted(&ada).await,
        ),
        ("no token", "abc".into()),
    ] {
        let (status, error) = server.tokeninfo(&text).await;
        assert_eq!(
            (status, &error["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_token")),
            "{what}"
        );
    }
    assert_eq!(server.tokeninfo(&token).await.0, StatusCode::OK);
}

#[async_test]
async fn the_key_survives_a_restart_in_a_file_of_its_owners() {
    let first = Server::start().await;
    let folder = first.folder.clone();
    let (_, jwks) = json(first.get("/jwks.json", &[]).await).await;
    let second = Server::start_with(folder.clone(), Some(&first.issuer)).await;
    assert_eq!(json(second.get("/jwks.json", &[]).await).await.1, jwks);
    let token = first.minted(&[("email", "ada@example.com")]).await;
    assert_eq!(second.tokeninfo(&token).await.0, StatusCode::OK);

    let files: Vec<_> = std::fs::read_dir(&**folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = &files[..] else {
        panic!("one file is expected, not {files:?}")
    };
    assert_eq!(
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    std::fs::write(file, "something else").unwrap();
    let opened = IdentityProvider::open(&folder, String::new(), String::new(), secret());
    assert!(matches!(opened, Err(Error::Key(path)) if path == *file));
    assert_eq!(
        std::fs::read(file).unwrap(),
        b"something else",
        "it is not overwritten"
    );
}

#[async_test]
async fn a_bad_authorization_request_gets_an_error_page_without_redirect() {
    let server = Server::start().await;
    let mut requests: Vec<_> = [
        ("response_type", "token"),
        ("client_id", "another"),
        ("redirect_uri", "https://example.com/"),
        ("redirect_uri", "http://127.0.0.1.example.com/"),
        ("redirect_uri", "http://127.0.0.1@example.com/"),
        ("redirect_uri", "http://user@127.0.0.1/"),
        ("redirect_uri", "http://127.0.0.1/#"),
        ("redirect_uri", "http://0.0.0.0/"),
        ("redirect_uri", "http://[::ffff:192.0.2.1]/"),
        ("redirect_uri", "app://127.0.0.1/"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", "/back"),
        ("scope", "email openidx"),
        ("code_challenge_method", "plain"),
    ]
    .map(|(name, value)| (name, request_with(name, value)))
    .into();
    for (index, (name, _)) in REQUEST.iter().enumerate() {
        requests.push((name, [&REQUEST[..index], &REQUEST[index + 1..]].concat()));
    }
    for (name, request) in requests {
        let chosen = server
            .choose(&request, &[("email", "ada@example.com")])
            .await;
        for response in [server.get("/authorize", &request).await, chosen] {
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{request:?}");
            assert_eq!(response.headers().get("location"), None, "{request:?}");
            let page = response.text().await.unwrap();
            assert!(
                page.contains("This request is refused") && page.contains(&format!("`{name}`")),
                "{page}"
            );
        }
    }
    for uri in ["https://localhost/", "http://[::1]:1/", "http://127.1.2.3/"] {
        let page = server
            .get("/authorize", &request_with("redirect_uri", uri))
            .await;
        assert_eq!(page.status(), StatusCode::OK, "{uri}");
    }
}

#[async_test]
async fn a_bad_form_is_shown_again_and_cancelling_redirects_back() {
    let server = Server::start().await;
    for form in [
        [("name", "Ada Kept"), ("email", "")],
        [("name", "Ada Kept"), ("email", "no address")],
    ] {
        let response = server.choose(&REQUEST, &form).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let page = response.text().await.unwrap();
        assert!(
            page.contains("role=\"alert\"") && page.contains("value=\"Ada Kept\""),
            "{page}"
        );
        assert!(!page.contains(" checked>"), "{page}");
    }
    let back = location(&server.choose(&REQUEST, &[("cancel", "true")]).await);
    let answered = ["error", "state", "iss", "code"].map(|name| parameter(&back, name));
    assert_eq!(
        answered.each_ref().map(Option::as_deref),
        [
            Some("access_denied"),
            Some("a state & more"),
            Some(server.issuer.as_str()),
            None
        ]
    );
}
