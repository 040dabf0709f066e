//! Guards of the admin pages: the member of staff, and the forms of the pages. No guard forwards.

use std::collections::BTreeMap;

use rocket::data::{Data, FromData, Outcome as DataOutcome, ToByteUnit};
use rocket::http::{Cookie, Method, SameSite, Status, uri};
use rocket::request::{FromRequest, Outcome, Request};
use url::{Url, form_urlencoded};

use crate::admin::reason;
use crate::admin::staff::sign_in::flow::{Admin, MAX_NEXT};
use crate::admin::staff::sign_in::session::csrf_token;
use crate::admin::staff::sign_in::store::{StaffRow, by_session};
use crate::domain::{Access, Actor, Author, Origin, Role};
use crate::web::guard::form_body::{self, MAX_FIELDS};
use crate::web::guard::json_body;
use crate::web::guard::rate_limited::{StaffPages, admit_address};
use crate::web::http::fields;
use crate::web::{Db, Problem};

/// The cookie of a staff session. Its prefix binds it to this host, to HTTPS and to the path `/`.
pub const COOKIE: &str = "__Host-vestibule-staff";

/// Returns a cookie for this host and HTTPS only that no script can read. It is `Lax`, since the
/// way back from the identity provider begins on the provider's site.
pub fn cookie(name: &'static str, value: String) -> Cookie<'static> {
    Cookie::build((name, value))
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .build()
}

/// Returns a cookie that makes the browser delete the one of this name.
pub fn removal(name: &'static str) -> Cookie<'static> {
    let mut removal = cookie(name, String::new());
    removal.make_removal();
    removal
}

/// Returns the cookie of a staff session, or `None` if two cookies have its name.
pub fn session<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    fields::cookie(request, COOKIE).ok().flatten()
}

/// A signed-in member of staff.
///
/// - **Succeeds** when the cookie belongs to a live staff session.
/// - **Fails** with 401 otherwise, and the catcher redirects to the sign-in. Fails with 429 when
///   its IP address sent too many cookies, so that forged ones cannot keep the database busy.
#[derive(Debug, Clone)]
pub struct Staff {
    pub member: StaffRow,
    pub csrf: String,
}

/// A signed-in member of staff with the role of admin.
///
/// - **Succeeds** when [`Staff`] does, and their role is [`Role::Admin`].
/// - **Fails** as [`Staff`] does, and with 403 for any other role.
#[derive(Debug, Clone)]
pub struct AdminStaff(pub Staff);

/// A signed-in member of staff who may export.
///
/// - **Succeeds** when [`Staff`] does, and they have the right.
/// - **Fails** as [`Staff`] does, and with 403 without the right.
#[derive(Debug, Clone)]
pub struct ExportingStaff(pub Staff);

impl Staff {
    pub fn by<'a>(&'a self, reason: &'a str, origin: &'a Origin) -> Author<'a> {
        Author {
            actor: Actor::Staff(&self.member.email),
            reason: Some(reason),
            origin,
        }
    }
}

/// The fields of a form, or of a link that fills one in ([`StaffForm::of`]). As a guard, the fields
/// that a page of this session sent:
///
/// - **Succeeds** when the CSRF token is the session's and the browser names no other site as the
///   sender.
/// - **Fails** with 403 otherwise, and with 400 when the form cannot be read.
#[derive(Debug)]
pub struct StaffForm(Vec<(String, String)>);

impl StaffForm {
    /// Reads the parameters of a link as the form that it fills in.
    pub fn of(uri: &uri::Origin<'_>) -> Self {
        let query = uri.query().map(|query| query.as_str()).unwrap_or_default();
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .take(MAX_FIELDS)
                .collect(),
        )
    }

    pub fn fields(&self) -> BTreeMap<&str, &str> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// Returns the first field of this name, trimmed; `None` if it is blank.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self
            .0
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// Returns the reason that every action needs, on one line. The status is 400 if it is missing
    /// or too long.
    pub fn reason(&self) -> Result<String, Status> {
        self.get("reason")
            .and_then(reason::read)
            .ok_or(Status::BadRequest)
    }
}

/// A form of a member of staff whose fields are kept for the next page if the sender is not signed
/// in, or the form is out of date.
///
/// - **Succeeds** when [`Staff`] and [`StaffForm`] do.
/// - **Fails** as they do.
#[derive(Debug)]
pub struct Signed {
    pub staff: Staff,
    pub form: StaffForm,
}

impl Signed {
    /// Returns the form if the sender is an admin. Otherwise, the status is 403.
    pub fn of_admin(self) -> Result<Self, Status> {
        if self.staff.member.role == Role::Admin {
            Ok(self)
        } else {
            Err(Status::Forbidden)
        }
    }
}

/// The fields that a [`Signed`] form of this site has sent, except its proofs.
#[derive(Default)]
struct Typed(Vec<(String, String)>);

/// True if a form was refused, and not its sender.
#[derive(Default)]
struct OutOfDate(bool);

pub fn is_out_of_date(request: &Request<'_>) -> bool {
    request.local_cache(OutOfDate::default).0
}

/// Returns the page that a request names, or the page whose form it sends, with the typed text.
pub fn page_of(request: &Request<'_>) -> String {
    if request.method() != Method::Post {
        return request.uri().to_string();
    }
    let admin = request.rocket().state::<Admin>();
    let referrer = request
        .headers()
        .get_one("Referer")
        .and_then(|url| Url::parse(url).ok());
    let referrer = referrer.filter(|url| {
        admin.is_some_and(|admin| url.origin().ascii_serialization() == admin.public_url)
    });
    let path = referrer
        .as_ref()
        .map_or_else(|| request.uri().path().as_str(), Url::path);
    // The address of the form of a note, and of its page after a mistake, takes nothing but forms.
    let path = path.strip_suffix("/notes").unwrap_or(path);
    let typed = &request.local_cache(Typed::default).0;
    if typed.is_empty() {
        let query = referrer
            .as_ref()
            .and_then(Url::query)
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        return format!("{path}{query}");
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(typed)
        .finish();
    let whole = format!("{path}?{query}");
    // A text that is too long for the way through a sign-in is lost, but not the page.
    if whole.len() <= MAX_NEXT {
        whole
    } else {
        path.to_owned()
    }
}

/// Authenticates the sender, once for each request.
pub async fn staff(request: &Request<'_>) -> Result<Staff, Status> {
    request
        .local_cache_async(authenticated(request))
        .await
        .clone()
}

/// Returns the sender, if [`staff`] has authenticated them.
pub fn known_staff<'r>(request: &'r Request<'_>) -> Option<&'r Staff> {
    request
        .local_cache(|| Err::<Staff, _>(Status::Unauthorized))
        .as_ref()
        .ok()
}

async fn authenticated(request: &Request<'_>) -> Result<Staff, Status> {
    let db: &Db = request
        .rocket()
        .state()
        .ok_or(Status::InternalServerError)?;
    let cookie = session(request).ok_or(Status::Unauthorized)?;
    admit_address::<StaffPages>(request).map_err(|problem| problem.keep(request).status())?;
    let member = db.run(|_| by_session(db, cookie)).await;
    let member = member.map_err(|error| Problem::from(error).keep(request).status())?;
    let member = member.ok_or(Status::Unauthorized)?;
    Ok(Staff {
        member,
        csrf: csrf_token(cookie),
    })
}

async fn admit(request: &Request<'_>, has_right: fn(&Access) -> bool) -> Outcome<Staff, ()> {
    match staff(request).await {
        Ok(staff) if has_right(&staff.member.access()) => Outcome::Success(staff),
        Ok(_) => Outcome::Error((Status::Forbidden, ())),
        Err(status) => Outcome::Error((status, ())),
    }
}

/// Returns `true` unless the browser says that another site sent the request.
pub fn same_origin(request: &Request<'_>, origin: &str) -> bool {
    let headers = request.headers();
    headers
        .get("Sec-Fetch-Site")
        .all(|site| site == "same-origin" || site == "none")
        && headers.get("Origin").all(|sender| sender == origin)
}

macro_rules! guard {
    ($guard:ident, $from:expr, $has_right:expr) => {
        #[rocket::async_trait]
        impl<'r> FromRequest<'r> for $guard {
            type Error = ();

            async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
                admit(request, $has_right).await.map($from)
            }
        }
    };
}

guard!(Staff, |staff| staff, |_| true);
guard!(AdminStaff, AdminStaff, |access| access.role == Role::Admin);
guard!(ExportingStaff, ExportingStaff, Access::exports);

#[rocket::async_trait]
impl<'r> FromData<'r> for StaffForm {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> DataOutcome<'r, Self> {
        match fields(request, data)
            .await
            .and_then(|form| genuine(request, form))
        {
            Ok(form) => DataOutcome::Success(form),
            Err(status) => DataOutcome::Error((status, ())),
        }
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for Signed {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> DataOutcome<'r, Self> {
        let staff = staff(request).await;
        let read = fields(request, data).await;
        if let Ok(StaffForm(fields)) = &read {
            let typed = fields
                .iter()
                .filter(|(name, value)| name != "csrf" && name != "seen" && !value.is_empty());
            request.local_cache(|| Typed(typed.cloned().collect()));
        }
        match staff.and_then(|staff| {
            Ok(Self {
                staff,
                form: genuine(request, read?)?,
            })
        }) {
            Ok(signed) => DataOutcome::Success(signed),
            Err(status) => DataOutcome::Error((status, ())),
        }
    }
}

/// Rejects a form that this session did not issue.
fn refuse<T>(request: &Request<'_>) -> Result<T, Status> {
    request.local_cache(|| OutOfDate(true));
    Err(Status::Forbidden)
}

async fn fields(request: &Request<'_>, data: Data<'_>) -> Result<StaffForm, Status> {
    let origin: &Admin = request
        .rocket()
        .state()
        .ok_or(Status::InternalServerError)?;
    if !fields::is_form(request) || !same_origin(request, &origin.public_url) {
        return refuse(request);
    }
    let body = json_body::whole(request, data, 16.kibibytes()).await;
    let body = body.map_err(|problem| problem.keep(request).status())?;
    let fields = form_body::parse(&body).map_err(|problem| problem.keep(request).status())?;
    Ok(StaffForm(fields.into_owned().collect()))
}

fn genuine(request: &Request<'_>, form: StaffForm) -> Result<StaffForm, Status> {
    let expected = session(request).map(csrf_token);
    // Both are hashes of a secret that the sender would have to know, so timing the comparison
    // reveals nothing.
    let is_genuine = expected.is_some() && form.get("csrf") == expected.as_deref();
    if is_genuine {
        Ok(form)
    } else {
        refuse(request)
    }
}
