//! Checks the database, the providers and the proxies against the settings. It changes nothing.

use std::error::Error as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;

use super::{DATABASE, Error, LIMITS_REMEDY, POOLER_REMEDY, database, failed};
use crate::admin::Admin;
use crate::admin::staff::sign_in::store::all as members;
use crate::check_result::CheckResult;
use crate::clock;
use crate::config::{Config, Provider};
use crate::database::error::reason;
use crate::database::migrations::Difference;
use crate::database::pool::{Certificate, Place, Settings};
use crate::database::servers::{Servers, describe};
use crate::database::{Database, health, migrations, pooler};
use crate::keys::{Rotation, signing_key};
use crate::provider::Providers;
use crate::provider::proxy::{self, Proxy};
use crate::provider_tokens::{ProviderTokens, Readable, store};

/// The timeout of the connection to the database.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Checks the database and each provider, and reports each result at once. Of a provider that is
/// switched off, it checks only the revocation. The settings themselves are valid by now. A problem
/// that the check finds is not an error.
pub async fn check(config: &Config, mut say: impl FnMut(&str, CheckResult)) -> Result<(), Error> {
    if let Some(state) = proxies(config) {
        say("proxies", state);
    }
    if let Some(state) = outbound_proxy()? {
        say("proxy for providers", state);
    }
    let database = Settings::read(&config.figment.focus(DATABASE))?;
    let servers = &database.servers;
    let started = Instant::now();
    match timeout(TIMEOUT, servers.connect()).await {
        Ok(Ok((options, mut connection))) => {
            let took = started.elapsed();
            let mut second = options.connect().await.map_err(failed(servers))?;
            if pooler::keeps_statements(&mut connection, &mut second).await? {
                stored(config, &mut connection, &database, took, &mut say).await?;
            } else {
                say(
                    "pooler",
                    CheckResult::fail(
                        "mixes up the prepared statements of its clients",
                        POOLER_REMEDY,
                    ),
                );
            }
            // The connection is no longer needed, so an error on closing it does not matter.
            let _ = connection.close().await;
            for server in servers.but(&options) {
                let subject = format!(
                    "database server {}:{}",
                    server.get_host(),
                    server.get_port()
                );
                say(&subject, standby(server).await);
            }
        }
        Ok(Err(error)) => say("database", unreachable(servers, &error)),
        Err(_) => say("database", unreachable(servers, &sqlx::Error::PoolTimedOut)),
    }
    let providers = Providers::new(config.providers.clone())?;
    for provider in providers.all() {
        let settings = &provider.settings;
        let staff = settings.name == config.admin_provider.name;
        let redirect_uri = staff.then(|| Admin::new(settings, &config.public_url).redirect_uri());
        for (subject, check_result) in provider.check(redirect_uri.as_deref(), clock::now()).await {
            say(&subject, check_result);
        }
        if !settings.enabled {
            continue;
        }
        if let Some(problem) = settings.preset.without_client_key
            && settings.client_key.is_none()
        {
            let [team, key, file] =
                ["team_id", "key_id", "private_key_file"].map(|field| settings.setting(field));
            let remedy = format!("set {team}, {key} and {file}");
            say(
                &format!("provider {}, revocation", settings.name),
                CheckResult::warn(problem, remedy),
            );
        }
        if let Some(check_result) = events(settings, &config.public_url) {
            say(&format!("provider {}, events", settings.name), check_result);
        }
    }
    Ok(())
}

/// Says where to register our address at a provider that reports events.
fn events(provider: &Provider, public_url: &str) -> Option<CheckResult> {
    let preset = provider.preset;
    if let Some(problem) = preset.without_client_secret
        && provider.client_secret.is_none()
    {
        let remedy = format!(
            "set {} to the app secret",
            provider.setting("client_secret")
        );
        return Some(CheckResult::warn(problem, remedy));
    }
    let elsewhere = provider.ssf_url.as_ref().map(|_| "at the provider");
    let url = format!("{public_url}/api/v1/providers/{}", provider.name);
    let place = preset.messages_registered.or(elsewhere)?;
    let place = place.replace("{url}", &url);
    Some(CheckResult::Ok(format!(
        "are received at {url}/events; register it {place}"
    )))
}

/// Warns if no proxy is configured. Rocket 0.5 has no timeouts for connections, so a proxy is part
/// of an installation.
fn proxies(config: &Config) -> Option<CheckResult> {
    let address: IpAddr = config.figment.extract_inner("address").ok()?;
    (config.proxies.are_none() && !address.is_loopback()).then(|| {
        CheckResult::warn(
            format!("the service listens on {address}, and `ROCKET_TRUSTED_PROXIES` / `trusted_proxies` is empty"),
            "put a proxy in front that drops slow clients, and list it there: without a proxy, idle connections stay open \
             forever; without the entry, all clients share one IP address",
        )
    })
}

/// Names the proxy through which providers are called.
fn outbound_proxy() -> Result<Option<CheckResult>, Error> {
    if let Some(variable) = proxy::only_plain() {
        let problem =
            format!("{variable} alone is not used, because providers are called by https");
        return Ok(Some(CheckResult::warn(
            problem,
            "set HTTPS_PROXY if this machine reaches them by a proxy only",
        )));
    }
    Ok(Proxy::of_environment()?.map(|proxy| {
        let exceptions = match proxy.exceptions.as_str() {
            "" => String::new(),
            listed => format!(", but not the hosts of NO_PROXY ({listed})"),
        };
        let variable = proxy.variable;
        CheckResult::Ok(format!(
            "{proxy} ({variable}) is used{exceptions}; webhooks are sent directly"
        ))
    }))
}

async fn standby(server: &PgConnectOptions) -> CheckResult {
    let writes = async { health::is_sound(&mut server.connect().await?).await };
    match timeout(TIMEOUT, writes)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
    {
        Ok(false) => CheckResult::Ok("reached; it is not the primary".into()),
        Ok(true) => CheckResult::fail(
            "accepts writes as well, so there are two primaries",
            "stop the one that was replaced: an instance may write to either",
        ),
        Err(error) => CheckResult::warn(
            no_connection(&error),
            "start it, because the service cannot follow a failover to it",
        ),
    }
}

fn unreachable(servers: &Servers, error: &sqlx::Error) -> CheckResult {
    CheckResult::fail(no_connection(error), Place::of(servers).remedy(error))
}

fn no_connection(error: &sqlx::Error) -> String {
    let why = match error {
        sqlx::Error::PoolTimedOut => "no response within five seconds".into(),
        error => reason(error),
    };
    format!("the connection failed: {why}")
}

fn connected(what: &str, here: bool, encrypted: Option<Certificate>) -> CheckResult {
    match (here, encrypted) {
        (_, Some(Certificate::Verified)) => {
            CheckResult::Ok(format!("{what}, encrypted, certificate verified"))
        }
        (true, Some(_)) => CheckResult::Ok(format!(
            "{what}, on this machine, encrypted, certificate not verified"
        )),
        (true, None) => CheckResult::Ok(format!("{what}, on this machine")),
        (false, Some(Certificate::OfAnyHost)) => CheckResult::warn(
            format!("{what}, encrypted, certificate verified, but not that it is this host's"),
            "set sslmode=verify-full in DATABASE_URL",
        ),
        (false, Some(Certificate::NotVerified)) => CheckResult::warn(
            format!("{what}, encrypted, certificate not verified"),
            "set sslmode=verify-full in DATABASE_URL, and sslrootcert for a private certificate authority",
        ),
        (false, None) => CheckResult::warn(
            format!("{what}, on another machine and not encrypted"),
            "add sslmode=verify-full to DATABASE_URL, and sslrootcert for a private certificate authority",
        ),
    }
}

async fn stored(
    config: &Config,
    connection: &mut PgConnection,
    settings: &Settings,
    took: Duration,
    say: &mut impl FnMut(&str, CheckResult),
) -> Result<(), Error> {
    let server = describe(connection).await?;
    let what = format!(
        "PostgreSQL {}, {} ms to connect",
        server.version,
        took.as_millis()
    );
    let certificate = server.encrypted.then(|| settings.certificate());
    say(
        "database",
        connected(&what, settings.is_here(), certificate),
    );
    if !pooler::keeps_time_limits(connection).await? {
        say(
            "pooler",
            CheckResult::warn("drops the service's timeouts", LIMITS_REMEDY),
        );
    }
    say(
        "its clock",
        CheckResult::of_clock(
            server.now.unix_timestamp().saturating_sub(clock::now()),
            "the database's",
        ),
    );
    let closed = migrations::closed_tables(connection).await?;
    if let Some(first) = closed.first() {
        let others = match closed.len() - 1 {
            0 => String::new(),
            1 => ", nor 1 other table".into(),
            others => format!(", nor {others} other tables"),
        };
        let problem = format!("this role may not read and write {first}{others}");
        let remedy = "run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO this role as the owner of the schema";
        say("privileges", CheckResult::fail(problem, remedy));
        return Ok(());
    }
    let difference = migrations::difference(connection).await?;
    let whole = difference.missing.is_empty();
    say(
        "schema",
        schema(&difference, migrations::may_create(connection).await?),
    );
    if whole {
        let database = database(&config.figment).await?;
        say("its disk", space(&database).await);
        say("signing keys", signing_keys(config, &database).await?);
        say("staff", staff(config, &database).await);
        if let Some(state) = provider_tokens(config, &database).await? {
            say("provider tokens", state);
        }
        database.close().await;
    }
    Ok(())
}

fn schema(difference: &Difference, may_create: bool) -> CheckResult {
    let Difference {
        known,
        missing,
        altered,
        ..
    } = difference;
    match (missing.first(), difference.outgrown(), altered.first()) {
        (Some(first), ..) => {
            let problem = format!(
                "{} of {known} migrations are not applied, starting with {first}",
                missing.len()
            );
            if may_create {
                CheckResult::warn(
                    problem,
                    "the service applies them when it starts, or `vestibule migrate` now",
                )
            } else {
                CheckResult::fail(
                    problem,
                    "run `vestibule migrate` as the role that owns the schema; this role may not create tables",
                )
            }
        }
        (_, Some((first, oldest)), _) => CheckResult::fail(
            format!(
                "migration {first} belongs to a newer release, and the schema serves version {oldest} and newer"
            ),
            "use such a version, because this one does not start with the schema",
        ),
        (.., Some(first)) => CheckResult::fail(
            format!("migration {first} was applied with different content or only in part"),
            "restore the database, or use the release that applied it",
        ),
        (None, None, None) => CheckResult::Ok(match difference.unknown.len() {
            0 => format!("all {known} migrations are applied"),
            newer => format!(
                "all {known} migrations are applied, and {newer} of a newer release, whose schema still serves this one"
            ),
        }),
    }
}

/// Checks that the database can write more than fits into its pages.
async fn space(database: &Database) -> CheckResult {
    match database.try_to_grow().await {
        Ok(()) => CheckResult::Ok("has space for a test write, which was rolled back".into()),
        Err(error) => {
            let cause = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            CheckResult::fail(
                format!("a test write failed: {cause}"),
                "no user can sign in: free space on the database's disk if it is full, or point DATABASE_URL at the primary",
            )
        }
    }
}

/// Checks that at least one person can sign in to the admin pages, if they are set up.
async fn staff(config: &Config, database: &Database) -> CheckResult {
    let admin = Admin::new(&config.admin_provider, &config.public_url);
    match (members(database).await, admin.complete) {
        (Ok(members), true) if members.is_empty() => CheckResult::warn(
            "nobody is staff yet, so nobody can sign in to the admin pages",
            "add the first admin with `vestibule staff add EMAIL --role admin`",
        ),
        (Ok(members), false) if members.is_empty() => {
            CheckResult::Ok("nobody, and the admin pages are not set up".into())
        }
        (Ok(members), true) => CheckResult::Ok(format!("{} on the list", members.len())),
        (Ok(members), false) => {
            let [secret, page, token] = &admin.settings;
            CheckResult::warn(
                format!(
                    "{} on the list, but nobody can sign in to the admin pages",
                    members.len()
                ),
                format!("set {secret}, and for a provider without discovery {page} and {token}"),
            )
        }
        (Err(error), _) => CheckResult::fail(error.to_string(), "check the database"),
    }
}

async fn signing_keys(config: &Config, database: &Database) -> Result<CheckResult, Error> {
    let readable = Rotation::new(database.clone(), &config.secret_key, config.keys)?
        .readable()
        .await;
    Ok(match readable {
        Ok((0, _)) => CheckResult::Ok("none yet; the first start creates one".into()),
        Ok((number, 0)) => CheckResult::Ok(format!("{number} can be decrypted with `secret_key`")),
        Ok((number, previous)) => CheckResult::Ok(format!(
            "{number} can be decrypted with `secret_key`, {previous} of them only with the previous one until the next start"
        )),
        Err(signing_key::Error::Sealed(_)) => CheckResult::fail(
            "are encrypted with another `secret_key`",
            "set that one, or replace the keys with `vestibule keys rotate --now --new-secret-key`",
        ),
        Err(error) => CheckResult::fail(error.to_string(), "check the database"),
    })
}

/// Checks that stored tokens of providers can be decrypted, and that no token waits too long to be
/// revoked.
async fn provider_tokens(
    config: &Config,
    database: &Database,
) -> Result<Option<CheckResult>, Error> {
    let providers = Providers::new(config.providers.clone())?;
    let tokens =
        ProviderTokens::new(&providers, &config.secret_key).map_err(signing_key::Error::from)?;
    let Readable {
        current,
        previous,
        another,
    } = tokens.readable(database).await?;
    if another > 0 {
        let problem = format!("{another} are encrypted with another `secret_key`");
        let remedy = "set that one as well, because they cannot be revoked without it";
        return Ok(Some(CheckResult::warn(problem, remedy)));
    }
    let summaries = store::summaries(database, &[]).await?;
    let late = |summary: &&store::Summary| {
        summary.parked > 0
            || summary
                .oldest_at
                .is_some_and(|at| clock::now() - at.unix_timestamp() > 24 * 60 * 60)
    };
    if let Some(summary) = summaries.iter().find(late) {
        let failure = summary.failure.as_deref().unwrap_or("no attempt was made");
        let problem = format!(
            "{} of removed identities are not revoked at {} for more than a day: {failure}",
            summary.waiting + summary.parked,
            summary.name,
        );
        let remedy = "correct the provider's settings, and start the service again";
        return Ok(Some(CheckResult::warn(problem, remedy)));
    }
    Ok(match (current, previous) {
        (0, 0) => None,
        (_, 0) => Some(CheckResult::Ok(format!(
            "{current} can be decrypted with `secret_key`"
        ))),
        _ => Some(CheckResult::Ok(format!(
            "{} can be decrypted with `secret_key`, {previous} of them only with the previous one until an instance has \
             encrypted them again",
            current + previous
        ))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_result::Fault;

    #[test]
    fn a_certificate_that_was_not_verified_is_told() {
        let verified = Some(Certificate::Verified);
        let not = Some(Certificate::NotVerified);
        for (here, encrypted, warns, words) in [
            (false, verified, false, "encrypted, certificate verified"),
            (true, verified, false, "encrypted, certificate verified"),
            (true, not, false, "encrypted, certificate not verified"),
            (true, None, false, "on this machine"),
            (false, not, true, "encrypted, certificate not verified"),
            (
                false,
                Some(Certificate::OfAnyHost),
                true,
                "not that it is this host's",
            ),
            (false, None, true, "not encrypted"),
        ] {
            match (warns, connected("it", here, encrypted)) {
                (false, CheckResult::Ok(said)) => assert!(said.contains(words), "{said}"),
                (true, CheckResult::Warn(Fault { problem, remedy })) => {
                    assert!(
                        problem.contains(words) && remedy.contains("sslmode=verify-full"),
                        "{problem}"
                    );
                }
                (_, state) => panic!("{here}, {encrypted:?}: {state:?}"),
            }
        }
    }
}
