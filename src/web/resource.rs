//! A resource: routes that are mounted together and described under one tag.

use rocket::Route;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::domain::text::capitalized;

/// The routes of a resource and their description, as [`resource!`] collects them.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    pub tag: &'static str,
    pub routes: fn() -> Vec<Route>,
    pub paths: fn() -> OpenApi,
}

/// Defines the `RESOURCE` of a file by its tag and the functions that are its routes. The
/// function's name, in camel case, is the operation's id.
macro_rules! resource {
    ($tag:literal: $($route:ident),+) => {
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($route),+))]
        struct Paths;

        pub const RESOURCE: $crate::web::resource::Resource = $crate::web::resource::Resource {
            tag: $tag,
            routes: || rocket::routes![$($route),+],
            paths: <Paths as utoipa::OpenApi>::openapi,
        };
    };
}
pub(crate) use resource;

impl Resource {
    pub fn routes(self) -> Vec<Route> {
        (self.routes)()
    }

    pub fn description(self) -> OpenApi {
        let mut described = (self.paths)();
        for (path, item) in &mut described.paths.paths {
            for operation in operations(item) {
                operation.tags = Some(vec![self.tag.to_owned()]);
                operation.operation_id = operation.operation_id.as_deref().map(camel_case);
                // utoipa adds the parameters of Rocket's path. They may have other names than the
                // parameters of the description.
                if let Some(parameters) = &mut operation.parameters {
                    parameters.retain(|parameter| match parameter {
                        RefOr::T(Parameter {
                            name,
                            parameter_in: ParameterIn::Path,
                            ..
                        }) => path.contains(&format!("{{{name}}}")),
                        _ => true,
                    });
                }
            }
        }
        described
    }
}

pub fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        options,
        head,
        patch,
        trace,
        ..
    } = item;
    [get, put, post, delete, options, head, patch, trace]
        .into_iter()
        .flatten()
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capitalized(word))
}
