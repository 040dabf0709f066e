//! Traces and log lines, as a collector receives them by OTLP.

use serde_json::{Value, json};

use crate::support::cluster::Database;
use crate::support::process::{Process, free_port};
use crate::support::provider::{Behaviour, Provider};
use crate::support::token::{claims, opaque};

/// Everything that was sent.
fn sent(collector: &Provider) -> Vec<String> {
    collector.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect()
}

/// The spans or log records in what was sent.
fn all(bodies: &[String], [resources, scopes, items]: [&str; 3]) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let documents = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
    let resources = documents.flat_map(|document| list(&document[resources]));
    let scopes = resources.flat_map(|resource| list(&resource[scopes]));
    scopes.flat_map(|scope| list(&scope[items])).collect()
}

const SPANS: [&str; 3] = ["resourceSpans", "scopeSpans", "spans"];
const LOGS: [&str; 3] = ["resourceLogs", "scopeLogs", "logRecords"];

fn attribute<'s>(span: &'s Value, name: &str) -> &'s Value {
    let known = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == name);
    known.map_or(&Value::Null, |attribute| attribute["value"].as_object().unwrap().values().next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_a_span_with_its_waits_in_it_and_a_log_record_and_joins_a_trusted_proxys_trace() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let (database, provider) = (Database::create().await, Provider::start().await);
    let collector = Provider::start().await;
    collector.behave(Behaviour::Json(json!({})));
    let mut settings = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned()),
    ];
    for trusted in [true, false] {
        if trusted {
            settings.push(("ROCKET_TRUSTED_PROXIES", "127.0.0.1".to_owned()));
        } else {
            settings.pop();
        }
        let before = sent(&collector).len();
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut service = Process::start(free_port(), &database.url, &provider.tokeninfo_url(), &settings);
        service.answers("/readyz", 200).await;
        let token = opaque();
        provider.accept(&token, claims("subject-of-ada", "ada@example.com"));
        let client = reqwest::Client::new();
        let request = client.post(format!("{}/api/v1/auth/oauth/idp", service.url));
        let request = request.header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(json!({ "id_token": token }).to_string()).send().await.unwrap();
        assert!(answer.status().is_success());
        service.answers("/api/v1/me", 401).await;
        service.terminate();
        assert!(service.ended().await.success());

        // The service sends what is left before it stops.
        let bodies = &sent(&collector)[before..];
        let spans = all(bodies, SPANS);
        let named = |name: &str| {
            let found = spans.iter().find(|span| span["name"] == name);
            found.unwrap_or_else(|| panic!("{name} is not among {spans:?}: {}", service.log()))
        };
        let sign_in = named("POST /api/v1/auth/oauth/<_>");
        assert_eq!(attribute(sign_in, "http.route"), "/api/v1/auth/oauth/<_>");
        assert_eq!(sign_in["traceId"] == TRACE, trusted, "{sign_in}");
        let asked = named("ask provider");
        assert_eq!(asked["traceId"], sign_in["traceId"]);
        assert_eq!(asked["parentSpanId"], sign_in["spanId"]);
        assert_eq!(attribute(asked, "vestibule.provider"), "idp");
        let nanos = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(nanos(sign_in, "startTimeUnixNano") <= nanos(asked, "startTimeUnixNano"));
        assert!(nanos(asked, "endTimeUnixNano") <= nanos(sign_in, "endTimeUnixNano"));
        let shared = named("sign-ins of known identities");
        assert_eq!(shared["parentSpanId"], sign_in["spanId"]);
        assert_eq!(attribute(shared, "db.system.name"), "postgresql");
        assert!(nanos(asked, "endTimeUnixNano") <= nanos(shared, "startTimeUnixNano"));
        let ready = named("GET /readyz");
        let statements = spans.iter().filter(|span| span["parentSpanId"] == ready["spanId"]);
        let statements: Vec<_> = statements.map(|span| span["name"].as_str().unwrap()).collect();
        assert!(statements.iter().any(|name| name.starts_with("SELECT")), "{statements:?}");
        assert_eq!(attribute(named("GET /api/v1/me"), "error.type"), "invalid_access_token");

        let records = all(bodies, LOGS);
        let id = attribute(sign_in, "vestibule.request_id");
        let line = records.iter().find(|record| attribute(record, "request_id") == id);
        let line = line.unwrap_or_else(|| panic!("{id} is not among {records:?}"));
        assert_eq!(
            (&line["body"]["stringValue"], &line["severityText"]),
            (&json!("request"), &json!("INFO"))
        );
        assert_eq!(attribute(line, "provider"), "idp");
        assert!(records.iter().any(|record| record["body"]["stringValue"] == "listening"), "{records:?}");
        for secret in [token.as_str(), "ada@", "subject-of"] {
            assert!(bodies.iter().all(|body| !body.contains(secret)), "{secret}: {bodies:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_cannot_be_understood_stops_the_start_and_one_that_is_away_stops_nothing() {
    let database = Database::create().await;
    let start = |url: &str| {
        let settings = [("OTEL_EXPORTER_OTLP_ENDPOINT", url), ("OTEL_EXPORTER_OTLP_TIMEOUT", "500")];
        Process::start(free_port(), &database.url, "http://127.0.0.1:1", &settings)
    };
    let mut service = start("not a url");
    assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
    assert!(service.log().contains("OTEL_EXPORTER_OTLP_"), "{}", service.log());
    let mut service = start("http://127.0.0.1:1");
    service.answers("/readyz", 200).await;
    service.terminate();
    assert!(service.ended().await.success());
}
