//! The OpenAPI description: complete, valid, and with exactly the mounted routes.

mod examples;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use figment::Figment;
use reqwest::Method;
use serde_json::{Value, json};
use vestibule::app::{self, description};
use vestibule::config::Config;

use crate::support::app::{App, figment};
use crate::support::cluster::Database;
use crate::support::description::{self as document, Document};
use crate::support::problem::{assert_problem, catalogue};

/// Prefixes of mounted routes that are not described. This list may only shrink.
const UNDESCRIBED: [&str; 1] = ["/admin"];

/// Errors that belong to no route; the introduction describes them.
const OF_NO_ROUTE: [&str; 1] = ["method_not_allowed"];

/// Removes parameter names from a path, since Rocket and OpenAPI spell them differently.
fn anonymous(path: &str) -> String {
    let segment = |segment: &str| {
        if segment.starts_with(['<', '{']) {
            "{}".into()
        } else {
            segment.to_owned()
        }
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Returns methods and paths of the routes that the service mounts.
async fn mounted() -> BTreeSet<(String, String)> {
    let database = Database::create().await;
    let figment: Figment = figment(&database.url, "http://127.0.0.1:9/tokeninfo");
    let config = Config::read(figment).expect("the settings are sound");
    let (rocket, _) = app::build(config).await.expect("the service builds");
    rocket
        .routes()
        .map(|route| (route.method.to_string(), anonymous(route.uri.path())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_and_the_openapi_description_cover_each_other() {
    let mounted = mounted().await;
    let (described, elsewhere): (BTreeSet<_>, BTreeSet<_>) = Document::new()
        .operations()
        .map(|operation| (operation.method.to_uppercase(), anonymous(&operation.path)))
        .partition(|(_, path)| path.starts_with("/api/v1/"));
    let (api, outside): (BTreeSet<_>, BTreeSet<_>) = mounted
        .into_iter()
        .partition(|(_, path)| path.starts_with("/api/v1/"));
    assert_eq!(described, api);

    let below = |path: &str, prefix: &str| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let undescribed: BTreeSet<_> = outside.difference(&elsewhere).collect();
    for (method, path) in &undescribed {
        assert!(
            UNDESCRIBED.iter().any(|prefix| below(path, prefix)),
            "{method} {path} is not described"
        );
    }
    for prefix in UNDESCRIBED {
        assert!(
            undescribed.iter().any(|(_, path)| below(path, prefix)),
            "{prefix} need not be listed"
        );
    }
    assert_eq!(
        elsewhere.difference(&outside).next(),
        None,
        "a description without a route"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_as_json_that_may_be_cached() {
    let app = App::start().await;
    let path = "/api/v1/openapi.json";
    let answer = app.send(Method::GET, path, None, "").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(answer.header("Cache-Control"), Some("public, max-age=300"));
    assert!(answer.header("X-Request-Id").is_some());
    assert_eq!(answer.json(), Document::new().0);
    assert_eq!(
        app.send(Method::GET, path, None, "").await.text,
        answer.text,
        "the same each time"
    );
    let head = app.send(Method::HEAD, path, None, "").await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
    assert_problem(
        &app.send(Method::POST, path, None, "").await,
        405,
        "method_not_allowed",
    );
}

#[test]
fn the_document_is_openapi_3_1_and_round_trips() {
    let text = description().to_json().unwrap();
    let read: utoipa::openapi::OpenApi = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), Document::new().0);
    let document = Document::new();
    assert!(document.0["openapi"].as_str().unwrap().starts_with("3.1."));
    for member in ["title", "version", "description"] {
        assert!(
            document.0["info"][member]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{member}"
        );
    }
    for name in document.0["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        document.validator(&json!({ "$ref": format!("#/components/schemas/{name}") }));
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    fn collect<'a>(value: &'a Value, references: &mut BTreeSet<&'a str>) {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            references.insert(reference);
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
            Value::Object(members) => members
                .values()
                .for_each(|member| collect(member, references)),
            _ => {}
        }
    }
    let document = Document::new();
    let mut references = BTreeSet::new();
    collect(&document.0, &mut references);
    for reference in &references {
        let pointer = reference
            .strip_prefix('#')
            .expect("nothing outside the document");
        assert!(document.0.pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "headers"] {
        for name in document.0["components"][kind].as_object().unwrap().keys() {
            assert!(
                references.contains(format!("#/components/{kind}/{name}").as_str()),
                "{kind}: {name}"
            );
        }
    }
}

#[test]
fn every_operation_says_what_it_does_and_how_it_ends() {
    let document = Document::new();
    let tags: Vec<_> = document.0["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| &tag["name"])
        .collect();
    let schemes = document.0["components"]["securitySchemes"]
        .as_object()
        .unwrap();
    let mut ids = BTreeSet::new();
    for (name, item) in document.0["webhooks"].as_object().expect("webhooks") {
        let words =
            ["summary", "description"].map(|word| item["post"][word].as_str().unwrap_or_default());
        assert!(
            words
                .iter()
                .all(|words| !words.is_empty() && !words.contains('\n')),
            "{name}: {words:?}"
        );
    }
    for operation in document.operations() {
        let name = operation.name();
        let body = operation.body;
        let id = body["operationId"].as_str().expect("an operationId");
        assert!(ids.insert(id), "{id} is there twice");
        assert!(
            body["summary"]
                .as_str()
                .is_some_and(|summary| !summary.contains('\n')),
            "{name}"
        );
        assert!(tags.contains(&&body["tags"][0]), "{name}");
        let responses = body["responses"].as_object().expect("responses");
        let (errors, successes): (Vec<_>, Vec<_>) = responses
            .iter()
            .partition(|(status, _)| status.starts_with(['4', '5']));
        assert!(!successes.is_empty() && !errors.is_empty(), "{name}");
        for (status, response) in successes.into_iter().chain(errors) {
            assert!(
                !response["description"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty(),
                "{name} {status}"
            );
            assert!(
                response["headers"]["X-Request-Id"].is_object(),
                "{name} {status}"
            );
        }
        let security = body["security"]
            .as_array()
            .expect("who may send it, even if that is anybody");
        for requirement in security {
            let known = requirement
                .as_object()
                .unwrap()
                .keys()
                .all(|scheme| schemes.contains_key(scheme));
            assert!(known, "{name}");
        }
        let headers = responses.get("401").map(|response| &response["headers"]);
        let has = |header: &str| headers.is_some_and(|headers| headers[header].is_object());
        // A route without a bearer token may still require a DPoP proof.
        assert_eq!(
            !security.is_empty() || has("DPoP-Nonce"),
            has("WWW-Authenticate"),
            "{name}"
        );
        let named: BTreeSet<_> = operation
            .path
            .split('/')
            .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let parameters = body["parameters"].as_array().into_iter().flatten();
        let described: BTreeSet<_> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| {
                assert_eq!(parameter["required"], true, "{name}");
                parameter["name"].as_str().unwrap()
            })
            .collect();
        assert_eq!(named, described, "{name}");
    }
}

/// Client generators mishandle some valid descriptions.
#[test]
fn nothing_is_described_that_generators_of_clients_trip_over() {
    fn members<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
        for (name, schema) in value["properties"].as_object().into_iter().flatten() {
            found.push((name, schema));
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| members(item, found)),
            Value::Object(inner) => inner.values().for_each(|inner| members(inner, found)),
            _ => {}
        }
    }
    let document = Document::new();
    for operation in document.operations() {
        for parameter in operation.body["parameters"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = parameter["name"].as_str().unwrap();
            // oapi-codegen makes a Go variable of the name, which must not collide with its own.
            let taken = [
                "error", "string", "any", "len", "type", "func", "range", "body", "params", "ctx",
            ];
            assert!(!taken.contains(&name), "{}: {name}", operation.name());
        }
    }
    let mut found = Vec::new();
    members(&document.0["components"]["schemas"], &mut found);
    assert!(found.len() > 30);
    for (name, schema) in found {
        // openapi-typescript takes a member with a default as always present.
        assert!(schema.get("default").is_none(), "{name}");
    }
}

#[test]
fn every_error_of_the_catalogue_is_described_under_its_status() {
    let document = Document::new();
    let mut described: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for operation in document.operations() {
        for (status, response) in operation.body["responses"].as_object().unwrap() {
            let content = &response["content"]["application/problem+json"];
            let Some(narrowed) = content["schema"]["allOf"].as_array() else {
                continue;
            };
            assert_eq!(narrowed[0]["$ref"], "#/components/schemas/Problem");
            let status: u64 = status.parse().unwrap();
            assert_eq!(narrowed[1]["properties"]["status"]["enum"], json!([status]));
            let names = narrowed[1]["properties"]["error"]["enum"]
                .as_array()
                .unwrap();
            assert_eq!(
                names.len(),
                content["examples"].as_object().unwrap().len(),
                "{}",
                operation.name()
            );
            assert_eq!(
                response["headers"]["Retry-After"].is_object(),
                matches!(status, 429 | 503)
            );
            for name in names {
                described
                    .entry(name.as_str().unwrap().to_owned())
                    .or_default()
                    .insert(status);
            }
        }
    }
    let introduction = document.0["info"]["description"].as_str().unwrap();
    for entry in catalogue() {
        let name = format!("`{}`", entry.error);
        assert!(introduction.contains(&name), "{name}");
        let statuses = described.remove(entry.error).unwrap_or_default();
        let mut expected: BTreeSet<u64> = BTreeSet::new();
        expected.extend((!OF_NO_ROUTE.contains(&entry.error)).then_some(u64::from(entry.status)));
        // A fault of an `id_token` is 422 if an access token is the credential.
        expected.extend(
            statuses
                .contains(&422)
                .then_some(422)
                .filter(|_| entry.status == 401),
        );
        assert_eq!(statuses, expected, "{name}");
    }
    assert_eq!(
        described.keys().next(),
        None,
        "a name that is not in the catalogue"
    );
}
