//! The development identity provider over real HTTP, as its clients see it.
#![cfg(all(feature = "dev", debug_assertions))]

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA256;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rocket::fairing::AdHoc;
use rocket::figment::Figment;
use rocket::{Config, Shutdown, async_test};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;
use uuid::Uuid;
use vestibule::dev::identity_provider::{Error, IdentityProvider, remote};
use vestibule::secret::Secret;
use vestibule::web::templates;

const CLIENT: &str = "development-client";
const SECRET: &str = "a secret: with % and + in it";
const BACK: &str = "http://127.0.0.1:3000/back?kept=yes";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("vestibule-test-{}", Uuid::new_v4().simple())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server with nothing but the provider.
struct Server {
    port: u16,
    issuer: String,
    client: Client,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(folder: &Path) -> Self {
        Self::start_as(folder, None).await
    }

    /// A server on a port of its own, whose issuer may be that of another.
    async fn start_as(folder: &Path, issuer: Option<String>) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = format!("http://127.0.0.1:{port}/dev/idp");
        let issuer = issuer.unwrap_or(own);
        let provider =
            IdentityProvider::open(folder, issuer.clone(), CLIENT.into(), Secret::new(SECRET.into()))
                .unwrap();
        let mut config = Config { port, log_level: rocket::config::LogLevel::Off, ..Config::debug_default() };
        config.shutdown.ctrlc = false;
        (config.shutdown.grace, config.shutdown.mercy) = (0, 0);
        let (tell, started) = oneshot::channel();
        // A place without templates of its own: the fairing brings them.
        let figment = Figment::from(config).merge(("template_dir", std::env::current_exe().unwrap()));
        let rocket = rocket::custom(figment)
            .attach(templates::fairing())
            .attach(AdHoc::on_liftoff("started", |_| Box::pin(async { tell.send(()).unwrap() })));
        let rocket = provider.mount(rocket).ignite().await.unwrap();
        let shutdown = rocket.shutdown();
        let task = tokio::spawn(async { drop(rocket.launch().await.unwrap()) });
        started.await.unwrap();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Self { port, issuer, client, shutdown, task }
    }

    async fn stop(self) {
        drop(self.client);
        self.shutdown.notify();
        self.task.await.unwrap();
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/dev/idp{path}", self.port)
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Response {
        self.client.get(self.url(path)).query(query).send().await.unwrap()
    }

    fn post(&self, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        self.client.post(self.url(path)).form(form)
    }

    async fn minted(&self, query: &[(&str, &str)]) -> String {
        let response = self.get("/mint", query).await;
        assert_eq!(response.status(), StatusCode::OK);
        let text = response.text().await.unwrap();
        text.strip_suffix('\n').unwrap().to_owned()
    }

    async fn tokeninfo(&self, token: &str) -> (StatusCode, Value) {
        answer(self.get("/tokeninfo", &[("id_token", token)]).await).await
    }

    async fn code(&self, request: &[(&str, &str)]) -> String {
        let form = [request, &[("email", "ada@example.com"), ("verified", "true")]].concat();
        let response = self.post("/authorize", &form).send().await.unwrap();
        parameter(&location(&response), "code").unwrap()
    }

    async fn exchange(&self, code: &str, verifier: &str) -> (StatusCode, Value) {
        let form = [&exchange(code)[..], &[("code_verifier", verifier)]].concat();
        answer(self.post("/token", &form).send().await.unwrap()).await
    }
}

/// A sound authorization request.
fn request() -> Vec<(&'static str, &'static str)> {
    vec![
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", BACK),
        ("scope", "openid email"),
        ("state", "a state & more"),
        ("nonce", "a nonce"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ]
}

/// The same with another value, or without the parameter.
fn request_with<'a>(name: &'a str, value: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let others = request().into_iter().filter(|(other, _)| *other != name);
    others.chain(value.map(|value| (name, value))).collect()
}

/// A sound request for a token, but for the verifier.
fn exchange(code: &str) -> [(&str, &str); 5] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", BACK),
        ("client_id", CLIENT),
        ("client_secret", SECRET),
    ]
}

async fn answer(response: Response) -> (StatusCode, Value) {
    assert_eq!(header(&response, "content-type"), "application/json");
    (response.status(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers()[name].to_str().unwrap()
}

fn location(response: &Response) -> Url {
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    Url::parse(header(response, "location")).unwrap()
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut values =
        url.query_pairs().filter(|(other, _)| other == name).map(|(_, value)| value.into_owned());
    let value = values.next();
    assert_eq!(values.next(), None, "{name} is there once");
    value
}

fn invalid_token() -> (StatusCode, Value) {
    (StatusCode::BAD_REQUEST, json!({"error": "invalid_token", "error_description": "Invalid Value"}))
}

fn part(token: &str, index: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap()).unwrap()).unwrap()
}

fn encoded(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

#[async_test]
async fn a_client_gets_from_discovery_to_a_verified_token_with_pkce() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;

    let (_, metadata) = answer(server.get("/.well-known/openid-configuration", &[]).await).await;
    let endpoint = |name: &str| metadata[name].as_str().unwrap().to_owned();
    assert_eq!(endpoint("issuer"), server.issuer);
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));

    let page = server.client.get(endpoint("authorization_endpoint")).query(&request()).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(header(&page, "content-type").starts_with("text/html"));
    let page = page.text().await.unwrap();
    let action = page.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    let action = action.replace("&amp;", "&").replace("&#x2F;", "/").replace("&#x27;", "'");

    // What a browser sends when the first button is pressed.
    let form = server.client.post(format!("http://127.0.0.1:{}{action}", server.port));
    let redirect = form.form(&[("pick", "ada@example.com")]).send().await.unwrap();
    let back = location(&redirect);
    assert!(back.as_str().starts_with(BACK));
    assert_eq!(parameter(&back, "state").unwrap(), "a state & more");
    assert_eq!(parameter(&back, "iss").unwrap(), server.issuer);

    let code = parameter(&back, "code").unwrap();
    let form = [&exchange(&code)[..], &[("code_verifier", VERIFIER)]].concat();
    let response = server.client.post(endpoint("token_endpoint")).form(&form).send().await.unwrap();
    assert_eq!(header(&response, "cache-control"), "no-store");
    let (status, tokens) = answer(response).await;
    assert_eq!((status, &tokens["token_type"]), (StatusCode::OK, &json!("Bearer")));
    let token = tokens["id_token"].as_str().unwrap();

    // Anyone can verify it with the published key alone.
    let (_, jwks) = answer(server.client.get(endpoint("jwks_uri")).send().await.unwrap()).await;
    let [n, e] =
        ["n", "e"].map(|name| URL_SAFE_NO_PAD.decode(jwks["keys"][0][name].as_str().unwrap()).unwrap());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let key = PublicKeyComponents { n, e };
    key.verify(&RSA_PKCS1_2048_8192_SHA256, message.as_bytes(), &signature).unwrap();
    assert_eq!(part(token, 0), json!({"alg": "RS256", "kid": jwks["keys"][0]["kid"], "typ": "JWT"}));
    assert_eq!(part(token, 1)["email_verified"], json!(true));

    let url = endpoint("tokeninfo_endpoint");
    let (status, claims) =
        answer(server.client.get(url).query(&[("id_token", token)]).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(claims.as_object().unwrap().values().all(Value::is_string), "{claims}");
    for (name, value) in [
        ("iss", server.issuer.as_str()),
        ("aud", CLIENT),
        ("azp", CLIENT),
        ("email", "ada@example.com"),
        ("email_verified", "true"),
        ("name", "Ada"),
        ("nonce", "a nonce"),
        ("alg", "RS256"),
        ("typ", "JWT"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    let number = |name: &str| claims[name].as_str().unwrap().parse::<i64>().unwrap();
    assert_eq!(number("exp") - number("iat"), 3600);
    server.stop().await;
}

#[async_test]
async fn a_code_is_refused_with_a_wrong_verifier_and_is_then_used_up() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let code = server.code(&request()).await;
    let wrong = "x".repeat(43);
    for verifier in [wrong.as_str(), VERIFIER] {
        let (status, error) = server.exchange(&code, verifier).await;
        assert_eq!((status, &error["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    }
    let code = server.code(&request()).await;
    assert_eq!(server.exchange(&code, "").await.1["error"], "invalid_grant");
    let without = request_with("code_challenge", None);
    let without: Vec<_> = without.into_iter().filter(|(name, _)| *name != "code_challenge_method").collect();
    let code = server.code(&without).await;
    assert_eq!(
        server.exchange(&code, VERIFIER).await.1["error"],
        "invalid_grant",
        "a challenge was taken out"
    );
    let code = server.code(&without).await;
    assert_eq!(server.exchange(&code, "").await.0, StatusCode::OK);
    server.stop().await;
}

#[async_test]
async fn a_code_is_good_once() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let code = server.code(&request()).await;
    assert_eq!(server.exchange(&code, VERIFIER).await.0, StatusCode::OK);
    let (status, error) = server.exchange(&code, VERIFIER).await;
    assert_eq!((status, &error["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    server.stop().await;
}

#[async_test]
async fn a_code_is_refused_at_another_redirect_uri() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let code = server.code(&request()).await;
    let mut form = [&exchange(&code)[..], &[("code_verifier", VERIFIER)]].concat();
    form[2].1 = "http://127.0.0.1:3000/back";
    let (status, error) = answer(server.post("/token", &form).send().await.unwrap()).await;
    assert_eq!((status, &error["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    server.stop().await;
}

#[async_test]
async fn the_client_authenticates_in_the_header_or_in_the_form_and_never_in_both() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let code = server.code(&request()).await;
    let form = [&exchange(&code)[..3], &[("code_verifier", VERIFIER)]].concat();
    let in_form = [&exchange(&code)[..], &[("code_verifier", VERIFIER)]].concat();
    let encoded_secret: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let header_and_form = server.post("/token", &in_form).basic_auth(CLIENT, Some(&encoded_secret));
    let wrong_in_form: Vec<_> = in_form
        .iter()
        .map(|&(name, value)| (name, if name == "client_secret" { "wrong" } else { value }))
        .collect();
    for (name, attempt, status, error) in [
        ("no client", server.post("/token", &form), 401, "invalid_client"),
        (
            "wrong secret",
            server.post("/token", &form).basic_auth(CLIENT, Some("wrong")),
            401,
            "invalid_client",
        ),
        ("no secret", server.post("/token", &form).basic_auth(CLIENT, None::<&str>), 401, "invalid_client"),
        (
            "another client",
            server.post("/token", &form).basic_auth("x", Some(&encoded_secret)),
            401,
            "invalid_client",
        ),
        ("another scheme", server.post("/token", &form).bearer_auth("x"), 401, "invalid_client"),
        ("wrong secret in the form", server.post("/token", &wrong_in_form), 401, "invalid_client"),
        ("both", header_and_form, 400, "invalid_request"),
    ] {
        let response = attempt.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{name}");
        let challenge = response
            .headers()
            .get("www-authenticate")
            .is_some_and(|value| value.as_bytes().starts_with(b"Basic "));
        assert_eq!(challenge, status == 401, "{name}");
        assert_eq!(answer(response).await.1["error"], error, "{name}");
    }
    // None of these attempts has used the code up.
    let response =
        server.post("/token", &form).basic_auth(CLIENT, Some(encoded_secret)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    server.stop().await;
}

#[async_test]
async fn the_token_endpoint_says_what_is_wrong_with_a_request() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let sound = exchange("a code");
    let mut other_type = sound;
    other_type[0].1 = "password";
    let json = server.client.post(server.url("/token")).header("Content-Type", "application/json").body("{}");
    for (attempt, error) in [
        (server.post("/token", &other_type), "unsupported_grant_type"),
        (server.post("/token", &sound[1..]), "invalid_request"),
        (server.post("/token", &[&sound[..1], &sound[2..]].concat()), "invalid_request"),
        (server.post("/token", &[&sound[..], &sound[..1]].concat()), "invalid_request"),
        (server.post("/token", &sound), "invalid_grant"),
        (json, "invalid_request"),
    ] {
        let (status, body) = answer(attempt.send().await.unwrap()).await;
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!(error)));
    }
    server.stop().await;
}

#[async_test]
async fn a_minted_token_is_what_was_asked_for() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let token = server.minted(&[("email", "Grace@Example.com")]).await;
    let (_, claims) = server.tokeninfo(&token).await;
    assert_eq!(
        (&claims["email"], &claims["name"], &claims["aud"]),
        (&json!("Grace@Example.com"), &json!("Grace"), &json!(CLIENT))
    );
    assert_eq!(claims["sub"].as_str().unwrap().len(), 21);
    assert_eq!(claims.get("nonce"), None);

    let wish = [
        ("email", "a@example.com"),
        ("sub", "s"),
        ("name", "N"),
        ("verified", "false"),
        ("aud", "other"),
        ("nonce", "n"),
    ];
    let token = server.minted(&wish).await;
    let (_, claims) = answer(server.post("/tokeninfo", &[("id_token", &token)]).send().await.unwrap()).await;
    for (name, value) in [
        ("sub", "s"),
        ("name", "N"),
        ("email_verified", "false"),
        ("aud", "other"),
        ("azp", "other"),
        ("nonce", "n"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }

    let token = server.minted(&[("sub", "s")]).await;
    assert_eq!(part(&token, 1).get("email"), None);
    assert_eq!(part(&token, 1).get("email_verified"), None);
    server.stop().await;
}

#[async_test]
async fn mint_says_what_is_wrong_in_one_line_of_text() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    for (query, named) in [
        (&[][..], "`email`"),
        (&[("email", "")], "`email`"),
        (&[("email", "a b")], "`email`"),
        (&[("email", "a@example.com"), ("sub", "a b")], "`sub`"),
        (&[("email", "a@example.com"), ("verified", "yes")], "`verified`"),
        (&[("emial", "a@example.com")], "`emial`"),
        (&[("email", "a@example.com"), ("email", "b@example.com")], "repeated"),
    ] {
        let response = server.get("/mint", query).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert!(header(&response, "content-type").starts_with("text/plain"));
        let text = response.text().await.unwrap();
        assert!(text.contains(named) && text.lines().count() == 1, "{text}");
    }
    server.stop().await;
}

#[async_test]
async fn a_token_that_is_not_the_providers_own_or_not_current_is_invalid() {
    let (folder, other_folder) = (Folder::new(), Folder::new());
    let server = Server::start(&folder.0).await;
    let foreign = Server::start_as(&other_folder.0, Some(server.issuer.clone())).await;
    let elsewhere = Server::start(&folder.0).await;
    let ada = [("email", "ada@example.com")];
    let token = server.minted(&ada).await;
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = message.split_once('.').unwrap();
    let mut admin = part(&token, 1);
    admin["sub"] = json!("admin");
    let mut unsigned = part(&token, 0);
    unsigned["alg"] = json!("none");
    let mut symmetric = part(&token, 0);
    symmetric["alg"] = json!("HS256");
    let foreign_token = foreign.minted(&ada).await;
    let foreign_signature = foreign_token.rsplit_once('.').unwrap().1;
    for (what, text) in [
        ("expired", server.minted(&[("email", "ada@example.com"), ("expired", "true")]).await),
        ("tampered with", format!("{header}.{}.{signature}", encoded(&admin))),
        ("unsigned", format!("{}.{claims}.", encoded(&unsigned))),
        ("unsigned with a signature", format!("{}.{claims}.{signature}", encoded(&unsigned))),
        ("with another algorithm", format!("{}.{claims}.{signature}", encoded(&symmetric))),
        ("without its signature", format!("{message}.")),
        ("by a foreign key", foreign_token.clone()),
        ("by a foreign key that says it is ours", format!("{message}.{foreign_signature}")),
        ("of another issuer with the same key", elsewhere.minted(&ada).await),
        ("four parts", format!("{token}.{signature}")),
        ("padded", format!("{token}=")),
        ("empty", String::new()),
        ("no token", "abc".into()),
    ] {
        assert_eq!(server.tokeninfo(&text).await, invalid_token(), "{what}");
    }
    assert_eq!(server.tokeninfo(&token).await.0, StatusCode::OK);
    for server in [server, foreign, elsewhere] {
        server.stop().await;
    }
}

#[async_test]
async fn tokeninfo_takes_exactly_one_token() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let token = server.minted(&[("email", "ada@example.com")]).await;
    let twice = [("id_token", token.as_str()), ("id_token", token.as_str())];
    assert_eq!(answer(server.get("/tokeninfo", &[]).await).await, invalid_token());
    assert_eq!(answer(server.get("/tokeninfo", &twice).await).await, invalid_token());
    assert_eq!(answer(server.post("/tokeninfo", &twice).send().await.unwrap()).await, invalid_token());
    server.stop().await;
}

#[async_test]
async fn the_key_survives_a_restart_in_a_file_of_its_owners() {
    let folder = Folder::new();
    let first = Server::start(&folder.0).await;
    let (issuer, (_, jwks)) = (first.issuer.clone(), answer(first.get("/jwks.json", &[]).await).await);
    let token = first.minted(&[("email", "ada@example.com")]).await;
    first.stop().await;

    let second = Server::start_as(&folder.0, Some(issuer)).await;
    assert_eq!(answer(second.get("/jwks.json", &[]).await).await.1, jwks);
    assert_eq!(second.tokeninfo(&token).await.0, StatusCode::OK);
    second.stop().await;

    let files: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("one file is expected, not {files:?}") };
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).unwrap().permissions()) & 0o777,
        0o600
    );
    let jwk = &jwks["keys"][0];
    let thumbprint = format!(r#"{{"e":"AQAB","kty":"RSA","n":"{}"}}"#, jwk["n"].as_str().unwrap());
    assert_eq!(jwk["kid"], URL_SAFE_NO_PAD.encode(digest(&SHA256, thumbprint.as_bytes())));

    std::fs::write(file, "something else").unwrap();
    let opened = IdentityProvider::open(&folder.0, String::new(), String::new(), Secret::new(String::new()));
    assert!(matches!(opened, Err(Error::Foreign { path }) if path == *file), "it is not overwritten");
}

#[async_test]
async fn a_wrong_client_or_an_address_outside_this_machine_gets_a_page_and_no_redirect() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let mut requests = vec![
        request_with("client_id", None),
        request_with("client_id", Some("another")),
        request_with("redirect_uri", None),
        [request(), vec![("state", "again")]].concat(),
    ];
    for uri in [
        "https://example.com/",
        "http://127.0.0.1@example.com/",
        "app:/back",
        "http://127.0.0.1/#",
        "/back",
        "javascript:alert(1)",
    ] {
        requests.push(request_with("redirect_uri", Some(uri)));
    }
    for request in requests {
        let form = [&request[..], &[("pick", "ada@example.com")]].concat();
        for response in
            [server.get("/authorize", &request).await, server.post("/authorize", &form).send().await.unwrap()]
        {
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{request:?}");
            assert_eq!(response.headers().get("location"), None, "{request:?}");
            assert!(header(&response, "content-type").starts_with("text/html"));
            assert!(response.text().await.unwrap().contains("This request is refused"));
        }
    }
    server.stop().await;
}

#[async_test]
async fn the_client_is_told_of_every_other_mistake_and_of_a_cancellation() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    for (name, value, error) in [
        ("response_type", None, "invalid_request"),
        ("response_type", Some("token"), "unsupported_response_type"),
        ("response_mode", Some("fragment"), "invalid_request"),
        ("scope", None, "invalid_scope"),
        ("scope", Some("email openidx"), "invalid_scope"),
        ("prompt", Some("none"), "login_required"),
        ("request", Some("e30."), "request_not_supported"),
        ("request_uri", Some("https://example.com/"), "request_uri_not_supported"),
        ("code_challenge", None, "invalid_request"),
        ("code_challenge", Some("short"), "invalid_request"),
        ("code_challenge_method", None, "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
        ("answer", Some("cancel"), "access_denied"),
    ] {
        let request = request_with(name, value);
        let back = location(&server.post("/authorize", &request).send().await.unwrap());
        assert!(back.as_str().starts_with(BACK), "{name} {value:?}");
        assert_eq!(parameter(&back, "error").as_deref(), Some(error), "{name} {value:?}");
        assert_eq!(parameter(&back, "state").as_deref(), Some("a state & more"));
        assert_eq!(parameter(&back, "iss").as_deref(), Some(server.issuer.as_str()));
        assert_eq!(parameter(&back, "code"), None);
    }
    server.stop().await;
}

#[async_test]
async fn a_request_that_is_posted_gets_the_page_and_a_mistake_in_the_form_gets_it_again() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let response = server.post("/authorize", &request()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.text().await.unwrap().contains("Who do you want to be?"));
    for mistake in [[("answer", "sign_in"), ("email", "")], [("name", "Ada Kept"), ("email", "no address")]] {
        let form = [&request()[..], &mistake].concat();
        let response = server.post("/authorize", &form).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let page = response.text().await.unwrap();
        assert!(page.contains("role=\"alert\"") && !page.contains(" checked>"), "{page}");
        assert_eq!(page.contains("value=\"Ada Kept\""), mistake[0].0 == "name");
    }
    server.stop().await;
}

#[async_test]
async fn nothing_that_is_sent_becomes_markup() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let hostile = "\"'><script>alert(1)</script>";
    let back = format!("http://127.0.0.1:3000/{hostile}");
    let mut request = request_with("redirect_uri", Some(&back));
    request.retain(|(name, _)| !["state", "nonce"].contains(name));
    request.extend(["state", "nonce", "login_hint", "ui_locales", hostile].map(|name| (name, hostile)));
    let form = [&request[..], &["email", "name", "sub"].map(|name| (name, hostile))].concat();
    for response in
        [server.get("/authorize", &request).await, server.post("/authorize", &form).send().await.unwrap()]
    {
        assert_eq!(header(&response, "cache-control"), "no-store");
        let page = response.text().await.unwrap();
        assert!(page.contains("Who do you want to be?"));
        assert!(!page.contains("<script") && !page.contains("\"'>"), "{page}");
        assert!(page.contains("&lt;script&gt;"), "{page}");
    }
    let person = [&request[..], &[("pick", "ada@example.com")]].concat();
    let response = server.post("/authorize", &person).send().await.unwrap();
    assert_eq!(parameter(&location(&response), "state").as_deref(), Some(hostile), "it comes back as it was");
    server.stop().await;
}

#[async_test]
async fn the_command_line_gets_a_token_a_reason_or_advice() {
    let folder = Folder::new();
    let server = Server::start(&folder.0).await;
    let token = remote::mint(server.port, &[("email", "ada@example.com")]).await.unwrap();
    assert_eq!(server.tokeninfo(&token).await.0, StatusCode::OK);
    let refused = remote::mint(server.port, &[("email", "ada")]).await.unwrap_err();
    assert!(matches!(&refused, remote::Error::Refused(why) if why.contains("`email`")), "{refused}");
    let port = server.port;
    server.stop().await;
    let advice = remote::mint(port, &[("email", "ada@example.com")]).await.unwrap_err().to_string();
    assert!(advice.contains("cargo run") && advice.lines().count() == 1, "{advice}");
}
