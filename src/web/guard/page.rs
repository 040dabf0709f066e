//! Pages of the same site (`web.origins`), which keep their refresh token in a cookie that no
//! script can read.

use rocket::data::Data;
use rocket::http::{Cookie, CookieJar, SameSite};
use rocket::request::Request;
use rocket::time::Duration;
use uuid::Uuid;

use super::json_body::JsonBody;
use super::shared::{data_guard, request_guard, state};
use super::{bearer, json_body};
use crate::accounts::tokens::access_token::named_session;
use crate::accounts::tokens::refresh_token::RefreshToken;
use crate::config;
use crate::domain::Object;
use crate::secret::Secret;
use crate::web::http::cors;
use crate::web::http::fields;
use crate::web::{ErrorCode, Problem, errors};

/// A refresh token that has not been looked up yet: an app sends it in the body, a page in its
/// cookie.
///
/// - **Succeeds** with the `refresh_token` in the body, or else with the cookie of a listed page.
/// - **Fails** when there is neither, when the body is malformed, or when the cookie is refused.
pub struct PresentedToken<'r> {
    pub text: String,
    /// The page from whose cookie it comes.
    pub page: Option<Page<'r>>,
}

/// The page that a request comes from, whose cookie a handler may set or delete.
///
/// - **Succeeds** always. The guards that read the cookie check where it comes from.
pub struct Page<'r> {
    cookies: &'r CookieJar<'r>,
    pages: &'r config::Web,
    /// True if it is a page of `web.origins` whose browser keeps the cookie.
    pub(super) is_listed: bool,
    /// True if the request has two cookies of the name, so that neither counts.
    is_repeated: bool,
    /// The refresh token in the cookie; `None` if no page is listed.
    pub(super) token: Option<&'r str>,
}

impl<'r> Page<'r> {
    fn read(request: &'r Request<'_>) -> Result<Self, Problem> {
        let (cookies, pages): (_, &config::Web) = (request.cookies(), state(request)?);
        if pages.is_off() {
            return Ok(Self {
                cookies,
                pages,
                is_listed: false,
                is_repeated: false,
                token: None,
            });
        }
        let sent = fields::cookie(request, name(pages.is_secure()));
        let is_listed = cors::keeps_cookies(request, pages);
        Ok(Self {
            cookies,
            pages,
            is_listed,
            is_repeated: sent.is_err(),
            token: sent.ok().flatten(),
        })
    }

    /// Reads the page. Its cookie counts beside JSON from a page of the list, and not beside an
    /// access token of another session. Nothing is looked up.
    pub(super) fn of(request: &'r Request<'_>) -> Result<Self, Problem> {
        let page = Self::read(request)?;
        let refused = |detail| Err(Problem::new(ErrorCode::CookieRefused, detail));
        if page.is_repeated {
            return refused("the request has two cookies of this name");
        }
        let Some(token) = page.token else {
            return Ok(page);
        };
        if !page.is_listed {
            return refused("beside the cookie, `Origin` must be one of `web.origins`");
        }
        if !fields::is_json(request) {
            return refused("beside the cookie, `Content-Type` must be `application/json`");
        }
        // Even an expired token shows which user the page means.
        let bearer = bearer::authorization(request)
            .ok()
            .and_then(|(_, token)| named_session(token));
        if bearer
            .zip(session(token))
            .is_some_and(|(bearer, cookie)| bearer != cookie)
        {
            return refused("the access token is of another session than the cookie");
        }
        Ok(page)
    }

    /// Returns the page if its sign-in asks for the refresh token in the cookie.
    pub(super) fn asking(self, body: &Object) -> Result<Option<Self>, Problem> {
        let malformed = |detail| Err(Problem::malformed(detail));
        match body.get("session").map(|session| session.as_str()) {
            None => Ok(None),
            Some(Some("cookie")) if self.is_listed => Ok(Some(self)),
            Some(Some("cookie")) if self.pages.is_off() => {
                malformed("`session` cannot be `cookie`: no page is listed in `web.origins`")
            }
            Some(Some("cookie")) => {
                let detail = "beside `session`, `Origin` must be one of `web.origins`, and no web view, which gets no cookie: leave \
                              `session` out there, and store the refresh token";
                Err(Problem::new(ErrorCode::CookieRefused, detail))
            }
            _ => malformed("`session` must be `cookie` or absent"),
        }
    }

    /// Sets the cookie, for as long as the token lives.
    pub fn keep(&self, token: &Secret<String>, seconds: u32) {
        let mut cookie = self.cookie(token.expose().clone());
        cookie.set_max_age(Duration::seconds(seconds.into()));
        self.cookies.add(cookie);
    }

    fn forget(&self) {
        let mut removal = self.cookie(String::new());
        removal.make_removal();
        // Rocket's jar removes only the cookies that it has read itself.
        self.cookies.add(removal);
    }

    /// Deletes the cookie of that session. Another session's stays.
    pub fn forget_session(&self, ended: Uuid) {
        if self.token.and_then(session) == Some(ended) {
            self.forget();
        }
    }

    /// Deletes the cookie if it is this refresh token, or another of its session.
    pub fn forget_token(&self, token: &str) {
        let Some(cookie) = self.token else { return };
        if cookie == token || session(token).is_some_and(|ended| session(cookie) == Some(ended)) {
            self.forget();
        }
    }

    /// Builds the cookie. A browser ignores a removal without these attributes, too.
    fn cookie(&self, value: String) -> Cookie<'static> {
        let secure = self.pages.is_secure();
        let cookie = Cookie::build((name(secure), value))
            .path("/")
            .secure(secure)
            .http_only(true);
        cookie.same_site(SameSite::Strict).build()
    }
}

/// Returns the cookie's name. With the prefix, no other host of the site can set it (RFC 6265bis
/// §4.1.3.2).
const fn name(secure: bool) -> &'static str {
    if secure {
        "__Host-vestibule"
    } else {
        "vestibule"
    }
}

fn session(token: &str) -> Option<Uuid> {
    RefreshToken::parse(token).map(|token| token.session())
}

errors!(Page<'_>: [ErrorCode::CookieRefused]);
errors!(PresentedToken<'_>: <(JsonBody, Page<'_>)>::kinds().chain([ErrorCode::InvalidRefreshToken]));

request_guard!(Page<'r>, |request| Self::read(request));
data_guard!(PresentedToken<'r>, |request, data| presented(request, data)
    .await);

async fn presented<'r>(
    request: &'r Request<'_>,
    data: Data<'_>,
) -> Result<PresentedToken<'r>, Problem> {
    let page = Page::of(request)?;
    let body = if page.is_listed {
        json_body::read_if_any(request, data)
            .await?
            .unwrap_or_default()
    } else {
        json_body::read(request, data).await?
    };
    if !page.is_listed || body.get("refresh_token").is_some() {
        let text = json_body::required(&body, "refresh_token")?.to_owned();
        return Ok(PresentedToken { text, page: None });
    }
    // A page that has just been loaded does not know whether a user is signed in.
    let absent = || {
        Problem::new(
            ErrorCode::InvalidRefreshToken,
            "the browser has no cookie of a session",
        )
    };
    let text = page.token.ok_or_else(absent)?.to_owned();
    Ok(PresentedToken {
        text,
        page: Some(page),
    })
}
