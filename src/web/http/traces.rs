//! A span for each request, and within it one for the call to the identity provider and one for
//! each wait for the database, as OpenTelemetry's semantic conventions for HTTP and for databases
//! describe. No span identifies a user, a token, an e-mail address or an IP address.

use std::mem;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use rocket::fairing::{AdHoc, Fairing};
use rocket::http::HeaderMap;
use rocket::{Request, Response};

use super::request_id::RequestId;
use crate::clock;
use crate::telemetry::database::{self, Steps};
use crate::telemetry::otlp::Traces;
use crate::web::guard::client_address;
use crate::web::guard::verified_identity::ProviderCall;
use crate::web::problem::Problem;

/// Sends a span for each request.
pub fn fairing() -> impl Fairing {
    AdHoc::on_response("traces", |request, response| {
        Box::pin(async move { send(request, response) })
    })
}

struct Headers<'r>(&'r HeaderMap<'r>);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.0.get(name);
        values.next().filter(|_| values.next().is_none())
    }

    fn keys(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Returns the trace that a trusted proxy names (W3C Trace Context). Any other client could join
/// any trace, or have every request sampled.
fn parent(request: &Request<'_>) -> Context {
    let none = Context::new();
    if client_address::trusted_proxies(request).is_none() {
        return none;
    }
    TraceContextPropagator::new().extract_with_context(&none, &Headers(request.headers()))
}

/// Runs a request's handler, and notes its waits if traces are sent.
pub(super) async fn noting<T>(request: &Request<'_>, handled: impl Future<Output = T>) -> T {
    if request.rocket().state::<Traces>().is_none() {
        return handled.await;
    }
    database::noting(request.local_cache(Steps::default).clone(), handled).await
}

fn send(request: &Request<'_>, response: &Response<'_>) {
    let Some(Traces(provider)) = request.rocket().state::<Traces>() else {
        return;
    };
    let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
    let end = clock::system();
    let id = RequestId::of(request);
    let method = request.method().as_str();
    let status = response.status().code;
    let mut attributes = vec![
        KeyValue::new("http.request.method", method),
        KeyValue::new("http.response.status_code", i64::from(status)),
        KeyValue::new("vestibule.request_id", id.as_str().to_owned()),
    ];
    let name = request.route().map_or_else(
        || method.to_owned(),
        |route| {
            attributes.push(KeyValue::new("http.route", route.uri.to_string()));
            format!("{method} {}", route.uri)
        },
    );
    if status >= 400 {
        let error = Problem::internal().keep(request).kind.entry().error;
        attributes.push(KeyValue::new("error.type", error));
    }
    let started = end - id.started().elapsed();
    let span = SpanBuilder::from_name(name).with_kind(SpanKind::Server);
    let span = span.with_start_time(started).with_attributes(attributes);
    let mut span = span.start_with_context(&tracer, &parent(request));
    if status >= 500 {
        span.set_status(Status::error(""));
    }
    let context = Context::new().with_remote_span_context(span.span_context().clone());
    let time = |at: Instant| started + at.duration_since(id.started());
    let within = |name: String, attribute: KeyValue, from: SystemTime, took: Duration| {
        let part = SpanBuilder::from_name(name)
            .with_kind(SpanKind::Client)
            .with_attributes([attribute]);
        part.with_start_time(from)
            .start_with_context(&tracer, &context)
            .end_with_timestamp(from + took);
    };
    if let Some(call) = ProviderCall::of(request) {
        let provider = KeyValue::new("vestibule.provider", call.provider.clone());
        within(
            "ask provider".to_owned(),
            provider,
            time(call.from),
            call.took,
        );
    }
    let steps = mem::take(
        &mut *request
            .local_cache(Steps::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    for step in steps {
        within(
            step.name,
            KeyValue::new("db.system.name", "postgresql"),
            time(step.until) - step.took,
            step.took,
        );
    }
    span.end_with_timestamp(end);
}
