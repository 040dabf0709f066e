//! Traces and log records, as a collector receives them by OTLP.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use crate::support::cluster::Database;
use crate::support::process::{Process, free_port};
use crate::support::provider::{Behaviour, Provider};
use crate::support::token::claims;

/// The data that a collector received.
struct Sent {
    bodies: String,
    spans: Vec<Span>,
    records: Vec<LogRecord>,
}

/// Decodes the requests that a collector received after the first `before`.
fn sent(collector: &Provider, before: usize) -> Sent {
    let mut sent = Sent {
        bodies: String::new(),
        spans: Vec::new(),
        records: Vec::new(),
    };
    for request in &collector.requests()[before..] {
        sent.bodies += &String::from_utf8_lossy(&request.body);
        if request.path == "/v1/traces" {
            let spans = ExportTraceServiceRequest::decode(&*request.body)
                .unwrap()
                .resource_spans;
            let scopes = spans.into_iter().flat_map(|resource| resource.scope_spans);
            sent.spans.extend(scopes.flat_map(|scope| scope.spans));
        } else {
            let records = ExportLogsServiceRequest::decode(&*request.body)
                .unwrap()
                .resource_logs;
            let scopes = records.into_iter().flat_map(|resource| resource.scope_logs);
            sent.records
                .extend(scopes.flat_map(|scope| scope.log_records));
        }
    }
    sent
}

fn text(value: Option<&AnyValue>) -> &str {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => "",
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<&str, &str> {
    attributes
        .iter()
        .map(|attribute| (&*attribute.key, text(attribute.value.as_ref())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_exported_as_spans_and_join_a_trusted_proxys_trace() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let database = Database::create().await;
    let provider = Provider::start().await;
    let collector = Provider::start().await;
    collector.behave(Behaviour::Status {
        code: 200,
        headers: Vec::new(),
        body: Vec::new(),
    });
    let mut settings = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())];
    for trusted in [true, false] {
        if trusted {
            settings.push(("ROCKET_TRUSTED_PROXIES", "127.0.0.1".to_owned()));
        } else {
            settings.pop();
        }
        let before = collector.requests().len();
        let settings: Vec<_> = settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut service = Process::ready(&database, &provider, &settings).await;
        let token = provider.token(claims("subject-of-ada", "ada@example.com"));
        let parent = [("traceparent", &*format!("00-{TRACE}-00f067aa0ba902b7-01"))];
        let body = json!({ "id_token": token });
        assert!(
            service
                .post("/api/v1/auth/oauth/idp", &parent, &body)
                .await
                .status
                .is_success()
        );
        service.answers("/api/v1/me", 401).await;
        service.terminate();
        assert!(service.ended().await.success());

        // The service sends the rest before it stops.
        let Sent {
            bodies,
            spans,
            records,
        } = sent(&collector, before);
        let named = |name: &str| {
            let found = spans.iter().find(|span| span.name == name);
            found.unwrap_or_else(|| panic!("{name} is not among {spans:?}: {}", service.log()))
        };
        let sign_in = named("POST /api/v1/auth/oauth/<_>");
        assert_eq!(
            texts(&sign_in.attributes)["http.route"],
            "/api/v1/auth/oauth/<_>"
        );
        let trace = u128::from_be_bytes(sign_in.trace_id[..].try_into().unwrap());
        assert_eq!(format!("{trace:032x}") == TRACE, trusted, "{sign_in:?}");
        let asked = named("ask provider");
        let shared = named("sign-ins of known identities");
        assert_eq!(texts(&asked.attributes)["vestibule.provider"], "idp");
        assert_eq!(texts(&shared.attributes)["db.system.name"], "postgresql");
        for wait in [asked, shared] {
            assert_eq!(
                (&wait.trace_id, &wait.parent_span_id),
                (&sign_in.trace_id, &sign_in.span_id)
            );
        }
        let times = [
            sign_in.start_time_unix_nano,
            asked.start_time_unix_nano,
            asked.end_time_unix_nano,
            shared.start_time_unix_nano,
            shared.end_time_unix_nano,
            sign_in.end_time_unix_nano,
        ];
        assert!(times.is_sorted(), "{times:?}");
        let ready = named("GET /readyz");
        let statements = spans
            .iter()
            .filter(|span| span.parent_span_id == ready.span_id);
        let statements: Vec<_> = statements.map(|span| &span.name).collect();
        assert!(
            statements.iter().any(|name| name.starts_with("SELECT")),
            "{statements:?}"
        );
        assert_eq!(
            texts(&named("GET /api/v1/me").attributes)["error.type"],
            "invalid_access_token"
        );

        let id = texts(&sign_in.attributes)["vestibule.request_id"];
        let line = records
            .iter()
            .find(|record| texts(&record.attributes).get("request_id") == Some(&id));
        let line = line.unwrap_or_else(|| panic!("{id} is not among {records:?}"));
        assert_eq!(
            (text(line.body.as_ref()), &*line.severity_text),
            ("request", "INFO")
        );
        assert_eq!(texts(&line.attributes)["provider"], "idp");
        assert!(
            records
                .iter()
                .any(|record| text(record.body.as_ref()) == "listening"),
            "{records:?}"
        );
        for secret in [token.as_str(), "ada@", "subject-of"] {
            assert!(!bodies.contains(secret), "{secret}: {bodies}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_invalid_collector_settings_stop_the_start_not_an_unreachable_collector() {
    let database = Database::create().await;
    let start = |url: &str, protocol: &str| {
        let settings = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", protocol),
        ];
        Process::start(free_port(), &database.url, "http://127.0.0.1:1", &settings)
    };
    for (url, protocol, told) in [
        ("not a url", "", "OTEL_EXPORTER_OTLP_ variables"),
        (
            "http://127.0.0.1:1",
            "grpc",
            "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL names a protocol",
        ),
    ] {
        let mut service = start(url, protocol);
        assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
        assert!(service.log().contains(told), "{}", service.log());
    }
    let mut service = start("http://127.0.0.1:1", "http/protobuf");
    service.answers("/readyz", 200).await;
    service.terminate();
    assert!(service.ended().await.success());
}
