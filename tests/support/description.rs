//! The API's description. Each response to [`App`](super::app::App) is validated against it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use vestibule::app::description;

use super::app::Answer;

/// The members of a path item that are operations.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// The document as JSON.
pub struct Document(pub Value);

/// One of its operations.
pub struct Operation<'a> {
    /// As in a path item: lower case.
    pub method: &'static str,
    pub path: String,
    pub body: &'a Value,
}

impl Operation<'_> {
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A compiled schema of the document, which validates values.
pub struct Validator(Schemas, SchemaIndex);

impl Validator {
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.validate(value, self.1).is_ok()
    }

    #[track_caller]
    fn assert_valid(&self, what: &str, value: &Value) {
        if let Err(error) = self.0.validate(value, self.1) {
            panic!("{what}: {error}\n{value:#}");
        }
    }
}

impl Document {
    pub fn new() -> Self {
        Self(serde_json::to_value(description()).unwrap())
    }

    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        self.0["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| {
                METHODS.into_iter().filter_map(move |method| {
                    Some(Operation {
                        method,
                        path: path.clone(),
                        body: item.get(method)?,
                    })
                })
            })
    }

    /// The operation of that `operationId`.
    pub fn operation(&self, id: &str) -> Operation<'_> {
        self.operations()
            .find(|operation| operation.body["operationId"] == id)
            .expect(id)
    }

    /// A validator for a schema of the document.
    pub fn validator(&self, schema: &Value) -> Validator {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": self.0["components"], "allOf": [schema],
        });
        let mut compiler = Compiler::new();
        let mut schemas = Schemas::new();
        compiler.enable_format_assertions();
        compiler.add_resource("urn:vestibule", whole).unwrap();
        let index = compiler.compile("urn:vestibule", &mut schemas);
        let index = index.unwrap_or_else(|error| panic!("no sound schema: {error:#}"));
        Validator(schemas, index)
    }

    /// The value of an example, which may be a reference.
    pub fn example<'a>(&'a self, example: &'a Value) -> &'a Value {
        let pointer = example["$ref"]
            .as_str()
            .and_then(|reference| reference.strip_prefix('#'));
        &pointer.map_or(example, |pointer| self.0.pointer(pointer).unwrap())["value"]
    }

    /// The operation for a method and a path, which may have a query.
    fn asked_for(&self, method: &str, path: &str) -> Option<Operation<'_>> {
        let path: Vec<_> = path
            .split('?')
            .next()
            .unwrap_or_default()
            .split('/')
            .collect();
        let covers = |described: &str| {
            let described: Vec<_> = described.split('/').collect();
            let mut pairs = described.iter().zip(&path);
            described.len() == path.len()
                && pairs.all(|(part, given)| part == given || part.starts_with('{'))
        };
        let meant = self
            .operations()
            .filter(|it| method.eq_ignore_ascii_case(it.method) && covers(&it.path));
        // A literal path takes precedence over a path with parameters.
        meant.min_by_key(|operation| operation.path.matches('{').count())
    }

    /// Asserts that a value fits the schema.
    #[track_caller]
    pub fn assert_fits(&self, what: &str, schema: &Value, value: &Value) {
        self.validator(schema).assert_valid(what, value);
    }
}

/// Asserts that the description contains the response, if it has an operation for the method and
/// path.
#[track_caller]
pub fn assert_described(method: &str, path: &str, answer: &Answer) {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(Document::new);
    // Compiling a schema takes longer than most requests.
    static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> =
        LazyLock::new(Mutex::default);
    let Some(operation) = DOCUMENT.asked_for(method, path) else {
        return;
    };
    let name = operation.name();
    let status = answer.status.as_u16();
    // A 304 stands for the response that the client has. Errors of provider events are described
    // for senders according to RFC 8935. Apple and Facebook get another format.
    let of_events = name == "post /api/v1/providers/{provider}/events";
    if status == 304 || of_events && answer.json()["status"] == 400 {
        return;
    }
    let media_type = answer
        .header("Content-Type")
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let response = &operation.body["responses"][answer.status.as_str()];
    assert!(
        response.is_object(),
        "{name} may not answer {status}: {}",
        answer.text
    );
    for header in response["headers"]
        .as_object()
        .into_iter()
        .flat_map(|headers| headers.keys())
    {
        // Headers that only some of the errors with this status have.
        let may_lack = match header.as_str() {
            "WWW-Authenticate" => {
                !["invalid_access_token", "invalid_api_key"].contains(&&*answer.error())
            }
            "DPoP-Nonce" => !["use_dpop_nonce", "invalid_dpop_proof"].contains(&&*answer.error()),
            _ => false,
        };
        assert!(
            may_lack || answer.header(header).is_some(),
            "{name} {status}: no {header}: {}",
            answer.text
        );
    }
    let Some(content) = response["content"].as_object() else {
        return assert_eq!(answer.text, "", "{name} {status}");
    };
    let described = content.get(media_type);
    let described =
        described.unwrap_or_else(|| panic!("{name} {status}: {media_type:?} {}", answer.text));
    let what = format!("{name} {status} {media_type}");
    let compile = || Arc::new(DOCUMENT.validator(&described["schema"]));
    let validator = COMPILED
        .lock()
        .unwrap()
        .entry(what.clone())
        .or_insert_with(compile)
        .clone();
    let value = if media_type.ends_with("json") {
        answer.json()
    } else {
        answer.text.as_str().into()
    };
    validator.assert_valid(&what, &value);
}
