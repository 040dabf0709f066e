//! The errors that a route can answer, collected from its guards and its handler.
//!
//! Each guard lists its errors once, next to the code that fails. Names, statuses and advice come
//! from the catalogue. So a route's description follows its guards.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::schema::{
    AllOfBuilder, KnownFormat, Object, ObjectBuilder, SchemaFormat, Type,
};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use super::headers;
use crate::web::problem::{Entry, ErrorCode, names};

/// A guard, the database, or a handler's own rules: anything that can fail a request.
pub trait ErrorResponses {
    /// Returns the kinds of problems that it can cause.
    fn kinds() -> impl Iterator<Item = ErrorCode>;
}

impl<A: ErrorResponses, B: ErrorResponses> ErrorResponses for (A, B) {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        A::kinds().chain(B::kinds())
    }
}

impl<A: ErrorResponses, B: ErrorResponses, C: ErrorResponses> ErrorResponses for (A, B, C) {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        A::kinds().chain(B::kinds()).chain(C::kinds())
    }
}

/// Names the errors of a guard.
macro_rules! errors {
    ($guard:ty: $kinds:expr) => {
        impl $crate::web::openapi::problems::ErrorResponses for $guard {
            fn kinds() -> impl Iterator<Item = $crate::web::problem::ErrorCode> {
                IntoIterator::into_iter($kinds)
            }
        }
    };
}
pub(crate) use errors;

/// Names the errors of a handler, in addition to its guards' errors.
macro_rules! failures {
    ($(#[$doc:meta])* $visible:vis $name:ident: $($kind:expr),* $(,)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        $visible enum $name {}

        $crate::web::openapi::problems::errors!($name: [$($kind),*]);
    };
}
pub(crate) use failures;

failures!(
    /// No errors except [`ANYWHERE`].
    pub NoErrors:
);

failures!(
    /// The error that nothing has the requested name.
    pub NotFoundOnly: ErrorCode::NotFound
);

/// The errors that every route can answer.
pub const ANYWHERE: [ErrorCode; 1] = [ErrorCode::InternalError];

/// The responses of a route in `#[utoipa::path]`: the errors of `T`, and [`ANYWHERE`].
#[derive(Debug)]
pub struct Problems<T>(PhantomData<T>);

impl<T: ErrorResponses> IntoResponses for Problems<T> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut statuses: BTreeMap<u16, Vec<Entry>> = BTreeMap::new();
        for entry in T::kinds().chain(ANYWHERE).map(ErrorCode::entry) {
            let entries = statuses.entry(entry.status).or_default();
            if entries.iter().all(|known| known.error != entry.error) {
                entries.push(entry);
            }
        }
        let may_be_merged = |entry: &ErrorCode| match entry {
            ErrorCode::NoSuchUser | ErrorCode::InvalidAccessToken => Some(entry.entry().status),
            _ => None,
        };
        let merged: Vec<_> = T::kinds().filter_map(|kind| may_be_merged(&kind)).collect();
        let responses = statuses.into_iter().map(|(status, entries)| {
            let response = response(status, &entries, merged.contains(&status));
            (status.to_string(), response.into())
        });
        responses.collect()
    }
}

/// Describes a status with these errors. With `may_be_merged`, they may name the user who remains.
fn response(status: u16, entries: &[Entry], may_be_merged: bool) -> Response {
    let lines: Vec<_> = entries
        .iter()
        .map(
            |Entry {
                 error,
                 title,
                 remedy,
                 ..
             }| format!("`{error}`: {title}. {remedy}"),
        )
        .collect();
    let description = match &*lines {
        [line] => line.clone(),
        lines => format!("- {}", lines.join("\n- ")),
    };
    let narrowed = ObjectBuilder::new()
        .property(
            "status",
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .enum_values(Some([status])),
        )
        .property("error", names(entries.iter().copied()));
    let reasons: Vec<&str> = entries
        .iter()
        .flat_map(Entry::reasons)
        .map(Into::into)
        .collect();
    let narrowed = if reasons.is_empty() {
        narrowed
    } else {
        narrowed.property("reason", reason(reasons))
    };
    let narrowed = if may_be_merged {
        narrowed.property("merged_into", merged_into())
    } else {
        narrowed
    };
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name("Problem"))
        .item(narrowed);
    let known: Vec<_> = ErrorCode::all()
        .map(|kind| (kind.entry().error, kind.entry().status))
        .collect();
    let examples = entries.iter().map(|entry| {
        // An error with a second status has no shared example for it.
        let example: RefOr<Example> = if known.contains(&(entry.error, entry.status)) {
            RefOr::Ref(Ref::new(format!("#/components/examples/{}", entry.error)))
        } else {
            RefOr::T(described(entry))
        };
        (entry.error, example)
    });
    let content = ContentBuilder::new()
        .schema(Some(schema))
        .examples_from_iter(examples);
    let response = ResponseBuilder::new().description(description);
    let mut response = response
        .content("application/problem+json", content.build())
        .build();
    let headers =
        headers::of_problem(entries).map(|name| (name.to_owned(), headers::reference(name)));
    response.headers.extend(headers);
    response
}

fn reason(names: Vec<&str>) -> Object {
    let description = "The reason why the session is over. It is there only if the token proves that the session was \
                       the caller's, and something is known.";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .description(Some(description))
        .build()
}

fn merged_into() -> Object {
    let description = "The id of the user who remains, if the one in the path, or the one whose session it was, was merged \
                       into another.";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
        .description(Some(description))
        .build()
}

pub fn examples() -> impl Iterator<Item = (&'static str, Example)> {
    ErrorCode::all()
        .map(ErrorCode::entry)
        .map(|entry| (entry.error, described(&entry)))
}

fn described(entry: &Entry) -> Example {
    ExampleBuilder::new()
        .summary(entry.title)
        .value(Some(example(entry)))
        .build()
}

fn example(
    Entry {
        status,
        error,
        title,
        cause,
        ..
    }: &Entry,
) -> Value {
    json!({
        "type": format!("/problems/{error}"), "title": title, "status": status, "detail": cause,
        "error": error, "request_id": super::examples::REQUEST_ID,
    })
}

/// Returns the catalogue as a table in Markdown.
pub fn table() -> String {
    let row =
        |Entry {
             status,
             error,
             title,
             ..
         }: Entry| { format!("| {status} | [`{error}`](/problems/{error}) | {title} |") };
    let rows: Vec<_> = ErrorCode::all().map(ErrorCode::entry).map(row).collect();
    format!(
        "| Status | `error` | Title |\n|---|---|---|\n{}\n",
        rows.join("\n")
    )
}
