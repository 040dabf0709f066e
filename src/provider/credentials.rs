//! Our authentication at a provider (RFC 6749 §2.3.1).

use reqwest::{Client, RequestBuilder};
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::config::{ClientAuthentication, Provider};
use crate::secret::Replaceable;

pub(super) fn post(
    client: &Client,
    provider: &Provider,
    authentication: ClientAuthentication,
    url: &Url,
    fields: &[(&str, &str)],
) -> RequestBuilder {
    let id = provider.client_ids[0].as_str();
    let secret = provider.client_secret.as_ref().map(Replaceable::now);
    let secret = secret.as_ref().map_or("", |secret| secret.expose());
    let request = client.post(url.clone());
    match authentication {
        ClientAuthentication::ClientSecretPost => {
            request.form(&[fields, &[("client_id", id), ("client_secret", secret)]].concat())
        }
        ClientAuthentication::ClientSecretBasic => {
            // Both are encoded as that section requires, so that a colon in one is not taken for
            // the separator.
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            request
                .form(fields)
                .basic_auth(encoded(id), Some(encoded(secret)))
        }
    }
}
