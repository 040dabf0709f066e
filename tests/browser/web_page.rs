//! The page of `docs/web.md` in a real browser, with our built client. Its session is in a cookie,
//! which other pages cannot use.

use std::fs;
use std::path::{Path, PathBuf};

use rocket::fairing::AdHoc;
use rocket::fs::FileServer;
use rocket::response::content::{RawHtml, RawJavaScript};
use rocket::{State, get, routes};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, oneshot};
use tokio::task::JoinHandle;

use crate::browser::chromium::{Scripts, Window};
use crate::real::installed::{npm, printed, project};
use crate::support::process::free_port;
use crate::support::staff_app::StaffApp;

const SIGNED_IN: &str = "Signed in as ada@example.com";
const COOKIE: &str = "vestibule";

/// Sends requests to the service with the browser's cookies, in each way that scripts can.
const ASK: &str = r#"
const [service, done] = arguments;
const ask = (path, init) => fetch(service + path, { credentials: "include", ...init })
  .then((answer) => answer.type, () => "refused");
const json = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };
Promise.all([
  ask("/api/v1/auth/refresh", json),
  ask("/api/v1/auth/refresh", { method: "POST" }),
  ask("/api/v1/auth/logout", json),
  ask("/api/v1/auth/logout", { method: "POST" }),
  ask("/api/v1/auth/providers", {}),
  ask("/api/v1/me", { headers: { Authorization: "Bearer made-up" } }),
  ask("/api/v1/auth/logout", { method: "POST", mode: "no-cors" }),
]).then(done);
"#;

/// Tries to copy the page's keys, and returns the errors.
const COPY: &str = r#"
const done = arguments[0];
const opening = indexedDB.open("vestibule");
opening.onsuccess = () => {
  const asked = opening.result.transaction("keys").objectStore("keys").getAll();
  asked.onsuccess = () => {
    opening.result.close();
    const copies = asked.result.map(({ privateKey }) => crypto.subtle.exportKey("jwk", privateKey));
    Promise.allSettled(copies).then((copied) => done(copied.map(({ reason }) => reason?.name)));
  };
};
"#;

/// Deletes the page's keys.
const CLEAR: &str = r#"
const done = arguments[0];
indexedDB.deleteDatabase("vestibule").onsuccess = () => done();
"#;

/// Posts a form to the service. Its fields form JSON, for a service that ignored the media type.
const FORM: &str = r#"
const form = document.createElement("form");
Object.assign(form, { method: "POST", enctype: "text/plain", action: arguments[0] + "/api/v1/auth/refresh" });
const field = Object.assign(document.createElement("input"), { name: '{"x":"', value: '"}' });
form.append(field);
document.body.append(form);
form.submit();
"#;

/// The client as its package contains it, if the tools that build it are installed.
async fn client() -> Option<&'static Path> {
    static BUILT: OnceCell<Option<PathBuf>> = OnceCell::const_new();
    let built = BUILT.get_or_init(|| async {
        let mut npm = npm("clients/typescript")?;
        // Not into `dist`, which the client's own tests write meanwhile.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vestibule-client");
        npm.args(["exec", "--", "tsc", "-p", ".", "--outDir"])
            .arg(&folder);
        npm.current_dir(project("clients/typescript"));
        printed(npm).await;
        Some(folder)
    });
    built.await.as_deref()
}

/// The page of the guide for a service, with another button.
fn page(service: &str) -> String {
    let guide = fs::read_to_string(project("docs/web.md")).unwrap();
    let (_, page) = guide.split_once("```html\n").expect("the guide has a page");
    let (page, _) = page.split_once("```").unwrap();
    let replaced = [
        ("https://accounts.google.com/gsi/client", "/google.js"),
        ("https://id.example.com", service),
    ];
    replaced
        .into_iter()
        .fold(page.to_owned(), |page, (text, by)| {
            assert_eq!(page.matches(text).count(), 1, "{text}");
            page.replace(text, by)
        })
}

struct Shown {
    page: String,
    provider: String,
}

#[get("/")]
fn index(shown: &State<Shown>) -> RawHtml<&str> {
    RawHtml(&shown.page)
}

#[get("/google.js")]
fn button() -> RawJavaScript<&'static str> {
    RawJavaScript(include_str!("google.js"))
}

#[get("/token/<nonce>")]
async fn token(nonce: &str, shown: &State<Shown>) -> String {
    let url = format!(
        "{}/mint?email=ada@example.com&nonce={nonce}",
        shown.provider
    );
    reqwest::get(url).await.unwrap().text().await.unwrap()
}

/// A web server with the page.
struct Site {
    port: u16,
    served: JoinHandle<()>,
}

impl Site {
    async fn start(port: u16, staff_app: &StaffApp, client: &Path) -> Self {
        let shown = Shown {
            page: page(&service(staff_app)),
            provider: format!("{}/dev/idp", staff_app.app.url),
        };
        let settings = rocket::Config::figment()
            .merge(("port", port))
            .merge(("log_level", "off"))
            .merge(("shutdown.ctrlc", false));
        let (lifted_off, running) = oneshot::channel();
        let rocket = rocket::custom(settings)
            .manage(shown)
            .mount("/", routes![index, button, token])
            .mount("/vestibule-client", FileServer::from(client))
            .attach(AdHoc::on_liftoff("ready", |_| {
                Box::pin(async { lifted_off.send(()).unwrap() })
            }));
        let served = tokio::spawn(async { drop(rocket.launch().await.unwrap()) });
        running.await.expect("the site starts");
        Self { port, served }
    }

    /// Its URL by this machine's name, the service's site, or by its IP address, which is another
    /// site.
    fn at(&self, host: &str) -> String {
        format!("http://{host}:{}", self.port)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// The service by the name of this machine.
fn service(staff_app: &StaffApp) -> String {
    staff_app.app.url.replace("127.0.0.1", "localhost")
}

/// The servers, and a window with the page, in which Ada is signed in.
struct Scene {
    window: Window,
    staff_app: StaffApp,
    listed: Site,
    /// The page at a port that the service does not list.
    unlisted: Site,
}

impl Scene {
    async fn begin() -> Option<Self> {
        let client = client().await?;
        let window = Window::open(Scripts::On).await?;
        let ports = [free_port(), free_port()];
        let origin = format!("http://localhost:{}", ports[0]);
        let staff_app = StaffApp::open_altered(|figment| {
            // The page proves its key for the URL that it uses.
            let port: u16 = figment.extract_inner("port").unwrap();
            figment
                .merge(("web.origins", [origin]))
                .merge(("public_url", format!("http://localhost:{port}")))
        })
        .await;
        let listed = Site::start(ports[0], &staff_app, client).await;
        let unlisted = Site::start(ports[1], &staff_app, client).await;
        let scene = Self {
            window,
            staff_app,
            listed,
            unlisted,
        };
        scene.visit().await;
        scene.window.see("Signed out: never").await;
        scene.sign_in().await;
        Some(scene)
    }

    async fn visit(&self) {
        self.window
            .client
            .goto(&self.listed.at("localhost"))
            .await
            .unwrap();
    }

    async fn sign_in(&self) {
        self.window.press("Sign in with Google").await;
        self.window.see(SIGNED_IN).await;
    }

    async fn cookie(&self) -> Value {
        self.window.client.cookie(COOKIE).await.unwrap()
    }

    async fn live_sessions(&self) -> i64 {
        self.staff_app
            .app
            .database
            .count("SELECT count(*) FROM sessions WHERE ended_at IS NULL")
            .await
    }

    /// Asserts that a page of another origin gains nothing from the cookie. `form` is the service's
    /// error for a form that the page posts, with or without the cookie.
    async fn assert_powerless(&self, origin: &str, form: &str) {
        let client = &self.window.client;
        let service = service(&self.staff_app);
        client.goto(origin).await.unwrap();
        self.window.see("Signed out: unreachable").await;
        self.window.press("Sign in with Google").await;
        self.window.see("Not signed in: ").await;
        let asked = client
            .execute_async(ASK, vec![json!(service)])
            .await
            .unwrap();
        let refused = ["refused"; 6]
            .into_iter()
            .chain(["opaque"])
            .collect::<Vec<_>>();
        assert_eq!(asked, json!(refused), "{origin}");
        client.execute(FORM, vec![json!(service)]).await.unwrap();
        self.window
            .element(&format!("//pre[contains(., '\"{form}\"')]"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_page_survives_reloads_until_a_tab_signs_out() {
    let Some(scene) = Scene::begin().await else {
        return;
    };
    let window = &scene.window;
    let client = &scene.window.client;
    let first = scene.cookie().await;
    assert_eq!(
        (&first["httpOnly"], &first["sameSite"]),
        (&json!(true), &json!("Strict"))
    );
    let seen = window
        .evaluate("return [document.cookie, localStorage.length, sessionStorage.length]")
        .await;
    assert_eq!(seen, json!(["", 0, 0]), "scripts see nothing of it");
    client.refresh().await.unwrap();
    window.see(SIGNED_IN).await;
    let mut last = scene.cookie().await;
    assert_ne!(last["value"], first["value"]);

    let tabs = [
        client.tab().await.unwrap(),
        client.open_tab().await.unwrap(),
    ];
    client.turn_to(&tabs[1]).await.unwrap();
    scene.visit().await;
    window.see(SIGNED_IN).await;
    for tab in &tabs {
        client.turn_to(tab).await.unwrap();
        window
            .evaluate("document.body.remove(); setTimeout(() => location.reload())")
            .await;
    }
    for tab in &tabs {
        client.turn_to(tab).await.unwrap();
        window.see(SIGNED_IN).await;
    }
    for tab in &tabs {
        client.turn_to(tab).await.unwrap();
        client.refresh().await.unwrap();
        window.see(SIGNED_IN).await;
        let next = scene.cookie().await;
        assert_ne!(next["value"], last["value"], "each of them refreshes");
        last = next;
    }
    assert_eq!(scene.live_sessions().await, 1);

    window.press("Sign out").await;
    window.see("Signed out: signed_out").await;
    client.turn_to(&tabs[0]).await.unwrap();
    window.see("Signed out: signed_out").await;
    client.refresh().await.unwrap();
    window.see("Signed out: never").await;
    assert_eq!(scene.live_sessions().await, 0);

    scene.sign_in().await;
    scene
        .staff_app
        .app
        .database
        .run("UPDATE sessions SET expires_at = now()")
        .await;
    client.refresh().await.unwrap();
    window.see("Signed out: session_expired").await;
    // The sign-in replaces the useless cookie.
    scene.sign_in().await;
    client.refresh().await.unwrap();
    window.see(SIGNED_IN).await;
    scene.window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_useless_without_its_key_which_scripts_cannot_copy() {
    let Some(scene) = Scene::begin().await else {
        return;
    };
    let window = &scene.window;
    let client = &scene.window.client;
    let bound = "SELECT count(*) FROM sessions WHERE jkt IS NOT NULL AND ended_at IS NULL";
    assert_eq!(scene.staff_app.app.database.count(bound).await, 1);
    let copied = client.execute_async(COPY, vec![]).await.unwrap();
    assert_eq!(copied, json!(["InvalidAccessError"]));
    client.execute_async(CLEAR, vec![]).await.unwrap();
    client.refresh().await.unwrap();
    window.see("Signed out: device_key_lost").await;
    scene.sign_in().await;
    client.refresh().await.unwrap();
    window.see(SIGNED_IN).await;
    scene.window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_forms_elsewhere_can_do_nothing_with_a_pages_cookie() {
    let Some(scene) = Scene::begin().await else {
        return;
    };
    let client = &scene.window.client;
    let other_origin = scene.unlisted.at("localhost");
    let other_site = scene.unlisted.at("127.0.0.1");
    scene
        .assert_powerless(&other_origin, "cookie_refused")
        .await;
    scene
        .assert_powerless(&other_site, "unsupported_media_type")
        .await;
    scene
        .assert_powerless(&scene.listed.at("127.0.0.1"), "unsupported_media_type")
        .await;
    assert_eq!(scene.live_sessions().await, 1);

    scene.visit().await;
    scene.window.see(SIGNED_IN).await;
    let token = scene.cookie().await["value"].take();
    client.delete_all_cookies().await.unwrap();
    let bare = json!({ "name": COOKIE, "value": token, "sameSite": "None", "secure": true, "httpOnly": true });
    client
        .post("/cookie", json!({ "cookie": bare }))
        .await
        .unwrap();
    // Now the browser sends the cookie from other sites, too.
    scene.assert_powerless(&other_site, "cookie_refused").await;
    scene
        .assert_powerless(&other_origin, "cookie_refused")
        .await;
    scene.visit().await;
    scene.window.see(SIGNED_IN).await;
    assert_eq!(scene.live_sessions().await, 1);
    scene.window.close().await;
}
