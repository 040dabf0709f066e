//! A user who signs in on a provider's own pages.

use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use url::Url;

use crate::support::app::Answer;
use crate::support::staff_app::Browser;

/// The redirect URI of apps. No server listens there.
pub const BACK: &str = "http://127.0.0.1/back";
// The pair of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Sends a request, and returns the JSON of its successful response.
pub async fn json(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{status} {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

/// An attribute of a tag. The only character reference in an address is `&amp;`.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}

/// The form of a page, filled in: its action and its fields.
fn filled(page: &str, name: &str) -> (String, Vec<(String, String)>) {
    let (_, form) = page
        .split_once("<form")
        .unwrap_or_else(|| panic!("there is no form: {page}"));
    let action = attribute(form, "action").expect("it leads somewhere");
    let inputs = form
        .split("</form>")
        .next()
        .unwrap()
        .split("<input")
        .skip(1);
    let inputs = inputs.map(|input| input.split('>').next().unwrap());
    let kept = inputs
        .filter(|input| !input.contains("type=\"submit\"") && !input.contains("type=\"checkbox\""));
    let fields = kept.filter_map(|input| {
        let field = attribute(input, "name")?;
        let value = match field.as_str() {
            "login" | "username" => name.to_owned(),
            "password" => "a password".to_owned(),
            _ => attribute(input, "value").unwrap_or_default(),
        };
        Some((field, value))
    });
    (action, fields.collect())
}

/// Signs in, consents to everything, and returns the URL to which the provider redirects.
pub async fn sign_in(browser: &mut Browser, authorize: Url, name: &str, back: &str) -> Url {
    let mut url = authorize;
    let mut answer = browser.get(url.as_str()).await;
    for _ in 0..20 {
        if let Some(location) = answer.header("location") {
            url = url.join(location).unwrap();
            if url.as_str().starts_with(back) {
                return url;
            }
            answer = browser.get(url.as_str()).await;
        } else {
            let (action, fields) = filled(&answer.text, name);
            url = url.join(&action).unwrap();
            let fields: Vec<_> = fields
                .iter()
                .map(|(field, value)| (field.as_str(), value.as_str()))
                .collect();
            answer = browser.post(url.as_str(), &fields).await;
        }
    }
    panic!("goes round in circles at {url}: {}", answer.text)
}

/// Signs a user in as an app does (OpenID Connect Core, section 3.1), and returns the token
/// response.
pub async fn tokens(issuer: &str, client_id: &str, name: &str, nonce: Option<&str>) -> Value {
    let client = Client::new();
    let metadata = json(client.get(format!("{issuer}/.well-known/openid-configuration"))).await;
    let mut authorize = Url::parse(metadata["authorization_endpoint"].as_str().unwrap()).unwrap();
    authorize.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", client_id),
        ("redirect_uri", BACK),
        ("scope", "openid email profile"),
        ("state", "anything"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ]);
    if let Some(nonce) = nonce {
        authorize.query_pairs_mut().append_pair("nonce", nonce);
    }
    let back = sign_in(&mut Browser::new(issuer), authorize, name, BACK).await;
    let (_, code) = back
        .query_pairs()
        .find(|(name, _)| name == "code")
        .expect("a code");
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", BACK),
        ("client_id", client_id),
        ("code_verifier", VERIFIER),
    ];
    json(
        client
            .post(metadata["token_endpoint"].as_str().unwrap())
            .form(&form),
    )
    .await
}

/// Signs a member of staff in at the service through the provider. Returns the last response and
/// the browser.
pub async fn staff(service: &str, name: &str) -> (Answer, Browser) {
    let mut browser = Browser::new(service);
    let authorize = browser.begin().await;
    let callback = format!("{service}/admin/sign-in/callback");
    let back = sign_in(&mut browser, authorize, name, &callback).await;
    let landed = browser.get(back.as_str()).await;
    (landed, browser)
}
