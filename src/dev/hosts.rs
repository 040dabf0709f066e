//! The names by which a development server is reached.
//!
//! A page of the web can point a name of its own at this machine (DNS rebinding). To the browser,
//! the server is then the page's own origin, so the page could read a token for anyone. But the
//! request still carries the page's name in `Host`.

use std::net::IpAddr;

use rocket::fairing::{AdHoc, Fairing};
use rocket::uri;
use url::Url;

use crate::web::Problem;

/// Refuses requests to hosts other than this machine and the host of `public_url`.
pub fn fairing(public_url: &str) -> impl Fairing + use<> {
    let public = Url::parse(public_url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    AdHoc::on_request("hosts", move |request, _| {
        let is_ours = request
            .host()
            .is_some_and(|host| is_ours(host.domain().as_str(), public.as_deref()));
        Box::pin(async move {
            if !is_ours {
                let detail = "in development, `Host` must be localhost, a loopback address or the host of `public_url`";
                Problem::malformed(detail).keep(request);
                // No route has this path.
                request.set_uri(uri!("/:"));
            }
        })
    })
}

fn is_ours(host: &str, public: Option<&str>) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_some_and(|address| address.is_loopback())
        || public == Some(&*host)
}
