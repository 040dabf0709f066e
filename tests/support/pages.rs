//! Every page that there is, at an address that shows it. One list, so that what is asked of pages
//! is asked of all of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use uuid::Uuid;

use super::app::{Answer, App};
use super::desk::{Browser, Desk};
use super::people::{ADMIN, People, SUPPORT};

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// Nobody who has signed in.
    Anyone,
    /// A member of staff who may read and end sessions.
    Support,
    /// A member of staff who may do everything.
    Admin,
}

impl Viewer {
    /// As whom they sign in.
    pub fn email(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Support => Some(SUPPORT),
            Self::Admin => Some(ADMIN),
        }
    }
}

/// What is found at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A page for people to read.
    Page,
    /// Something that a page needs or leads to.
    Other,
}

/// An address, and what it answers.
#[derive(Debug)]
pub struct Address {
    /// What it is called where it is reported, and as a file.
    pub name: String,
    pub path: String,
    pub viewer: Viewer,
    pub status: u16,
    pub content: Content,
}

impl Address {
    fn page(name: &str, viewer: Viewer, path: impl Into<String>) -> Self {
        Self { name: name.into(), path: path.into(), viewer, status: 200, content: Content::Page }
    }

    fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    fn other(self) -> Self {
        Self { content: Content::Other, ..self }
    }

    /// What the address answers to its viewer.
    pub async fn open(&self, desk: &Desk) -> Answer {
        let browser = match self.viewer.email() {
            Some(email) => desk.signed_in(email).await,
            None => Browser::new(&desk.app.url),
        };
        App::answer(browser.request(Method::GET, &self.path).send().await.unwrap()).await
    }

    /// Whether a route's path, with its `<parameters>`, covers the address.
    pub fn is_of(&self, route: &str) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let (path, route): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.split('/').collect());
        let covers = |(segment, part): (&&str, &&str)| segment == part || segment.starts_with('<');
        let rest = route.last().is_some_and(|last| last.ends_with("..>")) && path.len() >= route.len();
        (path.len() == route.len() || rest) && route.iter().zip(&path).all(covers)
    }
}

/// All of them.
pub async fn all(desk: &Desk, people: &People) -> Vec<Address> {
    let mut pages = admin(people);
    let authorize = Browser::new(&desk.app.url).begin().await;
    let query = authorize.query().unwrap();
    let code = Uuid::from_u128(1).simple();
    run!(&desk.app.database.pool, "INSERT INTO deletion_requests (code, provider, message_id, outcome) VALUES ($1, 'idp', '', 'unlinked')
         ON CONFLICT DO NOTHING", code.as_uuid());
    pages.extend([
        Address::page("data-deletion", Viewer::Anyone, format!("/providers/idp/data-deletion/{code}")),
        Address::page("data-deletion-unknown", Viewer::Anyone, "/providers/idp/data-deletion/x").status(404),
        Address::page("problems", Viewer::Anyone, "/problems"),
        Address::page("problem", Viewer::Anyone, "/problems/audience_mismatch"),
        Address::page("authorize", Viewer::Anyone, format!("/dev/idp/authorize?{query}")),
        Address::page("authorize-refused", Viewer::Anyone, "/dev/idp/authorize").status(400),
    ]);
    pages
}

fn admin(people: &People) -> Vec<Address> {
    use Viewer::{Admin, Anyone, Support};
    let user = |id: &str| format!("/admin/users/{id}");
    let missing = user("00000000-0000-7000-8000-000000000000");
    let mut pages = vec![
        Address::page("stylesheet", Anyone, "/admin/admin.css").other(),
        Address::page("script", Anyone, "/admin/admin.js").other(),
        Address::page("icon", Anyone, "/admin/icon.svg").other(),
        Address::page("icons", Anyone, "/admin/icons.svg").other(),
        Address::page("overview", Admin, "/admin"),
        Address::page("sign-in", Anyone, "/admin/sign-in"),
        Address::page(
            "signed-out",
            Anyone,
            "/admin/sign-in?undone=yes&next=/admin/users%3Freason%3Dchargeback,%2520ticket%25204711",
        ),
        Address::page("sign-in-failed", Anyone, "/admin/sign-in/callback").status(400),
        Address::page("nothing-here", Admin, "/admin/nothing").status(404),
        Address::page("users", Admin, "/admin/users"),
        Address::page("users-second", Admin, format!("/admin/users?at={}", after("newest", "null"))),
        Address::page(
            "users-ordered",
            Admin,
            format!("/admin/users?sort=name&at={}", after("name", "\"User 1\"")),
        ),
        Address::page(
            "users-filtered",
            Support,
            "/admin/users?provider=idp&status=active&created_from=2026-01-01",
        ),
        Address::page("users-filtered-away", Support, "/admin/users?provider=none&seen_to=2026-01-01"),
        Address::page("users-found", Support, "/admin/users?q=ada"),
        Address::page("users-found-markup", Admin, "/admin/users?q=%3Cscript%3Ealert(1)%3C/script%3E"),
        Address::page("users-not-found", Support, "/admin/users?q=nobody%40example.com"),
        Address::page("user", Admin, user(&people.ada)),
        Address::page("user-done", Support, format!("{}?done=end-sessions", user(&people.ada))),
        Address::page("user-refused-only", Support, format!("{}?only=staff&sessions=all", user(&people.ada))),
        Address::page("user-theft", Admin, user(&people.robbed)),
        Address::page("user-suspended", Support, user(&people.suspended)),
        Address::page("user-data", Support, format!("{}/data.json", user(&people.ada))).other(),
        Address::page("user-disabled", Admin, user(&people.disabled)),
        Address::page("user-nobody", Admin, user(&people.nobody)),
        Address::page("user-missing", Admin, missing).status(404),
        Address::page("audit", Admin, "/admin/audit"),
        Address::page("audit-found", Support, "/admin/audit?email=Ada.Lovelace%40example.com"),
        Address::page(
            "audit-looks",
            Admin,
            "/admin/audit?what=looks&actor=%3Cscript%3Ealert(1)%3C/script%3E",
        ),
        Address::page("audit-staff", Support, "/admin/audit?what=staff"),
        Address::page("audit-of-user", Admin, format!("/admin/audit?user={}&what=refused", people.ada)),
        Address::page("audit-not-found", Support, "/admin/audit?email=x&from=2026-01-01&to=2026-01-02"),
        Address::page("staff", Admin, "/admin/staff?done=given"),
        Address::page(
            "staff-change",
            Admin,
            "/admin/staff?email=grace%40example.com&role=admin&export=yes&for=none",
        ),
        Address::page("staff-give", Admin, "/admin/staff/give?email=grace%40example.com&role=admin&for=week"),
        Address::page("staff-mistake", Admin, "/admin/staff/give?email=grace&role=admin&for=week")
            .status(400),
        Address::page("staff-remove", Admin, "/admin/staff/remove?email=grace%40example.com"),
        Address::page("keys", Admin, "/admin/keys?done=revoked"),
        Address::page("keys-to-read", Support, "/admin/keys"),
        Address::page("keys-mistake", Admin, "/admin/keys/add?name=%3Cb%3E&role=admin&until=2020-01-01")
            .status(400),
        Address::page("key-add", Admin, "/admin/keys/add?name=shop&role=admin&for=month"),
        Address::page("key-revoke", Admin, "/admin/keys/revoke?name=shop"),
        Address::page("time-zone", Support, "/admin/time-zone?done=yes"),
        Address::page("webhooks", Admin, "/admin/webhooks"),
        Address::page("webhook", Admin, "/admin/webhooks/shop?sent=2"),
        Address::page("webhook-parked", Admin, "/admin/webhooks/shop?state=parked&after=99"),
        Address::page("webhook-replay", Admin, "/admin/webhooks/shop/replay"),
        Address::page("staff-to-read", Support, "/admin/staff"),
    ];
    pages.extend(changes(people));
    let odd = |(name, id): &(&str, String)| Address::page(&format!("user-{name}"), Admin, user(id));
    pages.extend(people.odd.iter().map(odd));
    pages
}

/// The place behind one of the crowd in a list of that order, where the key is that.
fn after(order: &str, key: &str) -> String {
    let place = format!(r#"["{order}","after","00000000-0000-7000-8000-000000000090",{key}]"#);
    URL_SAFE_NO_PAD.encode(place)
}

/// What is shown before somebody is changed.
fn changes(people: &People) -> Vec<Address> {
    let page = |name: &str, path: String| Address::page(name, Viewer::Admin, path);
    let user = |id: &str| format!("/admin/users/{id}");
    let (ada, nobody) = (user(&people.ada), user(&people.nobody));
    let (long, hebrew) = (people.odd("long"), people.odd("hebrew"));
    let identity = format!("{ada}/identities/{}", people.identity);
    vec![
        page("merge", format!("{ada}/merge")),
        page("merge-found", format!("{ada}/merge?q=ma")),
        page("merge-found-long", format!("{ada}/merge?q=long")),
        page("merge-not-found", format!("{ada}/merge?q=x")),
        page("merge-preview", format!("{}/merge?into={}", user(&people.disabled), people.ada)),
        page("merge-preview-long", format!("{}/merge?into={hebrew}", user(long))),
        page("move", format!("{identity}/move?q=mallory")),
        page("move-preview", format!("{identity}/move?to={long}")),
        page("unlink", format!("{identity}/unlink")),
        page("unlink-refused", format!("{nobody}/identities/{}/unlink", people.last_identity)),
        page("delete", format!("{}/delete", user(long))),
        page("disable", format!("{ada}/disable")),
        page("enable", format!("{}/enable", user(&people.disabled))),
        page("release", format!("{}/identities/{}/release", user(people.odd("markup")), people.held)),
        page("end-sessions", format!("{ada}/end-sessions")),
        page("end-session", format!("{ada}/sessions/{}/end", people.session)),
        page("user-merged", user(&people.merged)).status(404),
        page("user-deleted", user(&people.deleted)).status(404),
        page("deleted", format!("/admin/deletions/{}", people.deletion)),
        Address::page("not-allowed", Viewer::Support, format!("{ada}/delete")).status(403),
    ]
}
