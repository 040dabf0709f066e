//! All pages, each at an address that shows it. Tests of pages share this list, so that they cover
//! all of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use uuid::Uuid;

use super::app::{Answer, App};
use super::people::{ADMIN, People, SUPPORT};
use super::staff_app::{Browser, StaffApp};

/// The viewer of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// A visitor without a session.
    Anyone,
    /// A member of staff who may read and end sessions.
    Support,
    /// A member of staff who may do everything.
    Admin,
}

impl Viewer {
    /// The address that they sign in with.
    pub fn email(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Support => Some(SUPPORT),
            Self::Admin => Some(ADMIN),
        }
    }
}

/// The kind of content at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A page for people to read.
    Page,
    /// A resource of a page, or a target of its links.
    Other,
}

/// An address, and its expected response.
#[derive(Debug)]
pub struct Address {
    /// Its name in reports and file names.
    pub name: String,
    pub path: String,
    pub viewer: Viewer,
    pub status: u16,
    pub content: Content,
}

fn page(name: &str, viewer: Viewer, path: impl Into<String>) -> Address {
    Address {
        name: name.into(),
        path: path.into(),
        viewer,
        status: 200,
        content: Content::Page,
    }
}

impl Address {
    fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    fn other(self) -> Self {
        Self {
            content: Content::Other,
            ..self
        }
    }

    /// Requests the address as its viewer.
    pub async fn open(&self, staff_app: &StaffApp) -> Answer {
        let browser = match self.viewer.email() {
            Some(email) => staff_app.signed_in(email).await,
            None => Browser::new(&staff_app.app.url),
        };
        App::answer(
            browser
                .request(Method::GET, &self.path)
                .send()
                .await
                .unwrap(),
        )
        .await
    }
}

/// Returns `true` if a route's path, with its `<parameters>`, covers an address.
pub fn covers(route: &str, address: &str) -> bool {
    let path = address.split('?').next().unwrap_or_default();
    let (path, route): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.split('/').collect());
    let covers = |(segment, part): (&&str, &&str)| segment == part || segment.starts_with('<');
    let rest = route.last().is_some_and(|last| last.ends_with("..>")) && path.len() >= route.len();
    (path.len() == route.len() || rest) && route.iter().zip(&path).all(covers)
}

/// The addresses of all pages.
pub async fn all(staff_app: &StaffApp, people: &People) -> Vec<Address> {
    let mut pages = admin(people);
    let authorize = Browser::new(&staff_app.app.url).begin().await;
    let query = authorize.query().unwrap();
    let code = Uuid::from_u128(1).simple();
    run!(
        &staff_app.app.database.pool,
        "INSERT INTO provider_events (code, provider, message_id, outcome) VALUES ($1, 'idp', '', 'unlinked')
         ON CONFLICT DO NOTHING",
        code.as_uuid()
    );
    pages.extend([
        page(
            "data-deletion",
            Viewer::Anyone,
            format!("/providers/idp/data-deletion/{code}"),
        ),
        page(
            "data-deletion-unknown",
            Viewer::Anyone,
            "/providers/idp/data-deletion/x",
        )
        .status(404),
        page("problems", Viewer::Anyone, "/problems"),
        page("problem", Viewer::Anyone, "/problems/audience_mismatch"),
        page(
            "authorize",
            Viewer::Anyone,
            format!("/dev/idp/authorize?{query}"),
        ),
        page("authorize-refused", Viewer::Anyone, "/dev/idp/authorize").status(400),
    ]);
    pages
}

fn admin(people: &People) -> Vec<Address> {
    use Viewer::{Admin, Anyone, Support};
    let user = |id: &str| format!("/admin/users/{id}");
    let missing = user("00000000-0000-7000-8000-000000000000");
    let mut pages = vec![
        page("stylesheet", Anyone, "/admin/admin.css").other(),
        page("script", Anyone, "/admin/admin.js").other(),
        page("icon", Anyone, "/admin/icon.svg").other(),
        page("icons", Anyone, "/admin/icons.svg").other(),
        page("overview", Admin, "/admin"),
        page("sign-in", Anyone, "/admin/sign-in"),
        page(
            "signed-out",
            Anyone,
            "/admin/sign-in?undone=yes&next=/admin/users%3Freason%3Dchargeback,%2520ticket%25204711",
        ),
        page("sign-in-failed", Anyone, "/admin/sign-in/callback").status(400),
        page("nothing-here", Admin, "/admin/nothing").status(404),
        page("users", Admin, "/admin/users"),
        page(
            "users-second",
            Admin,
            format!("/admin/users?at={}", after("newest", "null")),
        ),
        page(
            "users-ordered",
            Admin,
            format!("/admin/users?sort=name&at={}", after("name", "\"User 1\"")),
        ),
        page(
            "users-filtered",
            Support,
            "/admin/users?provider=idp&status=active&created_from=2026-01-01",
        ),
        page(
            "users-filtered-away",
            Support,
            "/admin/users?provider=none&seen_to=2026-01-01",
        ),
        page("users-found", Support, "/admin/users?q=ada"),
        page(
            "users-found-markup",
            Admin,
            "/admin/users?q=%3Cscript%3Ealert(1)%3C/script%3E",
        ),
        page(
            "users-not-found",
            Support,
            "/admin/users?q=nobody%40example.com",
        ),
        page("user", Admin, user(&people.ada)),
        page(
            "user-done",
            Support,
            format!("{}?done=end-sessions", user(&people.ada)),
        ),
        page(
            "user-refused-only",
            Support,
            format!("{}?only=staff&sessions=all", user(&people.ada)),
        ),
        page("user-theft", Admin, user(&people.robbed)),
        page("user-suspended", Support, user(&people.suspended)),
        page(
            "user-data",
            Support,
            format!("{}/data.json", user(&people.ada)),
        )
        .other(),
        page("user-disabled", Admin, user(&people.disabled)),
        page("user-nobody", Admin, user(&people.nobody)),
        page("user-missing", Admin, missing).status(404),
        page("audit", Admin, "/admin/audit"),
        page(
            "audit-found",
            Support,
            "/admin/audit?email=Ada.Lovelace%40example.com",
        ),
        page(
            "audit-looks",
            Admin,
            "/admin/audit?what=looks&actor=%3Cscript%3Ealert(1)%3C/script%3E",
        ),
        page("audit-staff", Support, "/admin/audit?what=staff"),
        page(
            "audit-of-user",
            Admin,
            format!("/admin/audit?user={}&what=refused", people.ada),
        ),
        page(
            "audit-not-found",
            Support,
            "/admin/audit?email=x&from=2026-01-01&to=2026-01-02",
        ),
        page("staff", Admin, "/admin/staff?done=given"),
        page(
            "staff-change",
            Admin,
            "/admin/staff?email=grace%40example.com&role=admin&export=yes&for=none",
        ),
        page(
            "staff-give",
            Admin,
            "/admin/staff/give?email=grace%40example.com&role=admin&for=week",
        ),
        page(
            "staff-mistake",
            Admin,
            "/admin/staff/give?email=grace&role=admin&for=week",
        )
        .status(400),
        page(
            "staff-remove",
            Admin,
            "/admin/staff/remove?email=grace%40example.com",
        ),
        page("keys", Admin, "/admin/keys?done=revoked"),
        page("keys-to-read", Support, "/admin/keys"),
        page(
            "keys-mistake",
            Admin,
            "/admin/keys/add?name=%3Cb%3E&role=admin&until=2020-01-01",
        )
        .status(400),
        page(
            "key-add",
            Admin,
            "/admin/keys/add?name=shop&role=admin&for=month",
        ),
        page("key-revoke", Admin, "/admin/keys/revoke?name=shop"),
        page("time-zone", Support, "/admin/time-zone?done=yes"),
        page("webhooks", Admin, "/admin/webhooks"),
        page("webhook", Admin, "/admin/webhooks/shop?sent=2"),
        page(
            "webhook-parked",
            Admin,
            "/admin/webhooks/shop?state=parked&after=99",
        ),
        page("webhook-replay", Admin, "/admin/webhooks/shop/replay"),
        page("staff-to-read", Support, "/admin/staff"),
    ];
    pages.extend(changes(people));
    let odd = |(name, id): &(&str, String)| page(&format!("user-{name}"), Admin, user(id));
    pages.extend(people.odd.iter().map(odd));
    pages
}

/// The cursor behind one of the older users, in a list of that order, with that key.
fn after(order: &str, key: &str) -> String {
    let place = format!(r#"["{order}","after","00000000-0000-7000-8000-000000000090",{key}]"#);
    URL_SAFE_NO_PAD.encode(place)
}

/// The previews of changes to users, and the pages of merged and deleted users.
fn changes(people: &People) -> Vec<Address> {
    let asked = |name: &str, path: String| page(name, Viewer::Admin, path);
    let user = |id: &str| format!("/admin/users/{id}");
    let ada = user(&people.ada);
    let nobody = user(&people.nobody);
    let long = people.odd("long");
    let hebrew = people.odd("hebrew");
    let identity = format!("{ada}/identities/{}", people.identity);
    vec![
        asked("merge", format!("{ada}/merge")),
        asked("merge-found", format!("{ada}/merge?q=ma")),
        asked("merge-found-long", format!("{ada}/merge?q=long")),
        asked("merge-not-found", format!("{ada}/merge?q=x")),
        asked(
            "merge-preview",
            format!("{}/merge?into={}", user(&people.disabled), people.ada),
        ),
        asked(
            "merge-preview-long",
            format!("{}/merge?into={hebrew}", user(long)),
        ),
        asked("move", format!("{identity}/move?q=mallory")),
        asked("move-preview", format!("{identity}/move?to={long}")),
        asked("unlink", format!("{identity}/unlink")),
        asked(
            "unlink-refused",
            format!("{nobody}/identities/{}/unlink", people.last_identity),
        ),
        asked("delete", format!("{}/delete", user(long))),
        asked("disable", format!("{ada}/disable")),
        asked("enable", format!("{}/enable", user(&people.disabled))),
        asked(
            "release",
            format!(
                "{}/identities/{}/release",
                user(people.odd("markup")),
                people.held
            ),
        ),
        asked("end-sessions", format!("{ada}/end-sessions")),
        asked(
            "end-session",
            format!("{ada}/sessions/{}/end", people.session),
        ),
        asked("user-merged", user(&people.merged)).status(404),
        asked("user-deleted", user(&people.deleted)).status(404),
        asked("deleted", format!("/admin/deletions/{}", people.deletion)),
        page("not-allowed", Viewer::Support, format!("{ada}/delete")).status(403),
    ]
}
