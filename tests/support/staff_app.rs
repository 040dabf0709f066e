//! The admin pages with an identity provider to sign in at, and a browser without scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use figment::Figment;
use reqwest::{Method, RequestBuilder};
use rocket::fairing::AdHoc;
use rocket::{Build, Rocket};
use serde_json::json;
use tokio::sync::oneshot;
use url::Url;
use vestibule::admin::staff::store::{self, Changed};
use vestibule::dev::identity_provider::IdentityProvider;
use vestibule::domain::actor::Author;
use vestibule::domain::staff::Access;
use vestibule::secret::Secret;
use vestibule::web::http::templates;

use super::app::{Answer, App};
use super::cluster::Database;
use super::process::free_port;
use super::token::CLIENT_ID;

const CLIENT_SECRET: &str = "a-client-secret-of-the-tests";

/// Guards the folder of the provider's key. Making the key is slow, so the first app makes it for
/// all.
static KEY: Mutex<()> = Mutex::new(());

/// An app in which staff can sign in: its default provider is the development identity provider.
pub struct StaffApp {
    pub app: App,
}

impl StaffApp {
    pub async fn open() -> Self {
        Self::open_altered(|figment| figment).await
    }

    /// Starts a service with further settings.
    pub async fn open_altered(settings: impl FnOnce(Figment) -> Figment) -> Self {
        Self::open_on(Database::create().await, settings, |rocket| rocket).await
    }

    /// Starts a service on that database, with further settings, routes, state or fairings.
    pub async fn open_on(
        database: Database,
        settings: impl FnOnce(Figment) -> Figment,
        alter: impl FnOnce(Rocket<Build>) -> Rocket<Build>,
    ) -> Self {
        let port = free_port();
        let base = format!("http://127.0.0.1:{port}");
        let issuer = format!("{base}/dev/idp");
        let secret = Secret::new(CLIENT_SECRET.to_owned());
        let provider = {
            let _right = KEY.lock();
            let folder = Path::new(concat!(
                env!("CARGO_TARGET_TMPDIR"),
                "/staff-app-",
                env!("CARGO_CRATE_NAME")
            ));
            IdentityProvider::open(folder, issuer.clone(), CLIENT_ID.into(), secret).unwrap()
        };
        let app = App::start_altered(
            database,
            |figment| {
                let figment = figment
                    .merge(("port", port))
                    .merge(("public_url", &base))
                    .merge(("idp.client_secret", CLIENT_SECRET))
                    .merge(("idp.issuers", [&issuer]))
                    .merge(("idp.tokeninfo_url", format!("{issuer}/tokeninfo")))
                    .merge(("idp.authorization_url", format!("{issuer}/authorize")))
                    .merge(("idp.token_url", format!("{issuer}/token")))
                    .merge((
                        "providers.discovered",
                        json!({
                            "preset": "oidc", "issuer": issuer, "client_id": CLIENT_ID,
                            "client_secret": CLIENT_SECRET,
                        }),
                    ));
                settings(figment)
            },
            |rocket| alter(provider.mount(rocket)),
        )
        .await;
        Self { app }
    }

    /// Makes the owner of an address a member of staff.
    pub async fn appoint(&self, email: &str, access: impl Into<Access>) {
        let changed = store::add(
            &self.app.database.service,
            email,
            access,
            Author::COMMAND_LINE,
        )
        .await
        .unwrap();
        assert_eq!(changed, Changed::Done);
    }

    /// A browser that has signed in.
    pub async fn signed_in(&self, email: &str) -> Browser {
        let mut browser = Browser::new(&self.app.url);
        let landed = browser.sign_in(email).await;
        assert_eq!(
            (landed.status.as_u16(), landed.header("location")),
            (303, Some("/admin/users")),
            "{}",
            landed.text
        );
        browser
    }
}

/// Serves a provider, and nothing else, until the test ends.
pub async fn serve(provider: IdentityProvider, port: u16) {
    let (tell, started) = oneshot::channel();
    // A path without templates: the fairing has its own.
    let figment = vestibule::config::defaults()
        .merge(("port", port))
        .merge(("template_dir", std::env::current_exe().unwrap()));
    let rocket = rocket::custom(figment)
        .attach(templates::fairing())
        .attach(AdHoc::on_liftoff("started", |_| {
            Box::pin(async { tell.send(()).unwrap() })
        }));
    tokio::spawn(provider.mount(rocket).launch());
    started.await.unwrap();
}

/// A browser that keeps cookies, and follows no redirects by itself.
pub struct Browser {
    pub cookies: BTreeMap<String, String>,
    base: String,
    client: reqwest::Client,
}

/// Returns a page's HTML with one blank for each run of blanks and line breaks, except in a text
/// area, where a browser shows each of them.
fn as_shown(page: &str) -> String {
    let one_blank = |text: &str| {
        let mut text = text.replace(|c: char| c.is_ascii_whitespace(), " ");
        while text.contains("  ") {
            text = text.replace("  ", " ");
        }
        text
    };
    let mut shown = String::new();
    for part in page.split_inclusive("</textarea>") {
        let (around, field) = part.split_at(part.find("<textarea").unwrap_or(part.len()));
        let (tag, typed) = field.split_at(field.find('>').map_or(0, |end| end + 1));
        shown += &one_blank(around);
        shown += &one_blank(tag);
        shown += typed;
    }
    shown
}

impl Browser {
    pub fn new(base: &str) -> Self {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            cookies: BTreeMap::new(),
            base: base.to_owned(),
            client,
        }
    }

    /// A request with the cookies.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = Url::parse(&self.base).unwrap().join(path).unwrap();
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.client
            .request(method, url)
            .header("Cookie", cookies.join("; "))
    }

    /// The whole URL of a page.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sends a request, and keeps the response's cookies. Reads a page as a browser shows it:
    /// without `<wbr>`, with plain slashes, and with one blank for each run of blanks and line
    /// breaks.
    pub async fn send(&mut self, request: RequestBuilder) -> Answer {
        let mut answer = App::answer(request.send().await.unwrap()).await;
        answer.text = answer.text.replace("<wbr>", "").replace("&#x2F;", "/");
        let media_type = answer.headers.get("content-type");
        if media_type.is_some_and(|it| it.as_bytes().starts_with(b"text/html")) {
            answer.text = as_shown(&answer.text);
        }
        for cookie in answer.headers.get_all("set-cookie") {
            let (name, value) = cookie
                .to_str()
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .split_once('=')
                .unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let request = self.request(Method::GET, path);
        self.send(request).await
    }

    pub async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::POST, path).form(form);
        self.send(request).await
    }

    /// Posts these fields as a form of the session.
    pub async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let csrf = self.csrf().await;
        self.post(path, &[&[("csrf", csrf.as_str())], fields].concat())
            .await
    }

    /// Confirms the change of a preview, with that reason.
    pub async fn confirm(&mut self, preview: &str, reason: &str) -> Answer {
        let page = self.get(preview).await.text;
        Form::of(&page).with("reason", reason).send(self).await
    }

    /// The token in the forms of a page.
    pub async fn csrf(&mut self) -> String {
        let page = self.get("/admin/staff").await.text;
        let (_, rest) = page
            .split_once("name=\"csrf\" value=\"")
            .expect("a page with a form");
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// Begins a sign-in, and returns the URL of the provider's page.
    pub async fn begin(&mut self) -> Url {
        let begun = self.post("/admin/sign-in", &[]).await;
        assert_eq!(begun.status, 303, "{}", begun.text);
        Url::parse(begun.header("location").unwrap()).unwrap()
    }

    /// Chooses a user on the provider's page, and returns the URL to return to.
    pub async fn choose(&mut self, authorize: &Url, email: &str) -> String {
        self.choose_with(authorize, &[("email", email), ("verified", "true")])
            .await
    }

    /// Does the same with further fields of the provider's page.
    pub async fn choose_with(&mut self, authorize: &Url, who: &[(&str, &str)]) -> String {
        let chosen = self
            .client
            .post(authorize.clone())
            .form(who)
            .send()
            .await
            .unwrap();
        let location = chosen.headers()["location"].to_str().unwrap().to_owned();
        location
            .strip_prefix(&self.base)
            .expect("back to us")
            .to_owned()
    }

    /// Signs in, and returns the response to the callback, which may be an error.
    pub async fn sign_in(&mut self, email: &str) -> Answer {
        self.sign_in_with(&[("email", email), ("verified", "true")])
            .await
    }

    /// Does the same with further fields of the provider's page.
    pub async fn sign_in_with(&mut self, who: &[(&str, &str)]) -> Answer {
        let authorize = self.begin().await;
        let callback = self.choose_with(&authorize, who).await;
        self.get(&callback).await
    }
}

/// The form of a preview: its action and its fields.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    pub fields: Vec<(String, String)>,
}

impl Form {
    pub fn of(page: &str) -> Self {
        let form = page.split_once("<form class=\"card stack\" method=\"post\" action=\"");
        let (action, form) = form
            .unwrap_or_else(|| panic!("no form: {page}"))
            .1
            .split_once('"')
            .unwrap();
        let form = form.split_once("</form>").unwrap().0;
        let attribute = |input: &str, name: &str| {
            let (_, rest) = input.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let inputs = form
            .split("<input")
            .skip(1)
            .map(|rest| rest.split_once('>').unwrap().0);
        let fields = inputs.map(|input| {
            (
                attribute(input, "name").unwrap(),
                attribute(input, "value").unwrap_or_default(),
            )
        });
        Self {
            action: action.to_owned(),
            fields: fields.collect(),
        }
    }

    /// The form with this value in a field.
    pub fn with(self, name: &str, value: &str) -> Self {
        let mut form = self.without(name);
        form.fields.push((name.to_owned(), value.to_owned()));
        form
    }

    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(field, _)| field != name);
        self
    }

    pub async fn send(&self, browser: &mut Browser) -> Answer {
        let request = browser
            .request(Method::POST, &self.action)
            .form(&self.fields);
        browser.send(request).await
    }
}
