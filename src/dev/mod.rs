//! What makes `cargo run` enough: an embedded PostgreSQL, an identity provider, generated secrets.
//!
//! Each takes the place of a setting that is missing, and of no setting that is there. None of it
//! is compiled into a release build, and none of it acts in the `release` profile.

mod files;
pub mod identity_provider;
pub mod postgres;
pub mod seed;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

use figment::Figment;
use figment::value::magic::RelativePathBuf;
use rocket::{Build, Rocket};

use self::identity_provider::IdentityProvider;
use self::postgres::{Options, Postgres};
use crate::domain::email::Email;
use crate::domain::staff::Role;
use crate::service;

const CLIENT_ID: &str = "vestibule-development";
const DATABASE: &str = "vestibule";
/// What the search for parts of names goes by; a migration makes its indexes where it finds it.
const TRIGRAMS: &str = "pg_trgm";
/// Whoever sets one of these has a provider.
const PROVIDER: [&str; 3] = ["idp.client_id", "idp.tokeninfo_url", "idp.preset"];
/// Names another directory than the usual one.
const DIRECTORY: &str = "dev_dir";
/// The one member of staff.
const STAFF: &str = "ada@example.com";

/// Why development cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The embedded database does not start.
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    /// The identity provider does not start.
    #[error(transparent)]
    IdentityProvider(#[from] identity_provider::Error),
    /// A file cannot be kept.
    #[error("{0}: {1}; check the permissions of the folder")]
    File(PathBuf, #[source] std::io::Error),
    /// The development provider signs in anyone who asks.
    #[error(
        "configuration: `ROCKET_ADDRESS` / `address` must be of this machine alone while the development identity \
         provider is on; set it to 127.0.0.1, or configure a provider with IDP_CLIENT_ID"
    )]
    Exposed,
    /// Nothing of development acts there.
    #[error(
        "configuration: `ROCKET_PROFILE` is `release`, where nothing is for development; set it to `debug`"
    )]
    Release,
}

/// What runs beside the service until this value is dropped.
#[derive(Debug, Default)]
pub struct Development {
    postgres: Option<Postgres>,
    identity_provider: Option<IdentityProvider>,
    provider_name: String,
    base: String,
}

/// Fills in what is not configured. In the `release` profile that is nothing.
///
/// # Errors
/// See [`Error`].
pub fn prepare(figment: Figment) -> Result<(Figment, Development), Error> {
    prepare_with(figment, |options| {
        let postgres = Postgres::start(options)?;
        Ok((postgres.url(DATABASE), Some(postgres)))
    })
}

/// The same for a command that works on the database while the program may be running: if it is, the
/// database is its own.
///
/// # Errors
/// See [`Error`].
pub fn prepare_beside(figment: Figment) -> Result<(Figment, Development), Error> {
    if figment.profile() == rocket::Config::RELEASE_PROFILE {
        return Err(Error::Release);
    }
    prepare_with(figment, |options| match Postgres::start(options.clone()) {
        Ok(postgres) => Ok((postgres.url(DATABASE), Some(postgres))),
        Err(postgres::Error::InUse { .. }) => Ok((Postgres::url_beside(&options, DATABASE)?, None)),
        Err(error) => Err(error),
    })
}

/// The same, and nothing at all in the `release` profile.
///
/// # Errors
/// See [`Error`].
pub fn prepare_if_development(figment: Figment) -> Result<(Figment, Development), Error> {
    if figment.profile() == rocket::Config::RELEASE_PROFILE {
        return Ok((figment, Development::default()));
    }
    prepare_beside(figment)
}

fn prepare_with(
    mut figment: Figment,
    start: impl FnOnce(Options) -> Result<(String, Option<Postgres>), postgres::Error>,
) -> Result<(Figment, Development), Error> {
    let mut development = Development::default();
    if figment.profile() == rocket::Config::RELEASE_PROFILE {
        return Ok((figment, development));
    }
    let directory = directory(&figment);
    fs::create_dir_all(&directory).map_err(|error| Error::File(directory.clone(), error))?;

    if !figment.contains("secret_key") {
        let key = files::secret(&directory.join("secret_key"))?;
        figment = figment.merge(("secret_key", key.expose()));
    }
    let base = format!("http://127.0.0.1:{}", port(&figment));
    figment = figment.join(("public_url", &base));
    let templates = project().join("templates");
    if templates.is_dir() {
        // Read again whenever one changes.
        figment = figment.join(("template_dir", templates));
    }
    if PROVIDER.iter().all(|key| !figment.contains(key)) {
        if !figment.extract_inner::<IpAddr>("address").is_ok_and(|address| address.is_loopback()) {
            return Err(Error::Exposed);
        }
        let client_secret = files::secret(&directory.join("client_secret"))?;
        let issuer = format!("{base}{}", identity_provider::PATH);
        figment = figment
            .merge(("idp.client_id", CLIENT_ID))
            .merge(("idp.client_secret", client_secret.expose()))
            .merge(("idp.tokeninfo_url", format!("{issuer}/tokeninfo")))
            .merge(("idp.authorization_url", format!("{issuer}/authorize")))
            .merge(("idp.token_url", format!("{issuer}/token")))
            .merge(("idp.issuers", [&issuer]))
            .merge(("idp.token_format", "jwt"));
        let client_id = CLIENT_ID.to_owned();
        development.identity_provider =
            Some(IdentityProvider::open(&directory, issuer, client_id, client_secret)?);
        development.provider_name = figment.extract_inner("idp.name").unwrap_or_else(|_| "idp".into());
    }
    if !figment.contains("databases.vestibule.url") {
        let progress = Arc::new(|line: &str| eprintln!("{line}"));
        let (url, postgres) = start(Options { progress, ..Options::new(directory) })?;
        if let Some(postgres) = &postgres {
            postgres.ensure_database(DATABASE)?;
            postgres.ensure_extension(DATABASE, TRIGRAMS)?;
        }
        figment = figment.merge(("databases.vestibule.url", url));
        development.postgres = postgres;
    }
    development.base = base;
    Ok((figment, development))
}

/// What [`prepare`] would fill in for as long as the service runs, by the names of the variables.
#[must_use]
pub fn stands_in_for(figment: &Figment) -> Vec<&'static str> {
    if figment.profile() == rocket::Config::RELEASE_PROFILE {
        return Vec::new();
    }
    let filled_in = [
        ("DATABASE_URL", &["databases.vestibule.url"][..]),
        ("ROCKET_SECRET_KEY", &["secret_key"]),
        ("ROCKET_PUBLIC_URL", &["public_url"]),
        ("IDP_CLIENT_ID", &PROVIDER),
    ];
    let missing = filled_in.into_iter().filter(|(_, keys)| keys.iter().all(|key| !figment.contains(key)));
    missing.map(|(variable, _)| variable).collect()
}

impl Development {
    /// Makes the person whom the welcome names a member of staff, if this is all development.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn appoint(&self, figment: &Figment) -> Result<(), service::Error> {
        let all = self.identity_provider.is_some() && self.postgres.is_some();
        if let Some(staff) = Email::parse(STAFF).filter(|_| all) {
            service::staff::add(figment, &staff, Role::Admin).await?;
        }
        Ok(())
    }

    /// Mounts the identity provider, if there is one.
    #[must_use]
    pub fn mount(&mut self, rocket: Rocket<Build>) -> Rocket<Build> {
        match self.identity_provider.take() {
            Some(provider) => provider.mount(rocket),
            None => rocket,
        }
    }

    /// What to try first, ready to paste; empty when a real provider is configured.
    #[must_use]
    pub fn welcome(&self) -> String {
        let Self { base, provider_name, .. } = self;
        if provider_name.is_empty() {
            return String::new();
        }
        let mint = format!("{base}{}/mint?email=ada@example.com", identity_provider::PATH);
        let stored = self.postgres.as_ref().map_or_else(String::new, |postgres| {
            let url = postgres.url(DATABASE);
            format!("\nSee what was stored:\n\n  psql '{url}' -xc 'TABLE users' -c 'TABLE identities'\n")
        });
        format!(
            "\nVestibule is ready. Sign in as ada@example.com:\n\n  \
             curl -sS {base}/api/v1/auth/oauth/{provider_name} -H 'Content-Type: application/json' \\\n    \
             -d \"{{\\\"id_token\\\":\\\"$(curl -sS '{mint}')\\\"}}\"\n{stored}\n\
             Look after users, as {STAFF} again: {base}/admin\n"
        )
    }
}

/// The project's folder, or the current one where the program was carried away from it.
fn project() -> PathBuf {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    if project.is_dir() { project } else { env::current_dir().unwrap_or_default() }
}

/// Where everything of development is kept: `dev_dir`, or `.vestibule` in the project, which git ignores.
fn directory(figment: &Figment) -> PathBuf {
    let set = figment.extract_inner(DIRECTORY).map(|path: RelativePathBuf| path.relative());
    set.unwrap_or_else(|_| project().join(".vestibule"))
}

/// The port of the service. A wrong setting is found when the settings are read.
fn port(figment: &Figment) -> u16 {
    figment.extract_inner("port").unwrap_or(8000)
}
