//! The description's examples match its schemas. `tests/support/description.rs` checks every real
//! response in the same way.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::description::Document;

#[test]
fn every_body_has_an_example_and_every_example_fits_its_schema() {
    let document = Document::new();
    let mut seen = 0;
    for operation in document.operations() {
        let responses = operation.body["responses"].as_object().unwrap().values();
        for described in responses.chain([&operation.body["requestBody"]]) {
            for content in described["content"]
                .as_object()
                .into_iter()
                .flat_map(|content| content.values())
            {
                let several = content["examples"]
                    .as_object()
                    .into_iter()
                    .flat_map(|examples| examples.values());
                let before = seen;
                for value in several
                    .map(|example| document.example(example))
                    .chain(content.get("example"))
                {
                    document.assert_fits(&operation.name(), &content["schema"], value);
                    seen += 1;
                }
                let itself = operation.path == "/api/v1/openapi.json"
                    && content["schema"]["type"] == "object";
                assert!(itself || seen > before, "{}", operation.name());
            }
        }
    }
    assert!(seen > 50, "{seen}");
    for (name, header) in document.0["components"]["headers"].as_object().unwrap() {
        document.assert_fits(name, &header["schema"], &header["example"]);
    }
}

/// Responses always contain every member of their schema, so that apps need not test for one. The
/// exception is a page's refresh token, which is in its cookie.
#[test]
fn every_member_of_an_answer_is_promised() {
    let document = Document::new();
    let schemas = document.0["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas
        .iter()
        .filter(|(name, _)| !name.ends_with("Request"))
    {
        let parts = schema["allOf"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([schema]);
        for part in parts {
            let properties = part["properties"]
                .as_object()
                .into_iter()
                .flat_map(|members| members.keys());
            let in_cookie =
                |member: &&str| (name.as_str(), *member) == ("Credential", "refresh_token");
            let properties: BTreeSet<_> = properties
                .map(String::as_str)
                .filter(|name| !in_cookie(name))
                .collect();
            let required = part["required"].as_array().into_iter().flatten();
            assert_eq!(
                required.filter_map(Value::as_str).collect::<BTreeSet<_>>(),
                properties,
                "{name}"
            );
        }
    }
}
