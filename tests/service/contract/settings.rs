//! Wrong settings stop the start with one line that names the key, its source and the remedy, and
//! reveals no secret.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use vestibule::app;
use vestibule::config::{self, Config, Environment};

use crate::support::process::command;

const URL: &str = "postgres://vestibule:database-password@127.0.0.1:1/people";
const KEY: &str = "8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu";

/// Settings with which the program would start if the database existed.
const SOUND: [(&str, &str); 5] = [
    ("ROCKET_PROFILE", "release"),
    ("DATABASE_URL", URL),
    ("ROCKET_SECRET_KEY", KEY),
    ("ROCKET_PUBLIC_URL", "https://id.example.com"),
    ("IDP_CLIENT_ID", "client.example"),
];

/// Returns the sound settings with these changes.
fn environment(changes: &[(&str, &str)]) -> Environment {
    let mut environment = Environment::new();
    for (name, value) in SOUND.iter().chain(changes) {
        match *value {
            // `-` removes the variable.
            "-" => environment.remove(&OsString::from(name)),
            _ => environment.insert(name.into(), value.into()),
        };
    }
    environment
}

/// Reads settings as the program does before it opens its port. The error is the line that it
/// prints.
fn read(environment: &Environment) -> Result<(), String> {
    let config =
        Config::read(config::figment_of(environment)).map_err(|error| error.to_string())?;
    app::place(&config.figment)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn assert_sound(changes: &[(&str, &str)]) {
    assert_eq!(read(&environment(changes)), Ok(()), "{changes:?}");
}

/// Asserts that the settings are refused with a line that contains these words in order; `…` stands
/// for any text between them.
fn assert_refused(changes: &[(&str, &str)], words: &str) {
    let line = read(&environment(changes)).expect_err(&format!("{changes:?}"));
    assert_says(&line, words);
}

fn assert_says(line: &str, words: &str) {
    let found = words
        .split(" … ")
        .try_fold(line, |rest, words| Some(rest.split_once(words)?.1));
    assert!(
        found.is_some() && line.lines().count() == 1,
        "not {words}: {line}"
    );
    for secret in [KEY, "database-password", "hush"] {
        assert!(!line.contains(secret), "{secret}: {line}");
    }
}

/// Runs a command that fails, and returns its standard error.
fn run(subcommand: &str, changes: &[(&str, &str)]) -> String {
    let output = command(&[&SOUND, changes].concat(), &[subcommand])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(1), 0),
        "{changes:?}: {text}"
    );
    text
}

/// Writes a file of the tests and returns its path.
fn written(name: &str, text: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("settings-{name}"));
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn sound_settings_get_as_far_as_the_database_and_the_port() {
    assert_sound(&[]);
    let text = run("migrate", &[]);
    assert_says(
        text.trim_end(),
        "the connection to the database failed … DATABASE_URL … `people` at `127.0.0.1`, port 1 … percent-encoded",
    );
    // The service reports an occupied port before it waits for its database.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let text = run("serve", &[("ROCKET_PORT", &port)]);
    let words = format!("127.0.0.1:{port}: Address already in use … `ROCKET_PORT` / `port`");
    assert_says(text.lines().last().unwrap(), &words);
}

#[test]
fn a_mistake_is_the_programs_only_line() {
    for (name, value) in [
        ("ROCKET_PORT", "hush"),
        ("DATABASE_URL", "postgres://u:hush@db/v?port=hush"),
    ] {
        let said = read(&environment(&[(name, value)])).unwrap_err();
        let line: Value = serde_json::from_str(&run("serve", &[(name, value)])).expect("one line");
        assert_eq!(
            (line["level"].as_str(), line["message"].as_str()),
            (Some("ERROR"), Some(&*said))
        );
        let text = run("serve", &[(name, value), ("ROCKET_LOG_FORMAT", "text")]);
        assert_eq!(text, format!("vestibule: {said}\n"));
    }
}

#[test]
fn each_wrong_setting_is_named_by_its_variable() {
    for (variable, values) in [
        (
            "IDP_CLIENT_ID",
            &["", " ", "a b", ",", "a,", "a,,b", "a,b"][..],
        ),
        (
            "IDP_ADDITIONAL_CLIENT_IDS",
            &["", " ", ",", "a,", "a,,b", "a b"],
        ),
        (
            "IDP_ADDITIONAL_AUDIENCES",
            &["", " ", "a,,b", "client.example"],
        ),
        ("IDP_CLIENT_IDS", &["x"]),
        ("IDP_CLIENT_SECRET", &[""]),
        ("IDP_CLIENT_SECRET_FILE", &["/nonexistent"]),
        (
            "IDP_TOKENINFO_URL",
            &[
                "http://id.example.com/tokeninfo",
                "https://user:hush@id.example.com/",
            ],
        ),
        (
            "IDP_TOKENINFO_URL",
            &[
                "https://id.example.com/?id_token=x",
                "nonsense",
                "ftp://localhost/",
                "data:,x",
            ],
        ),
        (
            "IDP_TOKENINFO_URL",
            &[
                "http://localhost.example.com/",
                "http://10.0.0.1/",
                "http://[2001:db8::1]/",
            ],
        ),
        (
            "IDP_TOKENINFO_URL",
            &[
                "https://user@id.example.com/",
                "https://id.example.com/#fragment",
            ],
        ),
        ("IDP_PRESET", &["gogle"]),
        ("IDP_VERIFY", &["signature"]),
        ("IDP_TENANTS", &["common"]),
        ("IDP_TOKEN_AUTH", &["none"]),
        ("IDP_NONCE_FORM", &["either"]),
        ("IDP_NAME", &["Google", ""]),
        ("IDP_LINK", &["always"]),
        ("IDP_TRUST_EMAIL", &["yes"]),
        ("IDP_MAX_TOKEN_AGE", &["0", "-1"]),
        (
            "ROCKET_PUBLIC_URL",
            &["http://id.example.com", "https://id.example.com/path"],
        ),
        (
            "ROCKET_PUBLIC_URL",
            &["https://id.example.com?x", "id.example.com"],
        ),
        (
            "ROCKET_SECRET_KEY",
            &["", "hush", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
        ),
        ("ROCKET_PORT", &["hush"]),
        ("ROCKET_PROT", &["8001"]),
        (
            "ROCKET_TRUSTED_PROXIES",
            &["", "proxy.example.com", "10.0.0.0/33", "10.0.0.1/8", "10"],
        ),
        (
            "ROCKET_TRUSTED_PROXIES",
            &["127.0.0.1,0.0.0.0/0", "::/0", "::ffff:0:0/96"],
        ),
        ("ROCKET_TRUSTED_PROXY", &["10.0.0.1"]),
        ("ROCKET_FORWARDED_HEADER", &["x-real-ip"]),
        ("ROCKET_IP_HEADER", &["X-Real-IP"]),
        ("ROCKET_DRAIN", &["301", "soon"]),
        ("ROCKET_LOG_LEVEL", &["verbose", "normal"]),
        (
            "DATABASE_URL",
            &[
                "mysql://vestibule:hush@db/vestibule",
                "postgres://vestibule:hush@[db/vestibule",
            ],
        ),
        (
            "DATABASE_URL",
            &["postgres://vestibule:hush@db:notaport/vestibule"],
        ),
        (
            "DATABASE_URL",
            &["postgres://vestibule:hush@db/vestibule?sslmode=sometimes"],
        ),
        (
            "DATABASE_URL",
            &["postgres://vestibule:hush@db/vestibule?port=notaport"],
        ),
    ] {
        for value in values {
            assert_refused(
                &[(variable, value)],
                &format!("configuration: `{variable}` / "),
            );
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn each_wrong_setting_is_reported_with_key_and_remedy() {
    for (variable, value, words) in [
        ("DATABASE_URL", "-", "DATABASE_URL … is missing"),
        ("ROCKET_SECRET_KEY", "-", "ROCKET_SECRET_KEY … is missing"),
        ("ROCKET_PUBLIC_URL", "-", "ROCKET_PUBLIC_URL … is missing"),
        ("IDP_CLIENT_ID", "-", "IDP_CLIENT_ID … is missing"),
        (
            "IDP_CLIENT_ID",
            "a b",
            "(set in environment variable IDP_CLIENT_ID)",
        ),
        (
            "IDP_TOKENINFO_URL",
            "https://id.example.com/tokeninfo",
            "IDP_ISSUERS",
        ),
        ("IDP_JWKS_URL", "https://id.example.com/keys", "IDP_ISSUERS"),
        ("IDP_PRESET", "keycloak", "IDP_ISSUER"),
        (
            "ROCKET_SESSION",
            "{access_token_ttl=0}",
            "session.access_token_ttl",
        ),
        (
            "ROCKET_SESSION",
            "{access_token_ttl=900,refresh_token_ttl=60}",
            "session.refresh_token_ttl",
        ),
        (
            "ROCKET_SESSION",
            "{reauthentication_window=59}",
            "session.reauthentication_window",
        ),
        (
            "ROCKET_SESSION",
            "{acess_token_ttl=900}",
            "`session.acess_token_ttl`",
        ),
        ("ROCKET_KEYS", "{announce=329}", "keys.announce"),
        ("ROCKET_KEYS", "{announce=43201}", "keys.announce"),
        ("ROCKET_KEYS", "{rotate_every=86399}", "keys.rotate_every"),
        ("ROCKET_KEYS", "{rotate=86400}", "keys.rotate"),
        (
            "ROCKET_PROVIDERS",
            "{idp={client_id=\"x\"}}",
            "providers.idp",
        ),
        (
            "ROCKET_PROVIDERS",
            "{line={client_id=\"\"}}",
            "providers.line.client_id",
        ),
        ("ROCKET_PROVIDERS", "{line={}}", "providers.line.client_id"),
        ("ROCKET_DATABASES", "{other={url=\"x\"}}", "databases.other"),
        (
            "ROCKET_DATABASES",
            "{vestibule={max_connections=0}}",
            "databases.vestibule.max_connections",
        ),
        (
            "ROCKET_DATABASES",
            "{vestibule={connect_timeout=soon}}",
            "databases.vestibule.connect_timeout",
        ),
        (
            "ROCKET_TLS",
            "{certs=\"/nonexistent\",key=\"/nonexistent\"}",
            "tls.certs",
        ),
        (
            "ROCKET_TLS",
            "{certs=\"/etc/hostname\",key=\"/nonexistent\"}",
            "tls.key",
        ),
        (
            "ROCKET_TLS",
            "{certs=\"/etc/hostname\",key=\"/etc/hostname\",mutual={}}",
            "tls.mutual",
        ),
        ("ROCKET_RATE_LIMIT", "{enabled=maybe}", "rate_limit.enabled"),
        (
            "ROCKET_RATE_LIMIT",
            "{sign_in_per_minute=0}",
            "rate_limit.sign_in_per_minute",
        ),
        (
            "ROCKET_RATE_LIMIT",
            "{refresh_per_minute=1000001}",
            "rate_limit.refresh_per_minute",
        ),
        (
            "ROCKET_RATE_LIMIT",
            "{session_per_minute=-1}",
            "rate_limit.session_per_minute",
        ),
        (
            "ROCKET_RATE_LIMIT",
            "{staff_pages_per_minute=0}",
            "rate_limit.staff_pages_per_minute",
        ),
        (
            "ROCKET_RATE_LIMIT",
            "{sign_in_per_hour=1}",
            "rate_limit.sign_in_per_hour",
        ),
        ("ROCKET_ADMIN", "{provider=nobody}", "`admin.provider`"),
        (
            "ROCKET_WEB",
            "{origins=[\"http://app.example.com\"]}",
            "`web.origins` … must be https … list the origins",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"https://app.example.com/page\"]}",
            "`web.origins` … must be one origin",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"https://app.example.com\",\"*\"]}",
            "`web.origins` … is not a URL",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"https://*.example.com\"]}",
            "`web.origins` … must be one origin, without `*`",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"null\"]}",
            "`web.origins` … is not a URL",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"capacitor://localhost/page\"]}",
            "`web.origins` … must be one origin",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"tauri://\"]}",
            "`web.origins` … must be one origin",
        ),
        (
            "ROCKET_WEB",
            "{origins=[\"file://localhost\"]}",
            "`web.origins` … must be https … web view",
        ),
        (
            "ROCKET_WEB",
            "{origins=\"https://app.example.com,\"}",
            "`web.origins` … is empty",
        ),
        (
            "ROCKET_WEB",
            "{origin=[]}",
            "`web.origin` … is not a known key; write `web.origins`, or remove it",
        ),
        (
            "ROCKET_WEB",
            "{hosts=[]}",
            "`web.hosts` … is not a known key (known: origins); fix or remove it",
        ),
        (
            "IDP_CLIENTID",
            "hush",
            "`IDP_CLIENTID` … is not a known key; write `IDP_CLIENT_ID` / `idp.client_id`",
        ),
        (
            "ROCKET_LOGFORMAT",
            "json",
            "not a known key; write `ROCKET_LOG_FORMAT` / `log_format`, or remove it",
        ),
        ("ROCKET_LOG_LEVEL", "normal", "must be one of"),
        (
            "ROCKET_SECRET_KEY",
            "[\"hush, hush, hush, hush, hush, hush\", \"too short\"]",
            "is too short",
        ),
        (
            "ROCKET_SECRET_KEY",
            "[]",
            "`ROCKET_SECRET_KEY` / `secret_key` … is missing",
        ),
        (
            "ROCKET_SECRET_KEY",
            "[\"hush, hush, hush, hush, hush, hush\", 7]",
            "must be a list of strings",
        ),
        (
            "ROCKET_SECRET_KEY",
            "7",
            "a list of the new key and the previous one",
        ),
    ] {
        assert_refused(&[(variable, value)], words);
    }
    let keycloak = [
        ("IDP_PRESET", "keycloak"),
        ("IDP_ISSUER", "http://keycloak:8080/realms/people"),
    ];
    assert_refused(
        &keycloak,
        "(set in environment variable IDP_ISSUER) … must be https … SSL_CERT_FILE",
    );
    let document = "https://id.example.com/.well-known/openid-configuration";
    let words = "IDP_ISSUER … remove `/.well-known/openid-configuration`";
    assert_refused(&[("IDP_PRESET", "oidc"), ("IDP_ISSUER", document)], words);
}

#[test]
fn an_unencoded_password_in_database_url_is_reported_without_it() {
    for password in [
        "hu/sh", "1/sh", "hu#sh", "1#sh", "hu?sh", "1?sh", "h@u/sh", "h@u?sh", "h@u#sh", "/@#",
        "h/u@sh", "h?u=s",
    ] {
        let url = format!("postgres://ada:{password}@db.invalid:5433/people?sslmode=require");
        let line = read(&environment(&[("DATABASE_URL", &url)])).unwrap_err();
        assert_says(
            &line,
            "the host `db.invalid`, port 5433 and the database `people` … cut off … `/` is %2F",
        );
        let (problem, _) = line.split_once("; ").unwrap();
        assert!(
            ["ada", "hu", "sh"]
                .iter()
                .all(|part| !problem.contains(part)),
            "{password}: {problem}"
        );
    }
    for url in [
        "postgres://db/people?password=hunter&2secret",
        "postgres://db/people?password=hun@ter&2secret",
        "postgres://db/people@x?password=hunter@2secret",
    ] {
        let line = read(&environment(&[("DATABASE_URL", url)])).unwrap_err();
        assert!(!line.contains("hun") && !line.contains("2secret"), "{line}");
    }
    assert_refused(
        &[("DATABASE_URL", "postgres://ada@db.example.com/people#x")],
        "contains a `#`",
    );
    let second = "postgres://ada:hush@db1.example.com,db2.example.com:notaport/people";
    assert_refused(&[("DATABASE_URL", second)], "invalid port number");
    let other = "postgres://ada:hush@a,b/people?target_session_attrs=prefer-standby";
    assert_refused(
        &[("DATABASE_URL", other)],
        "`target_session_attrs` … accepts writes",
    );
    let missing = "postgres://ada:hush@a/people?sslrootcert=/nonexistent.pem";
    assert_refused(
        &[("DATABASE_URL", missing)],
        "`sslrootcert`, which names a file that cannot be read",
    );
    for (wrong, nearest) in [
        ("sslmod", "sslmode"),
        ("ssl_mode", "sslmode"),
        ("pasword", "password"),
        ("sslrootcrt", "sslrootcert"),
    ] {
        let words = format!("has the parameter `{wrong}` … the nearest known one is `{nearest}`");
        assert_refused(
            &[("DATABASE_URL", &format!("postgres://u@h/d?{wrong}=hush"))],
            &words,
        );
    }
    for url in [
        "postgres://ada:p%2F@db.example.com/people",
        "postgres://ada:p@ss@db.example.com/people",
        "postgres://db.example.com",
        "postgresql://ada@localhost:1/people?host=%2Ftmp%2Fx&sslmode=VERIFY-FULL&sslrootcert=/dev/null&sslcert=/a@b",
        "postgres://db/people?user=ada&password=p@ss",
        "postgres:///people?host=/tmp&user=ada&password=p&options[lock_timeout]=1s",
        "postgres://ada:p@db1.example.com:5433,db2.example.com/people?target_session_attrs=read-write&sslmode=require",
        "postgres://ada@10.0.0.1,[::1]:5433/people?target_session_attrs=primary",
    ] {
        assert_sound(&[("DATABASE_URL", url)]);
    }
}

/// Returns the servers and the database in a URL.
fn place(url: &str) -> Result<(Vec<(String, u16)>, String), String> {
    let config = Config::read(config::figment_of(&environment(&[("DATABASE_URL", url)])));
    let place = app::place(&config.map_err(|error| error.to_string())?.figment);
    place
        .map(|place| (place.servers, place.database))
        .map_err(|error| error.to_string())
}

#[test]
fn managed_databases_urls_are_read_as_libpq_reads_them() {
    let socket = "/cloudsql/project:europe-west1:people";
    for (url, servers) in [
        // Google's Cloud SQL.
        (
            "postgres://app:p@/people?host=/cloudsql/project:europe-west1:people",
            &[(socket, 5432)][..],
        ),
        (
            "postgres://app@/people?host=/cloudsql/project:europe-west1:people&sslmode=disable",
            &[(socket, 5432)],
        ),
        (
            "postgresql:///people?host=/cloudsql/project:europe-west1:people&user=app&password=p@ss+word",
            &[(socket, 5432)],
        ),
        (
            "postgres://app:p@%2Fcloudsql%2Fproject%3Aeurope-west1%3Apeople/people",
            &[(socket, 5432)],
        ),
        (
            "postgres://app:p@localhost/people?host=/cloudsql/project:europe-west1:people",
            &[(socket, 5432)],
        ),
        (
            "postgres://app@:6543/people?host=/tmp/x",
            &[("/tmp/x", 6543)],
        ),
        // Neon.
        (
            "postgresql://app:p@ep-1-pooler.eu.aws.neon.tech/people?sslmode=verify-full&channel_binding=require",
            &[("ep-1-pooler.eu.aws.neon.tech", 5432)],
        ),
        (
            "postgres://app:p@a.neon.tech/people?sslmode=require&options=endpoint%3Dep-1",
            &[("a.neon.tech", 5432)],
        ),
        // Supabase's pooler, Azure, Heroku, Fly.
        (
            "postgresql://postgres.ref:p@aws-0.pooler.supabase.com:6543/people",
            &[("aws-0.pooler.supabase.com", 6543)],
        ),
        (
            "postgres://app%40people:p@people.postgres.database.azure.com:5432/people?sslmode=require",
            &[("people.postgres.database.azure.com", 5432)],
        ),
        (
            "postgres://u:p@ec2-1.compute-1.amazonaws.com:5432/people?ssl=true",
            &[("ec2-1.compute-1.amazonaws.com", 5432)],
        ),
        (
            "postgres://app:p@top1.nearest.of.db.internal:5432/people?sslmode=disable",
            &[("top1.nearest.of.db.internal", 5432)],
        ),
        (
            "postgres://app:p@[fdaa:0:1::3]:5433/people",
            &[("[fdaa:0:1::3]", 5433)],
        ),
        // RDS, and tuning parameters that the service replaces by its own.
        (
            "postgres://app:p@a.rds.amazonaws.com/people?sslrootcert=system&connect_timeout=10&application_name=eu-1\
             &target_session_attrs=any&keepalives=1&keepalives_idle=30&client_encoding=UTF8&gssencmode=disable",
            &[("a.rds.amazonaws.com", 5432)],
        ),
        (
            "postgres://h/people?fallback_application_name=x&channel_binding=prefer&sslcompression=0&sslsni=1",
            &[("h", 5432)],
        ),
        // Several servers.
        ("postgres://app@a:1,b/people", &[("a", 1), ("b", 5432)]),
        (
            "postgres://app@/people?host=a,b&port=5433,5434",
            &[("a", 5433), ("b", 5434)],
        ),
        (
            "postgres://app@/people?host=a,/tmp/x&port=6000",
            &[("a", 6000), ("/tmp/x", 6000)],
        ),
        (
            "postgres://app@c/people?host=a,b&target_session_attrs=read-write",
            &[("a", 5432), ("b", 5432)],
        ),
    ] {
        let (found, database) = place(url).unwrap_or_else(|line| panic!("{url}: {line}"));
        let found: Vec<_> = found
            .iter()
            .map(|(host, port)| (host.as_str(), *port))
            .collect();
        assert_eq!(
            (found, database.as_str()),
            (servers.to_vec(), "people"),
            "{url}"
        );
    }
}

#[test]
fn unsupported_database_parameters_are_named_with_a_remedy() {
    for (parameters, words) in [
        (
            "sslmode=require&channel_binding=require",
            "`channel_binding=require` … `sslmode=verify-full`",
        ),
        ("channel_binding=always", "`channel_binding` … prefer"),
        (
            "sslmode=require&sslrootcert=system",
            "`sslrootcert=system` … `sslmode=verify-full`",
        ),
        (
            "target_session_attrs=standby",
            "`target_session_attrs` … accepts writes",
        ),
        (
            "target_session_attrs=prefer-standby",
            "`target_session_attrs` … accepts writes",
        ),
        (
            "load_balance_hosts=random",
            "`load_balance_hosts` … remove it",
        ),
        ("hostaddr=10.0.0.1", "`hostaddr` … remove"),
        ("port=1,2", "2 ports … 1 host"),
        ("host=@people", "abstract … directory"),
        ("service=people", "`service` … write"),
        ("passfile=/etc/pgpass", "`passfile` … PGPASSFILE"),
        ("sslcrl=/etc/crl.pem", "`sslcrl` … remove it"),
        ("sslpassword=hush", "`sslpassword` … `sslkey`"),
        ("sslnegotiation=direct", "`sslnegotiation` … remove it"),
        ("gssencmode=require", "`gssencmode` … remove it"),
        ("require_auth=scram-sha-256", "`require_auth` … remove it"),
        ("requirepeer=postgres", "`requirepeer` … remove it"),
        (
            "ssl_min_protocol_version=TLSv1.3",
            "`ssl_min_protocol_version` … remove it",
        ),
        ("replication=database", "`replication` … remove it"),
        ("client_encoding=LATIN1", "`client_encoding` … remove it"),
        ("connect_timeout=soon", "`connect_timeout` … seconds"),
        (
            "pgbouncer=true&connection_limit=1",
            "`pgbouncer` … Prisma … remove it",
        ),
        ("schema=public", "`schema` … Prisma … options"),
        ("currentSchema=public", "`currentSchema` … options"),
        ("ssl=no-verify", "`ssl` … sslmode"),
        ("uselibpqcompat=true", "`uselibpqcompat` … remove it"),
    ] {
        let url = format!("postgres://ada:hush@db.example.com/people?{parameters}");
        assert_refused(&[("DATABASE_URL", &url)], words);
    }
    assert_refused(
        &[("DATABASE_URL", "postgresql+psycopg2://ada:hush@db/people")],
        "postgresql+psycopg2 … postgres://",
    );
    assert_refused(
        &[(
            "DATABASE_URL",
            "host=/cloudsql/x user=ada password=hush dbname=people",
        )],
        "is not a PostgreSQL URL",
    );
    assert_refused(
        &[(
            "DATABASE_URL",
            "postgres://ada:hush@/people?host=a,b&port=1,notaport",
        )],
        "port",
    );
}

#[test]
fn presets_proxies_and_limits_that_are_sound_are_accepted() {
    for preset in ["google", "line", "apple", "microsoft", "facebook"] {
        assert_sound(&[("IDP_PRESET", preset)]);
    }
    assert_sound(&[
        ("IDP_PRESET", "keycloak"),
        ("IDP_ISSUER", "https://id.example.com/realms/people"),
    ]);
    assert_sound(&[("IDP_VERIFY", "both")]);
    assert_sound(&[
        (
            "ROCKET_TRUSTED_PROXIES",
            "127.0.0.1, 10.0.0.0/8,::ffff:172.16.0.0/108,2001:db8::/32",
        ),
        ("ROCKET_FORWARDED_HEADER", "forwarded"),
        (
            "ROCKET_RATE_LIMIT",
            "{enabled=false,sign_in_per_minute=1,session_per_minute=1000000}",
        ),
        ("ROCKET_IP_HEADER", "false"),
    ]);
}

#[test]
fn a_client_secret_key_must_be_complete_and_only_for_apple() {
    let sound = [
        ("IDP_PRESET", "apple"),
        ("IDP_TEAM_ID", "A1B2C3D4E5"),
        ("IDP_KEY_ID", "F6G7H8I9J0"),
        (
            "IDP_PRIVATE_KEY",
            crate::support::provider::apple::private_key(),
        ),
    ];
    assert_sound(&sound);
    for (variable, value, words) in [
        (
            "IDP_PRESET",
            "google",
            "`IDP_TEAM_ID` … is for the preset `apple` only",
        ),
        ("IDP_TEAM_ID", "-", "`IDP_TEAM_ID` … is missing"),
        ("IDP_KEY_ID", "-", "`IDP_KEY_ID` … is missing"),
        ("IDP_PRIVATE_KEY", "-", "`IDP_PRIVATE_KEY` … is missing"),
        (
            "IDP_TEAM_ID",
            "com.example.app",
            "`IDP_TEAM_ID` … is not an id of Apple's",
        ),
        (
            "IDP_PRIVATE_KEY",
            "hush",
            "`IDP_PRIVATE_KEY` … is not a private key of Apple's",
        ),
        ("IDP_PRIVATE_KEY", " ", "`IDP_PRIVATE_KEY` … is empty"),
        (
            "IDP_PRIVATE_KEY_FILE",
            "nowhere.p8",
            "`IDP_PRIVATE_KEY_FILE` … is set in addition to",
        ),
        (
            "IDP_REVOCATION_URL",
            "http://id.example.com",
            "`IDP_REVOCATION_URL` … must be https",
        ),
    ] {
        assert_refused(&[&sound[..], &[(variable, value)]].concat(), words);
    }
    let pem = sound[3].1;
    for text in [pem.replace('\n', "\\n"), format!("a comment\n{pem}\n")] {
        assert_sound(&[&sound[..], &[("IDP_PRIVATE_KEY", &text)]].concat());
    }
    for text in [
        &pem.replace("PRIVATE", "EC PRIVATE"),
        &pem.replace("MI", "NI"),
        &pem[..80],
    ] {
        let words = "`IDP_PRIVATE_KEY` … is not a private key of Apple's";
        assert_refused(&[&sound[..], &[("IDP_PRIVATE_KEY", text)]].concat(), words);
    }
    let config = Config::read(config::figment_of(&environment(&sound))).unwrap();
    assert!(!format!("{:?}", config.providers).contains(&pem[30..60]));
    let file = [
        ("IDP_PRIVATE_KEY", "-"),
        ("IDP_PRIVATE_KEY_FILE", "nowhere.p8"),
    ];
    let words = "`IDP_PRIVATE_KEY_FILE` … names a file that cannot be read";
    assert_refused(&[&sound[..], &file].concat(), words);
}

#[test]
#[cfg(unix)]
fn a_strange_variable_of_somebody_else_stops_nothing() {
    use std::os::unix::ffi::OsStringExt;
    let strange = || OsString::from_vec(b"\xff".to_vec());
    let mut environment = environment(&[]);
    environment.extend([("SOMEBODY".into(), strange()), (strange(), strange())]);
    assert_eq!(read(&environment), Ok(()));
}

#[test]
fn a_mistake_in_the_file_is_reported_with_its_path() {
    for (text, words) in [
        (
            "[default]\npublic_ulr = \"https://id.example.com\"\n",
            "public_ulr … (set in $file)",
        ),
        (
            "[default.idp]\nclient_secret = 7\n",
            "client_secret … (set in $file)",
        ),
        ("not toml", "settings-Rocket.toml"),
        // Settings in the file override our defaults.
        (
            "[default]\nlog_level = \"verbose\"\n",
            "`ROCKET_LOG_LEVEL` / `log_level` … must be one of",
        ),
        (
            "[release]\nlog_level = \"verbose\"\n",
            "`ROCKET_LOG_LEVEL` / `log_level` … must be one of",
        ),
        (
            "[default]\nip_header = \"x-real-ip\"\n",
            "`ROCKET_IP_HEADER` / `ip_header` … any client",
        ),
        (
            "[release]\nip_header = \"x-real-ip\"\n",
            "`ROCKET_IP_HEADER` / `ip_header` … any client",
        ),
        // Tables that are not profiles would be ignored.
        (
            "[providers.partner]\nclient_id = \"x\"\n",
            "`[providers]` (set in $file) … unknown profile … write `[default.providers]`",
        ),
        (
            "[idp]\nlink = \"never\"\n",
            "(set in $file) … unknown profile … write `[default.idp]`",
        ),
        (
            "[defualt.idp]\nlink = \"never\"\n",
            "(set in $file) … unknown profile … correct it to `[default]`",
        ),
        (
            "[partner]\nclient_id = \"x\"\n",
            "`[partner.client_id]` (set in $file) … unknown profile",
        ),
        (
            "[default.idp]\nlink = \"never\"\n[staging.session]\nttl = 1\n[session]\ndrain = 1\n",
            "(set in $file) … unknown profile … write `[default.session]`",
        ),
    ] {
        let file = written("Rocket.toml", text);
        assert_refused(&[("ROCKET_CONFIG", &file)], &words.replace("$file", &file));
    }
    let profiles = "[default]\n[staging]\npublic_url = \"https://staging.example.com\"\n[global]\n";
    assert_sound(&[("ROCKET_CONFIG", &written("Rocket.toml", profiles))]);
    let file = written(
        "Rocket.toml",
        "[production.session]\naccess_token_ttl = 600\n",
    );
    assert_sound(&[("ROCKET_CONFIG", &file), ("ROCKET_PROFILE", "production")]);
    fs::remove_file(&file).unwrap();
    let words =
        "environment variable ROCKET_CONFIG names a file that cannot be read … correct the path";
    assert_refused(&[("ROCKET_CONFIG", &file)], words);
}

#[test]
fn secrets_can_come_from_files_and_client_ids_be_digits() {
    let file = written("client_secret", "hush\n");
    assert_sound(&[
        ("IDP_CLIENT_SECRET_FILE", &file),
        ("IDP_CLIENT_ID", "1234567890"),
    ]);
    let twice = [
        ("IDP_CLIENT_SECRET", "hush"),
        ("IDP_CLIENT_SECRET_FILE", &file),
    ];
    assert_refused(&twice, "IDP_CLIENT_SECRET_FILE");
}

#[test]
fn the_database_and_the_secret_key_may_be_in_files() {
    let url = written("database_url", &format!("{URL}\n"));
    let key = written("secret_key", &format!("{KEY}\n"));
    let empty = written("empty", "\n");
    let url_file = [("DATABASE_URL", "-"), ("DATABASE_URL_FILE", &url)];
    let key_file = [("ROCKET_SECRET_KEY", "-"), ("ROCKET_SECRET_KEY_FILE", &key)];
    assert_sound(&[url_file, key_file].concat());
    for variable in ["DATABASE_URL", "ROCKET_SECRET_KEY"] {
        let file = format!("{variable}_FILE");
        for (changes, words) in [
            (
                &[(&*file, &*key)][..],
                "is set in addition to … remove one of them",
            ),
            (
                &[(variable, "-"), (&file, "/nonexistent")],
                "cannot be read … correct the path",
            ),
            (
                &[(variable, "-"), (&file, &empty)],
                "empty … write the secret to it",
            ),
        ] {
            assert_refused(changes, &format!("{file} … {words}"));
        }
    }
    // A value from a file is checked like a value in the variable.
    assert_refused(
        &[("DATABASE_URL", "-"), ("DATABASE_URL_FILE", &key)],
        "DATABASE_URL_FILE",
    );
    let short = [
        ("ROCKET_SECRET_KEY", "-"),
        ("ROCKET_SECRET_KEY_FILE", "/etc/hostname"),
    ];
    assert_refused(&short, "too short");
    // A new key, then the previous one.
    let two = format!("a new key, of more than 32 characters\n{KEY}\n");
    written("secret_key", &two);
    assert_sound(&key_file);
    written("secret_key", &two.repeat(2));
    assert_refused(&key_file, "ROCKET_SECRET_KEY_FILE … has more than two keys");
}

#[test]
fn a_database_elsewhere_without_tls_is_warned_of() {
    for (url, warned) in [
        ("postgres://u:hush@db.invalid/v", true),
        ("postgres://u:hush@db.invalid/v?sslmode=disable", true),
        ("postgres://u:hush@db.invalid/v?sslmode=verify-full", false),
    ] {
        let text = run("migrate", &[("DATABASE_URL", url)]);
        let words = text.contains("WARN") && text.contains("sslmode=verify-full");
        assert!(words == warned && !text.contains("hush"), "{text}");
    }
}

/// A valid secret of a webhook.
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Returns a webhook's settings; `$url` and `$secret` stand for valid values.
fn webhook(name: &str, fields: &str) -> String {
    let fields = fields
        .replace("$url", r#"url="https://shop.example.com/hush?key=hush""#)
        .replace("$secret", &format!(r#"secret="{WEBHOOK_SECRET}""#));
    format!("{{{name}={{{fields}}}}}")
}

#[test]
fn each_mistake_in_a_webhook_is_named() {
    let three =
        format!(r#"$url,secret=["{WEBHOOK_SECRET}","{WEBHOOK_SECRET}","{WEBHOOK_SECRET}"]"#);
    for (fields, words) in [
        ("$secret", "`webhooks.shop.url` … is missing"),
        ("$url", "`webhooks.shop.secret` … openssl rand"),
        (
            r#"url="hush",$secret"#,
            "`webhooks.shop.url` … is not a URL",
        ),
        (
            r#"url="http://shop.example.com/",$secret"#,
            "`webhooks.shop.url` … must be https",
        ),
        (
            r#"url="https://a:hush@shop.example.com/",$secret"#,
            "`webhooks.shop.url` … password",
        ),
        (
            r#"url="https://10.0.0.1/hush",$secret"#,
            "`webhooks.shop.url` … private_network",
        ),
        (
            r#"url="https://[::ffff:10.0.0.1]/",$secret"#,
            "`webhooks.shop.url` … private_network",
        ),
        (
            r#"url="https://0x7f.1/",$secret"#,
            "`webhooks.shop.url` … private_network",
        ),
        (
            r#"url="https://169.254.169.254/",private_network=true,$secret"#,
            "`webhooks.shop.url` … not one of the internet",
        ),
        (
            r#"$url,secret="hush""#,
            "`webhooks.shop.secret` … 24 to 64 bytes",
        ),
        (
            r#"$url,secret="whsec_aHVzaA==""#,
            "`webhooks.shop.secret` … 24 to 64 bytes",
        ),
        (
            "$url,secret=[]",
            "`webhooks.shop.secret` … one secret, or two",
        ),
        (&three, "`webhooks.shop.secret` … one secret, or two"),
        ("$url,secret=5", "`webhooks.shop.secret` … wrong type"),
        (
            r#"$url,secret_file="/nonexistent""#,
            "`webhooks.shop.secret_file` … cannot be read",
        ),
        (
            r#"$url,$secret,secret_file="/x""#,
            "`webhooks.shop.secret_file` … in addition to",
        ),
        (
            "$url,$secret,events=[]",
            "`webhooks.shop.events` … user.created",
        ),
        (
            r#"$url,$secret,events="user.createt""#,
            "`webhooks.shop.events` … user.created",
        ),
        (
            r#"$url,$secret,private_network="yes""#,
            "`webhooks.shop.private_network` … true or false",
        ),
        (
            "$url,$secret,timeout=5",
            "`webhooks.shop.timeout` … is not a known key",
        ),
    ] {
        assert_refused(&[("ROCKET_WEBHOOKS", &webhook("shop", fields))], words);
    }
    let name = [("ROCKET_WEBHOOKS", &*webhook("Shop", "$url,$secret"))];
    assert_refused(&name, "`webhooks.Shop` … 1 to 32 of a-z");
    let file = written(
        "webhook",
        &format!("{WEBHOOK_SECRET}\n\n{WEBHOOK_SECRET}\n"),
    );
    for fields in [
        &*format!(r#"$url,secret_file="{file}",events="user.created,user.deleted""#),
        r#"url="https://10.0.0.1/",private_network=true,$secret"#,
        r#"url="http://localhost:9/",$secret"#,
    ] {
        assert_sound(&[("ROCKET_WEBHOOKS", &webhook("shop", fields))]);
    }
}

#[test]
fn no_debug_output_shows_a_secret_or_a_url() {
    let settings =
        serde_json::json!({ "url": "https://shop.example.com/hush", "secret": WEBHOOK_SECRET });
    let figment =
        crate::support::app::figment("postgres://127.0.0.1:1/x", "http://127.0.0.1:1/tokeninfo");
    let config = Config::read(figment.merge(("webhooks.shop", settings))).unwrap();
    let webhooks = vestibule::webhooks::Webhooks::new(config.webhooks).unwrap();
    let shown = format!("{webhooks:?}");
    assert!(
        shown.contains("shop") && !shown.contains("hush") && !shown.contains("shop.example"),
        "{shown}"
    );
    let bytes = format!("{:?}", &[0x31, 0xf2, 0x90, 0xf6]);
    assert!(
        !shown.contains("MfKQ") && !shown.contains(bytes.trim_matches(['[', ']'])),
        "{shown}"
    );
}
