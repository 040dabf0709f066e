//! The document, to be asked about its operations and schemas.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use vestibule::app::description;

use crate::support::app::Answer;

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

/// A schema of the document that values are held against.
pub struct Validator(Schemas, SchemaIndex);

impl Validator {
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.validate(value, self.1).is_ok()
    }
}

impl Document {
    pub fn new() -> Self {
        Self(serde_json::to_value(description()).unwrap())
    }

    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        self.0["paths"].as_object().unwrap().iter().flat_map(|(path, item)| {
            METHODS.into_iter().filter_map(move |method| {
                Some(Operation { method, path: path.clone(), body: item.get(method)? })
            })
        })
    }

    /// The operation of that `operationId`.
    pub fn operation(&self, id: &str) -> Operation<'_> {
        self.operations().find(|operation| operation.body["operationId"] == id).expect(id)
    }

    /// A validator for a schema of the document.
    pub fn validator(&self, schema: &Value) -> Validator {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": self.0["components"], "allOf": [schema],
        });
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.enable_format_assertions();
        compiler.add_resource("urn:vestibule", whole).unwrap();
        let index = compiler.compile("urn:vestibule", &mut schemas);
        let index = index.unwrap_or_else(|error| panic!("no sound schema: {error:#}"));
        Validator(schemas, index)
    }

    /// A validator for the JSON body of an operation.
    pub fn of_body(&self, id: &str) -> Validator {
        self.validator(&self.operation(id).body["requestBody"]["content"]["application/json"]["schema"])
    }

    /// The value that an example is, or refers to.
    pub fn example<'a>(&'a self, example: &'a Value) -> &'a Value {
        let pointer = example["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        &pointer.map_or(example, |pointer| self.0.pointer(pointer).unwrap())["value"]
    }

    /// The answer has that status, and is one that the operation may give.
    #[track_caller]
    pub fn assert_answered(&self, id: &str, status: u16, answer: &Answer) {
        assert_eq!(answer.status, status, "{id}: {}", answer.text);
        self.assert_answers(id, answer);
    }

    /// The answer is that error, and one that the operation may give.
    #[track_caller]
    pub fn assert_refused(&self, id: &str, error: &str, answer: &Answer) {
        assert_eq!(answer.error(), error, "{id}: {}", answer.text);
        self.assert_answers(id, answer);
    }

    /// The answer is one that the operation may give.
    #[track_caller]
    pub fn assert_answers(&self, id: &str, answer: &Answer) {
        let operation = self.operation(id);
        let response = &operation.body["responses"][answer.status.as_str()];
        assert!(response.is_object(), "{id} may not answer {}: {}", answer.status, answer.text);
        for name in response["headers"].as_object().into_iter().flat_map(|headers| headers.keys()) {
            // The headers that some errors of a status have and others do not.
            let having = match name.as_str() {
                "WWW-Authenticate" => Some(["invalid_access_token", "invalid_api_key"]),
                "DPoP-Nonce" => Some(["use_dpop_nonce", "invalid_dpop_proof"]),
                _ => None,
            };
            let may_lack = having.is_some_and(|errors| !errors.contains(&answer.error().as_str()));
            assert!(may_lack || answer.header(name).is_some(), "{id} {}: no {name}", answer.status);
        }
        let Some(content) = response["content"].as_object() else {
            assert_eq!(answer.text, "", "{id} {}", answer.status);
            return;
        };
        let media_type = answer.header("Content-Type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default();
        let schema = &content.get(media_type).expect("a media type that is described")["schema"];
        self.assert_fits(&format!("{id} {}", answer.status), schema, &answer.json());
    }

    /// The value fits the schema.
    #[track_caller]
    pub fn assert_fits(&self, what: &str, schema: &Value, value: &Value) {
        let Validator(schemas, index) = self.validator(schema);
        if let Err(error) = schemas.validate(value, index) {
            panic!("{what}: {error}\n{value:#}");
        }
    }
}
