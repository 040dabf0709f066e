//! `RateLimit` and `RateLimit-Policy` on every answer of a limited route, refused or not
//! (draft-ietf-httpapi-ratelimit-headers-11, §3 and §4).
//!
//! `t`, during which a client can use no more than `r`, is the time until the bucket has one more request; so
//! `Retry-After` never ends before it (§6). The partition key, such as an IP address, is left out.

use std::sync::OnceLock;

use rocket::fairing::{AdHoc, Fairing};
use rocket::{Request, Response};
use strum::VariantArray;

use super::rate_limit::{Key, Policy, RateLimits, Standing};

/// The standing of a request under each policy, kept with it for [`fairing`].
#[derive(Debug, Default)]
struct Standings([OnceLock<Option<Standing>>; Policy::VARIANTS.len()]);

/// Counts a request under a policy, but only once. Returns `None` if the limits are switched off.
pub fn count(
    request: &Request<'_>,
    limits: &RateLimits,
    policy: Policy,
    key: Key,
) -> Option<Standing> {
    let Standings(standings) = request.local_cache(Standings::default);
    *standings[policy as usize].get_or_init(|| limits.count(policy, key))
}

/// Adds the header fields to the answers.
pub fn fairing() -> impl Fairing {
    AdHoc::on_response("rate limit fields", |request, response| {
        Box::pin(async move { add(request, response) })
    })
}

fn add(request: &Request<'_>, response: &mut Response<'_>) {
    let Some(limits) = request.rocket().state::<RateLimits>() else {
        return;
    };
    let Standings(standings) = request.local_cache(Standings::default);
    for (&policy, standing) in Policy::VARIANTS.iter().zip(standings) {
        if let Some(Some(Standing {
            remaining, seconds, ..
        })) = standing.get()
            && let Some(field) = limits.field(policy)
        {
            let name = field.split(';').next().unwrap_or_default();
            response.adjoin_raw_header("RateLimit", format!("{name};r={remaining};t={seconds}"));
            response.adjoin_raw_header("RateLimit-Policy", field);
        }
    }
}
