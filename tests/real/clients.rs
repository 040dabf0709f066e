//! OAuth clients that know only the service's address: they discover it (RFC 8414), refresh (RFC
//! 6749, section 6) and revoke (RFC 7009).

use std::path::PathBuf;

use serde_json::Value;

use crate::deploy::tools::{Folder, folder};
use crate::deploy::vestibule::Vestibule;
use crate::real::installed::{command, node, printed, project, python};
use crate::support::cluster::Database;
use crate::support::provider::Provider;
use crate::support::token::{CLIENT_ID, claims};

/// An instance, and a provider whose tokens it accepts.
pub struct Signed {
    pub instance: Vestibule,
    pub folder: Folder,
    provider: Provider,
    _database: Database,
}

impl Signed {
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// Starts both, with further settings of the instance.
    pub async fn start_with(name: &str, settings: &[(&str, &str)]) -> Self {
        let folder = folder(name);
        let database = Database::create().await;
        let provider = Provider::start().await;
        let instance = Vestibule::new(&folder, &database.url, &provider.tokeninfo_url());
        let url = instance.url();
        let instance = instance.with("ROCKET_PUBLIC_URL", &url);
        let instance = instance.with_all(settings).started().await;
        Self {
            instance,
            folder,
            provider,
            _database: database,
        }
    }

    /// A valid `id_token`.
    pub fn id_token(&self) -> String {
        self.provider.token(claims("somebody", "ada@example.com"))
    }

    /// The body of the response to a sign-in.
    pub async fn credential(&self) -> Value {
        let answer = crate::real::service::sign_in(&self.instance, &self.id_token(), None).await;
        assert!(answer.status.is_success(), "{answer:?}");
        answer.json()
    }
}

/// Runs a program of ours that checks its library against the service.
async fn content(program: &str, runtime: Option<PathBuf>) {
    let Some(runtime) = runtime else { return };
    let signed = Signed::start(&format!("real-{program}")).await;
    let credential = signed.credential().await;
    let mut command = command(&runtime);
    command
        .arg(project("tests/real/clients").join(program))
        .arg(signed.instance.url())
        .arg(CLIENT_ID);
    command.arg(credential["refresh_token"].as_str().unwrap());
    println!("{}", printed(command).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn openid_client_discovers_refreshes_and_revokes() {
    content("openid_client.mjs", node()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oauth4webapi_discovers_refreshes_and_revokes() {
    content("oauth4webapi.mjs", node()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authlib_discovers_refreshes_and_revokes() {
    content("with_authlib.py", python()).await;
}
