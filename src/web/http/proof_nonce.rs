//! `DPoP-Nonce` in the response to every request that has a proof or is refused for lack of a valid
//! one (RFC 9449 §8 and §9).

use rocket::fairing::{AdHoc, Fairing};
use rocket::{Request, Response};

use crate::accounts::ProofNonces;
use crate::clock;
use crate::web::Problem;
use crate::web::guard::proof;
use crate::web::metrics::Metrics;

/// Adds the header field to the answers, and counts the proofs.
pub fn fairing() -> impl Fairing {
    AdHoc::on_response("proof nonce field", |request, response| {
        Box::pin(async move { add(request, response) })
    })
}

fn add(request: &Request<'_>, response: &mut Response<'_>) {
    let status = response.status().code;
    let problem = matches!(status, 400 | 401).then(|| Problem::unexplained(status).keep(request));
    let Some(verdict) = proof::verdict(request, problem) else {
        return;
    };
    if let Some(metrics) = request.rocket().state::<Metrics>() {
        metrics.prove(verdict);
    }
    if let Some(nonces) = request.rocket().state::<ProofNonces>() {
        response.set_raw_header("DPoP-Nonce", nonces.current(clock::now()));
    }
}
