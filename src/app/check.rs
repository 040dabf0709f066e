//! Checks the database, the providers and the proxies against the settings. It changes nothing.

use std::error::Error as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, PgPool};
use tokio::time::timeout;

use super::{DATABASE, Error, LIMITS_REMEDY, POOLER_REMEDY, database, failed};
use crate::admin::Admin;
use crate::admin::sign_in::store::all as members;
use crate::clock;
use crate::config::{Config, Preset, Provider};
use crate::keys::{Rotation, signing_key};
use crate::provider::{Finding, Providers};
use crate::provider_tokens::{ProviderTokens, Readable, store};
use crate::store::error::reason;
use crate::store::migrations::{self, Difference};
use crate::store::pool::{Certificate, Place, Settings};
use crate::store::servers::{Servers, describe};
use crate::store::{disk, doubt, pooler};

/// The timeout of the connection to the database.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest difference between clocks that is not reported, in seconds. Tokens are refused from
/// [`LEEWAY`](crate::domain::claims::LEEWAY) on.
const CLOSE: i64 = 30;

#[derive(Debug)]
pub enum State {
    Ok(String),
    /// The service runs, but the item should be corrected.
    Warn {
        problem: String,
        remedy: String,
    },
    /// The service does not start, or some users cannot sign in.
    Fail {
        problem: String,
        remedy: String,
    },
}

impl State {
    fn warn(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Warn { problem: problem.into(), remedy: remedy.into() }
    }

    fn fail(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Fail { problem: problem.into(), remedy: remedy.into() }
    }
}

/// Checks the database and each provider, of one that is switched off only the revocation, and reports each result at
/// once. The settings themselves are valid by now. A problem that the check finds is not an error.
pub async fn check(config: &Config, mut say: impl FnMut(&str, State)) -> Result<(), Error> {
    if let Some(state) = proxies(config) {
        say("proxies", state);
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
                say("pooler", State::fail("mixes up the prepared statements of its clients", POOLER_REMEDY));
            }
            // The connection is no longer needed, so an error on closing it does not matter.
            let _ = connection.close().await;
            for server in servers.but(&options) {
                let subject = format!("database server {}:{}", server.get_host(), server.get_port());
                say(&subject, standby(server).await);
            }
        }
        Ok(Err(error)) => say("database", unreachable(servers, &error)),
        Err(_) => say("database", unreachable(servers, &sqlx::Error::PoolTimedOut)),
    }
    let providers = Providers::new(config.providers.clone())?;
    for provider in providers.all() {
        let settings = &provider.settings;
        if settings.enabled {
            told(settings, provider.check(clock::now()).await, &mut say);
        }
        told(settings, provider.check_revocation(clock::now()).await, &mut say);
        if !settings.enabled {
            continue;
        }
        if settings.kind() == Preset::Apple && settings.client_key.is_none() {
            let problem = "tokens cannot be revoked when an account is deleted, which Apple demands";
            let [team, key, file] =
                ["team_id", "key_id", "private_key_file"].map(|field| settings.setting(field));
            let remedy = format!("set {team}, {key} and {file}");
            say(&format!("provider {}, revocation", settings.name), State::warn(problem, remedy));
        }
        told(settings, provider.check_events(clock::now()).await, &mut say);
        if let Some(state) = events(settings, &config.public_url) {
            say(&format!("provider {}, events", settings.name), state);
        }
        if settings.name == config.admin_provider.name {
            let back = Admin::new(settings, &config.public_url).redirect_uri();
            told(settings, provider.check_code_flow(&back, clock::now()).await, &mut say);
        }
    }
    Ok(())
}

/// Says where a provider that reports events is told of our address.
fn events(provider: &Provider, public_url: &str) -> Option<State> {
    let name = &provider.name;
    let url = format!("{public_url}/api/v1/providers/{name}");
    Some(match provider.kind() {
        Preset::Apple => State::Ok(format!(
            "are received at {url}/events; register it as the server-to-server notification endpoint of the primary App ID"
        )),
        Preset::Facebook if provider.client_secret.is_none() => State::warn(
            "cannot be verified, nor can requests to delete data, which Facebook demands to be answered",
            format!("set {} to the app secret", provider.setting("client_secret")),
        ),
        Preset::Facebook => State::Ok(format!(
            "are received at {url}/events; register it as the deauthorize callback of the app, and {url}/data-deletion as its \
             data deletion request URL"
        )),
        _ if provider.ssf_url.is_some() => {
            State::Ok(format!("are received at {url}/events; register it at the provider"))
        }
        _ => return None,
    })
}

/// Warns if no proxy is configured. Rocket 0.5 has no timeouts for connections, so a proxy is part of an
/// installation.
fn proxies(config: &Config) -> Option<State> {
    let address: IpAddr = config.figment.extract_inner("address").ok()?;
    (config.proxies.are_none() && !address.is_loopback()).then(|| {
        State::warn(
            format!("the service listens on {address}, and `ROCKET_TRUSTED_PROXIES` / `trusted_proxies` is empty"),
            "put a proxy in front that drops slow clients, and list it there: without a proxy, idle connections stay open \
             forever; without the entry, all clients share one IP address",
        )
    })
}

async fn standby(server: &PgConnectOptions) -> State {
    let writes = async { doubt::is_sound(&mut server.connect().await?).await };
    match timeout(TIMEOUT, writes).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
        Ok(false) => State::Ok("reached; it is not the primary".into()),
        Ok(true) => State::fail(
            "accepts writes as well, so there are two primaries",
            "stop the one that was replaced: an instance may write to either",
        ),
        Err(error) => {
            State::warn(no_connection(&error), "start it, because the service cannot follow a failover to it")
        }
    }
}

fn unreachable(servers: &Servers, error: &sqlx::Error) -> State {
    State::fail(no_connection(error), Place::of(servers).remedy(error))
}

fn no_connection(error: &sqlx::Error) -> String {
    let why = match error {
        sqlx::Error::PoolTimedOut => "no response within five seconds".into(),
        error => reason(error),
    };
    format!("the connection failed: {why}")
}

fn connected(what: &str, here: bool, encrypted: Option<Certificate>) -> State {
    match (here, encrypted) {
        (_, Some(Certificate::Verified)) => State::Ok(format!("{what}, encrypted, certificate verified")),
        (true, Some(_)) => State::Ok(format!("{what}, on this machine, encrypted, certificate not verified")),
        (true, None) => State::Ok(format!("{what}, on this machine")),
        (false, Some(Certificate::OfAnyHost)) => State::warn(
            format!("{what}, encrypted, certificate verified, but not that it is this host's"),
            "set sslmode=verify-full in DATABASE_URL",
        ),
        (false, Some(Certificate::NotVerified)) => State::warn(
            format!("{what}, encrypted, certificate not verified"),
            "set sslmode=verify-full in DATABASE_URL, and sslrootcert for a private certificate authority",
        ),
        (false, None) => State::warn(
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
    say: &mut impl FnMut(&str, State),
) -> Result<(), Error> {
    let server = describe(connection).await?;
    let what = format!("PostgreSQL {}, {} ms to connect", server.version, took.as_millis());
    let certificate = server.encrypted.then(|| settings.certificate());
    say("database", connected(&what, settings.is_here(), certificate));
    if !pooler::keeps_time_limits(connection).await? {
        say("pooler", State::warn("drops the service's timeouts", LIMITS_REMEDY));
    }
    say("its clock", clock_state(server.now.unix_timestamp().saturating_sub(clock::now()), "the database's"));
    let closed = migrations::closed_tables(connection).await?;
    if let Some(first) = closed.first() {
        let others = match closed.len() - 1 {
            0 => String::new(),
            1 => ", nor 1 other table".into(),
            others => format!(", nor {others} other tables"),
        };
        let problem = format!("this role may not read and write {first}{others}");
        let remedy = "run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO this role as the owner of the schema";
        say("privileges", State::fail(problem, remedy));
        return Ok(());
    }
    let difference = migrations::difference(connection).await?;
    let whole = difference.missing.is_empty();
    say("schema", schema(&difference, migrations::may_create(connection).await?));
    if whole {
        let pool = database(&config.figment).await?;
        say("its disk", space(&pool).await);
        say("signing keys", signing_keys(config, &pool).await?);
        say("staff", staff(config, &pool).await);
        if let Some(state) = provider_tokens(config, &pool).await? {
            say("provider tokens", state);
        }
        pool.close().await;
    }
    Ok(())
}

fn schema(difference: &Difference, may_create: bool) -> State {
    let Difference { known, missing, altered, .. } = difference;
    match (missing.first(), difference.outgrown(), altered.first()) {
        (Some(first), ..) => {
            let problem =
                format!("{} of {known} migrations are not applied, starting with {first}", missing.len());
            if may_create {
                State::warn(problem, "the service applies them when it starts, or `vestibule migrate` now")
            } else {
                State::fail(
                    problem,
                    "run `vestibule migrate` as the role that owns the schema; this role may not create tables",
                )
            }
        }
        (_, Some((first, oldest)), _) => State::fail(
            format!(
                "migration {first} belongs to a newer release, and the schema serves version {oldest} and newer"
            ),
            "use such a version, because this one does not start with the schema",
        ),
        (.., Some(first)) => State::fail(
            format!("migration {first} was applied with different content or only in part"),
            "restore the database, or use the release that applied it",
        ),
        (None, None, None) => State::Ok(match difference.unknown.len() {
            0 => format!("all {known} migrations are applied"),
            newer => format!(
                "all {known} migrations are applied, and {newer} of a newer release, whose schema still serves this one"
            ),
        }),
    }
}

/// Checks that the database can write more than fits into its pages.
async fn space(pool: &PgPool) -> State {
    match disk::try_to_grow(pool).await {
        Ok(()) => State::Ok("has space for a test write, which was rolled back".into()),
        Err(error) => {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            State::fail(
                format!("a test write failed: {cause}"),
                "no user can sign in: free space on the database's disk if it is full, or point DATABASE_URL at the primary",
            )
        }
    }
}

/// Checks that at least one person can sign in to the admin pages, if they are set up.
async fn staff(config: &Config, pool: &PgPool) -> State {
    let admin = Admin::new(&config.admin_provider, &config.public_url);
    match (members(pool).await, admin.complete) {
        (Ok(members), true) if members.is_empty() => State::warn(
            "nobody is staff yet, so nobody can sign in to the admin pages",
            "add the first admin with `vestibule staff add EMAIL --role admin`",
        ),
        (Ok(members), false) if members.is_empty() => {
            State::Ok("nobody, and the admin pages are not set up".into())
        }
        (Ok(members), true) => State::Ok(format!("{} on the list", members.len())),
        (Ok(members), false) => {
            let [secret, page, token] = &admin.settings;
            State::warn(
                format!("{} on the list, but nobody can sign in to the admin pages", members.len()),
                format!("set {secret}, and for a provider without discovery {page} and {token}"),
            )
        }
        (Err(error), _) => State::fail(error.to_string(), "check the database"),
    }
}

async fn signing_keys(config: &Config, pool: &PgPool) -> Result<State, Error> {
    let readable = Rotation::new(pool.clone(), &config.secret_key, config.keys)?.readable().await;
    Ok(match readable {
        Ok((0, _)) => State::Ok("none yet; the first start creates one".into()),
        Ok((number, 0)) => State::Ok(format!("{number} can be decrypted with `secret_key`")),
        Ok((number, previous)) => State::Ok(format!(
            "{number} can be decrypted with `secret_key`, {previous} of them only with the previous one until the next start"
        )),
        Err(signing_key::Error::Sealed(_)) => State::fail(
            "are encrypted with another `secret_key`",
            "set that one, or replace the keys with `vestibule keys rotate --now --new-secret-key`",
        ),
        Err(error) => State::fail(error.to_string(), "check the database"),
    })
}

/// Checks that stored tokens of providers can be decrypted, and that none waits too long to be revoked.
async fn provider_tokens(config: &Config, pool: &PgPool) -> Result<Option<State>, Error> {
    let providers = Providers::new(config.providers.clone())?;
    let tokens = ProviderTokens::new(&providers, &config.secret_key).map_err(signing_key::Error::from)?;
    let Readable { current, previous, another } = tokens.readable(pool).await?;
    if another > 0 {
        let problem = format!("{another} are encrypted with another `secret_key`");
        let remedy = "set that one as well, because they cannot be revoked without it";
        return Ok(Some(State::warn(problem, remedy)));
    }
    let summaries = store::summaries(pool, &[]).await?;
    let late = |summary: &&store::Summary| {
        summary.parked > 0
            || summary.oldest_at.is_some_and(|at| clock::now() - at.unix_timestamp() > 24 * 60 * 60)
    };
    if let Some(summary) = summaries.iter().find(late) {
        let failure = summary.failure.as_deref().unwrap_or("no attempt was made");
        let problem = format!(
            "{} of removed identities are not revoked at {} for more than a day: {failure}",
            summary.waiting + summary.parked,
            summary.name,
        );
        let remedy = "correct the provider's settings, and start the service again";
        return Ok(Some(State::warn(problem, remedy)));
    }
    Ok(match (current, previous) {
        (0, 0) => None,
        (_, 0) => Some(State::Ok(format!("{current} can be decrypted with `secret_key`"))),
        _ => Some(State::Ok(format!(
            "{} can be decrypted with `secret_key`, {previous} of them only with the previous one until an instance has \
             encrypted them again",
            current + previous
        ))),
    })
}

fn told(provider: &Provider, findings: Vec<Finding>, say: &mut impl FnMut(&str, State)) {
    for Finding { endpoint, host, took, ahead, outcome, warning } in findings {
        let subject = format!("provider {}, {endpoint} ({host})", provider.name);
        let took = took.map(|took| format!(", {} ms", took.as_millis())).unwrap_or_default();
        let state = match outcome {
            Ok(well) => State::Ok(format!("{well}{took}")),
            Err(fault) => State::fail(format!("{}{took}", fault.problem), fault.remedy),
        };
        say(&subject, state);
        if let Some(warning) = warning {
            say(&subject, State::warn(warning.problem, warning.remedy));
        }
        if let Some(ahead) = ahead {
            say(&format!("{subject}, its clock"), clock_state(ahead, "the provider's"));
        }
    }
}

/// Compares another clock with this machine's; `ahead` is positive if the other one is ahead.
fn clock_state(ahead: i64, whose: &str) -> State {
    let seconds = ahead.unsigned_abs();
    let direction = if ahead < 0 { "ahead of" } else { "behind" };
    if seconds > CLOSE.unsigned_abs() {
        let problem = format!("this machine's clock is {seconds} s {direction} {whose}");
        let remedy =
            "compare both with NTP and correct the wrong one, because tokens seem too new or too old";
        return State::warn(problem, remedy);
    }
    State::Ok(format!("differs from this machine's by {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_was_not_verified_is_told() {
        let (verified, not) = (Some(Certificate::Verified), Some(Certificate::NotVerified));
        for (here, encrypted, warns, words) in [
            (false, verified, false, "encrypted, certificate verified"),
            (true, verified, false, "encrypted, certificate verified"),
            (true, not, false, "encrypted, certificate not verified"),
            (true, None, false, "on this machine"),
            (false, not, true, "encrypted, certificate not verified"),
            (false, Some(Certificate::OfAnyHost), true, "not that it is this host's"),
            (false, None, true, "not encrypted"),
        ] {
            match (warns, connected("it", here, encrypted)) {
                (false, State::Ok(said)) => assert!(said.contains(words), "{said}"),
                (true, State::Warn { problem, remedy }) => {
                    assert!(problem.contains(words) && remedy.contains("sslmode=verify-full"), "{problem}");
                }
                (_, state) => panic!("{here}, {encrypted:?}: {state:?}"),
            }
        }
    }
}
