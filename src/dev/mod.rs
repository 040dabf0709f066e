//! The defaults with which `cargo run` works without settings: an embedded PostgreSQL, an identity
//! provider, generated secrets.
//!
//! Each replaces a missing setting and never overrides an existing one. None of it is compiled into
//! a release build or used in the `release` profile.

mod error;
mod files;
mod hosts;
pub mod identity_provider;
pub mod postgres;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use figment::Figment;
use figment::value::magic::RelativePathBuf;
use rocket::{Build, Rocket};

pub use self::error::Error;
use self::identity_provider::IdentityProvider;
use self::postgres::{Options, Postgres};
use crate::accounts::seed;
use crate::accounts::seed::Added;
use crate::admin::staff::store::add;
use crate::app;
use crate::domain::{Author, Email, Role};

const CLIENT_ID: &str = "vestibule-development";
const DATABASE: &str = "vestibule";
/// The extension for searches by parts of names. A migration creates its indexes if the extension
/// exists.
const TRIGRAMS: &str = "pg_trgm";
/// If one of these settings is present, a provider is configured.
const PROVIDER: [&str; 3] = ["idp.client_id", "idp.tokeninfo_url", "idp.preset"];
/// The setting for another directory.
const DIRECTORY: &str = "dev_dir";
const STAFF: &str = "ada@example.com";

/// The development servers, which run until this value is dropped.
#[derive(Debug, Default)]
pub struct Development {
    postgres: Option<Postgres>,
    identity_provider: Option<IdentityProvider>,
    provider_name: String,
    base: String,
}

/// Fills in missing settings, except in the `release` profile.
pub fn prepare(figment: Figment) -> Result<(Figment, Development), Error> {
    fill_in(figment, false)
}

/// Fills in missing settings for a command, except in the `release` profile. The command uses the
/// database of a running server, if there is one.
pub fn prepare_if_development(figment: Figment) -> Result<(Figment, Development), Error> {
    fill_in(figment, true)
}

/// Returns an error in the `release` profile, whose database is not for made-up users.
pub fn refuse_release(figment: &Figment) -> Result<(), Error> {
    if figment.profile() == rocket::Config::RELEASE_PROFILE {
        Err(Error::Release)
    } else {
        Ok(())
    }
}

fn fill_in(mut figment: Figment, beside_a_server: bool) -> Result<(Figment, Development), Error> {
    let mut development = Development::default();
    if refuse_release(&figment).is_err() {
        return Ok((figment, development));
    }
    let directory = directory(&figment);
    fs::create_dir_all(&directory).map_err(|error| Error::File(directory.clone(), error))?;

    if !figment.contains("secret_key") {
        let key = files::secret(&directory.join("secret_key"))?;
        figment = figment.merge(("secret_key", key.expose()));
    }
    let base = base(&figment);
    figment = figment.join(("public_url", &base));
    let templates = project().join("templates");
    if templates.is_dir() {
        // In this directory, templates are reloaded when they change.
        figment = figment.join(("template_dir", templates));
    }
    if is_without_provider(&figment) {
        if !figment
            .extract_inner::<IpAddr>("address")
            .is_ok_and(|address| address.is_loopback())
        {
            return Err(Error::Exposed);
        }
        let provider = open_provider(&directory, &base)?;
        let issuer = &provider.issuer;
        figment = figment
            .merge(("idp.client_id", CLIENT_ID))
            .merge(("idp.client_secret", provider.client_secret.expose()))
            .merge(("idp.tokeninfo_url", format!("{issuer}/tokeninfo")))
            .merge(("idp.authorization_url", format!("{issuer}/authorize")))
            .merge(("idp.token_url", format!("{issuer}/token")))
            .merge(("idp.ssf_url", format!("{issuer}/ssf-configuration")))
            .merge(("idp.issuers", [issuer]))
            .merge(("idp.token_format", "jwt"));
        development.identity_provider = Some(provider);
        development.provider_name = provider_name(&figment);
    }
    if !figment.contains("databases.vestibule.url") {
        let options = Options::new(directory);
        let beside = if beside_a_server {
            Postgres::beside(&options, DATABASE)?
        } else {
            None
        };
        let url = if let Some(url) = beside {
            url
        } else {
            let postgres = Postgres::start(&options)?;
            postgres.ensure_database(DATABASE)?;
            postgres.ensure_extension(DATABASE, TRIGRAMS)?;
            development.postgres.insert(postgres).url(DATABASE)
        };
        figment = figment.merge(("databases.vestibule.url", url));
    }
    development.base = base;
    Ok((figment, development))
}

/// Returns the identity provider of a server with these settings, to issue tokens without it.
pub fn provider(figment: &Figment) -> Result<IdentityProvider, Error> {
    refuse_release(figment)?;
    if is_without_provider(figment) {
        open_provider(&directory(figment), &base(figment))
    } else {
        Err(Error::Real)
    }
}

fn is_without_provider(figment: &Figment) -> bool {
    PROVIDER.iter().all(|key| !figment.contains(key))
}

fn open_provider(directory: &Path, base: &str) -> Result<IdentityProvider, Error> {
    let client_secret = files::secret(&directory.join("client_secret"))?;
    let issuer = format!("{base}{}", identity_provider::PATH);
    IdentityProvider::open(directory, issuer, CLIENT_ID.to_owned(), client_secret)
}

/// Returns the name of the development provider.
pub fn provider_name(figment: &Figment) -> String {
    figment
        .extract_inner("idp.name")
        .unwrap_or_else(|_| "idp".into())
}

pub async fn seed(
    figment: &Figment,
    users: i32,
    progress: impl FnMut(i64),
) -> Result<Added, app::Error> {
    app::migrate(figment).await?;
    let pool = app::database(figment).await?;
    let added = seed::add_users(&pool, users, None, progress).await?;
    pool.close().await;
    Ok(added)
}

impl Development {
    /// Makes `STAFF` an admin, if both the database and the provider are the development ones.
    pub async fn appoint(&self, figment: &Figment) -> Result<(), app::Error> {
        // The provider itself may be mounted already.
        let all = !self.provider_name.is_empty() && self.postgres.is_some();
        if let Some(staff) = Email::parse(STAFF).filter(|_| all) {
            add(
                &app::database(figment).await?,
                staff.folded(),
                Role::Admin,
                Author::COMMAND_LINE,
            )
            .await?;
        }
        Ok(())
    }

    /// Adds the development provider, if it is in use, to a server, which then answers to the names
    /// of this machine only.
    pub fn mount(&mut self, rocket: Rocket<Build>) -> Rocket<Build> {
        let Some(provider) = self.identity_provider.take() else {
            return rocket;
        };
        let public_url: String = rocket
            .figment()
            .extract_inner("public_url")
            .unwrap_or_default();
        provider.mount(rocket.attach(hosts::fairing(&public_url)))
    }

    /// Returns the first commands to try, ready to paste; empty if a real provider is configured.
    pub fn welcome(&self) -> String {
        let Self {
            base,
            provider_name,
            ..
        } = self;
        if provider_name.is_empty() {
            return String::new();
        }
        let mint = format!(
            "{base}{}/mint?email=ada@example.com",
            identity_provider::PATH
        );
        let stored = self.postgres.as_ref().map_or_else(String::new, |postgres| {
            let url = postgres.url(DATABASE);
            format!("\nShow the stored rows:\n\n  psql '{url}' -xc 'TABLE users' -c 'TABLE identities'\n")
        });
        format!(
            "\nVestibule is ready. Sign in as ada@example.com:\n\n  \
             curl -sS {base}/api/v1/auth/oauth/{provider_name} -H 'Content-Type: application/json' \\\n    \
             -d \"{{\\\"id_token\\\":\\\"$(curl -sS '{mint}')\\\"}}\"\n{stored}\n\
             Open the admin pages as {STAFF}: {base}/admin\n"
        )
    }
}

/// Returns the project's directory, or the current one if the program was moved to another machine.
fn project() -> PathBuf {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    if project.is_dir() {
        project
    } else {
        env::current_dir().unwrap_or_default()
    }
}

/// Returns the directory of all development data: `dev_dir`, or `.vestibule` in the project, which
/// git ignores.
fn directory(figment: &Figment) -> PathBuf {
    let set = figment
        .extract_inner(DIRECTORY)
        .map(|path: RelativePathBuf| path.relative());
    set.unwrap_or_else(|_| project().join(".vestibule"))
}

/// Returns the service's own URL. A wrong port is reported when the settings are read.
pub fn base(figment: &Figment) -> String {
    format!(
        "http://127.0.0.1:{}",
        figment.extract_inner("port").unwrap_or(8000_u16)
    )
}
