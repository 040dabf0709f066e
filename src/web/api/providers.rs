//! `GET /api/v1/auth/providers`: the identity providers that an app can offer.

use std::collections::BTreeMap;

use rocket::http::ContentType;
use rocket::{State, get};
use serde::Serialize;
use strum::VariantNames;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::config;
use crate::domain::presets;
use crate::domain::{NonceForm, NoncePolicy, NonceRule};
use crate::provider::Providers;
use crate::web::guard::RateLimited;
use crate::web::guard::rate_limited::Refresh;
use crate::web::{Cached, Problem, Problems, resource};

resource!("Session": list_providers);

/// The identity providers.
#[derive(Serialize, ToSchema)]
#[schema(as = Providers)]
struct ProviderList<'a> {
    /// The providers that are switched on: the default one, then the others by name.
    providers: Vec<Provider<'a>>,
}

/// An identity provider, as an app needs to know it. All of it is public.
#[derive(Serialize, ToSchema)]
struct Provider<'a> {
    /// The provider's name, as in the path of the sign-in.
    name: &'a str,
    /// The kind of provider, for the choice of the SDK and the button.
    #[schema(schema_with = kinds)]
    kind: &'static str,
    /// The issuer with a discovery document, for OpenID Connect libraries; `null` if the SDK knows
    /// its provider.
    #[schema(required = true)]
    issuer: Option<&'a str>,
    /// The backend's client id, which some SDKs call the server client id. An app that has a client
    /// id of its own uses that as well.
    client_id: &'a str,
    #[serde(flatten)]
    nonce: Nonce,
    /// The rules of client ids that have their own, by client id.
    #[schema(additional_properties)]
    clients: BTreeMap<&'a str, Nonce>,
}

/// The rule for nonces.
#[derive(Serialize, ToSchema)]
struct Nonce {
    /// `both_or_neither`: a nonce in the request or in the token requires one in the other. `if_sent`: the token alone may
    /// have one, for SDKs that make it up. `always`: both must have one.
    #[schema(schema_with = names::<NonceRule>)]
    nonce: NonceRule,
    /// The form in which the SDK is given the nonce: `raw`, or `sha256` for its SHA-256 in
    /// lower-case hex. The request always has the raw one.
    #[schema(schema_with = names::<NonceForm>)]
    nonce_form: NonceForm,
}

/// Describes a string that is the name of a preset.
fn kinds() -> Object {
    one_of(presets::NAMES)
}

/// Describes a string that is one of the names of an enum.
fn names<T: VariantNames>() -> Object {
    one_of(T::VARIANTS)
}

fn one_of(names: &[&'static str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names.iter().copied()))
        .build()
}

impl<'a> From<&'a config::Provider> for Provider<'a> {
    fn from(provider: &'a config::Provider) -> Self {
        let clients = provider.nonces.by_client.iter();
        Self {
            name: &provider.name,
            kind: provider.preset.name,
            issuer: provider.issuer.as_deref(),
            client_id: &provider.client_ids[0],
            nonce: provider.nonces.usual.into(),
            clients: clients
                .map(|(id, policy)| (id.as_str(), (*policy).into()))
                .collect(),
        }
    }
}

impl From<NoncePolicy> for Nonce {
    fn from(policy: NoncePolicy) -> Self {
        Self {
            nonce: policy.rule,
            nonce_form: policy.form,
        }
    }
}

/// List the identity providers
///
/// An app shows a button for each. The answer holds public values only and changes when the service
/// is restarted with other settings.
#[utoipa::path(
    responses(
        (status = 200, description = "The providers that are switched on.", body = ProviderList,
         headers(("Cache-Control" = String, description = "`public, max-age=300`"))),
        Problems<RateLimited<Refresh>>,
    ),
)]
#[get("/auth/providers")]
fn list_providers(
    _limit: RateLimited<Refresh>,
    providers: &State<Providers>,
) -> Result<Cached<(ContentType, Vec<u8>)>, Problem> {
    let mut enabled: Vec<_> = providers
        .enabled()
        .map(|provider| &provider.settings)
        .collect();
    enabled.sort_by_key(|provider| !provider.is_default());
    let list = ProviderList {
        providers: enabled.into_iter().map(Provider::from).collect(),
    };
    let json = serde_json::to_vec(&list).map_err(|_| Problem::internal())?;
    Ok(Cached::for_five_minutes((ContentType::JSON, json)))
}
