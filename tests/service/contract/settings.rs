//! Wrong settings stop the start with one line that names the key, where it was set and what to do,
//! and shows no secret.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

/// Settings with which the program would start, if the database were there.
const SOUND: [(&str, &str); 4] = [
    ("DATABASE_URL", "postgres://vestibule:database-password@127.0.0.1:1/vestibule"),
    ("ROCKET_SECRET_KEY", "8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu"),
    ("ROCKET_PUBLIC_URL", "https://id.example.com"),
    ("IDP_CLIENT_ID", "client.example"),
];

/// Runs the program in the release profile, outside the project, with nothing else set.
fn run(changes: &[(&str, &str)]) -> Output {
    run_with("serve", changes)
}

fn run_with(subcommand: &str, changes: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
    command
        .arg(subcommand)
        .env_clear()
        .env("ROCKET_PROFILE", "release")
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    for (name, value) in SOUND.iter().chain(changes) {
        // A blank word stands for "not set".
        if *value == "-" {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    command.output().unwrap()
}

fn assert_refused(changes: &[(&str, &str)], words: &[&str]) {
    assert_fails(run(changes), changes, words);
}

/// Settings with which the program gets as far as its port, which is taken. It does not wait for its database to
/// find that out.
fn assert_sound(changes: &[(&str, &str)]) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(&[changes, &[("ROCKET_PORT", port.as_str())]].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{changes:?}: {text}");
    let last = text.lines().last().unwrap();
    for words in [&format!("127.0.0.1:{port}: Address already in use"), "`ROCKET_PORT` / `port`"] {
        assert!(last.contains(words), "{changes:?} does not say {words}: {text}");
    }
}

/// What a command says that gets as far as its database.
const UNREACHABLE: [&str; 2] = ["the connection to the database failed", "DATABASE_URL"];

fn assert_fails(output: Output, changes: &[(&str, &str)], words: &[&str]) {
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{changes:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{changes:?}: {text}");
    assert!(output.stdout.is_empty(), "{changes:?}");
    for word in words {
        assert!(text.contains(word), "{changes:?} does not say {word}: {text}");
    }
    for secret in ["8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu", "database-password", "hush"] {
        assert!(!text.contains(secret), "{changes:?} shows a secret: {text}");
    }
}

#[test]
fn sound_settings_get_as_far_as_the_database_and_the_port() {
    assert_fails(run_with("migrate", &[]), &[], &UNREACHABLE);
    assert_sound(&[]);
}

#[test]
fn what_is_required_outside_development_is_named_when_it_is_missing() {
    for (name, _) in SOUND {
        assert_refused(&[(name, "-")], &[name, "is missing"]);
    }
}

#[test]
fn a_client_id_that_checks_no_audience_is_refused() {
    for value in ["", " ", "a b", ",", "a,", "a,,b", "a,b"] {
        assert_refused(&[("IDP_CLIENT_ID", value)], &["IDP_CLIENT_ID", "environment variable"]);
    }
    for value in ["", " ", ",", "a,", "a,,b", "a b"] {
        assert_refused(&[("IDP_ADDITIONAL_CLIENT_IDS", value)], &["IDP_ADDITIONAL_CLIENT_IDS"]);
    }
}

#[test]
fn a_setting_of_the_provider_is_named_by_its_own_variable() {
    let keycloak = [("IDP_PRESET", "keycloak"), ("IDP_ISSUER", "http://keycloak:8080/realms/people")];
    assert_refused(
        &keycloak,
        &["(set in environment variable IDP_ISSUER)", "must be https", "SSL_CERT_FILE"],
    );
    let document = "https://id.example.com/.well-known/openid-configuration";
    let settings = [("IDP_PRESET", "oidc"), ("IDP_ISSUER", document)];
    assert_refused(&settings, &["IDP_ISSUER", "remove `/.well-known/openid-configuration`"]);
}

#[test]
fn each_wrong_setting_is_named() {
    let rows = [
        ("IDP_CLIENT_IDS", "x", "IDP_CLIENT_IDS"),
        ("IDP_CLIENT_SECRET", "", "IDP_CLIENT_SECRET"),
        ("IDP_CLIENT_SECRET_FILE", "/nonexistent", "IDP_CLIENT_SECRET_FILE"),
        ("IDP_TOKENINFO_URL", "http://id.example.com/tokeninfo", "IDP_TOKENINFO_URL"),
        ("IDP_TOKENINFO_URL", "https://user:hush@id.example.com/", "IDP_TOKENINFO_URL"),
        ("IDP_TOKENINFO_URL", "https://id.example.com/?id_token=x", "IDP_TOKENINFO_URL"),
        ("IDP_TOKENINFO_URL", "nonsense", "IDP_TOKENINFO_URL"),
        ("IDP_TOKENINFO_URL", "https://id.example.com/tokeninfo", "IDP_ISSUERS"),
        ("IDP_PRESET", "gogle", "IDP_PRESET"),
        ("IDP_PRESET", "keycloak", "IDP_ISSUER"),
        ("IDP_VERIFY", "signature", "IDP_VERIFY"),
        ("IDP_JWKS_URL", "https://id.example.com/keys", "IDP_ISSUERS"),
        ("IDP_TENANTS", "common", "IDP_TENANTS"),
        ("IDP_TOKENINFO_AUTH", "none", "IDP_TOKENINFO_AUTH"),
        ("IDP_NONCE_FORM", "either", "IDP_NONCE_FORM"),
        ("IDP_NAME", "Google", "IDP_NAME"),
        ("IDP_NAME", "", "IDP_NAME"),
        ("IDP_LINK", "always", "IDP_LINK"),
        ("IDP_TRUST_EMAIL", "yes", "IDP_TRUST_EMAIL"),
        ("IDP_MAX_TOKEN_AGE", "0", "IDP_MAX_TOKEN_AGE"),
        ("IDP_MAX_TOKEN_AGE", "-1", "IDP_MAX_TOKEN_AGE"),
        ("ROCKET_PUBLIC_URL", "http://id.example.com", "ROCKET_PUBLIC_URL"),
        ("ROCKET_PUBLIC_URL", "https://id.example.com/path", "ROCKET_PUBLIC_URL"),
        ("ROCKET_PUBLIC_URL", "https://id.example.com?x", "ROCKET_PUBLIC_URL"),
        ("ROCKET_PUBLIC_URL", "id.example.com", "ROCKET_PUBLIC_URL"),
        ("ROCKET_SECRET_KEY", "", "ROCKET_SECRET_KEY"),
        ("ROCKET_SECRET_KEY", "hush", "ROCKET_SECRET_KEY"),
        ("ROCKET_SECRET_KEY", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ROCKET_SECRET_KEY"),
        ("ROCKET_PORT", "hush", "ROCKET_PORT"),
        ("ROCKET_PROT", "8001", "ROCKET_PROT"),
        ("ROCKET_SESSION", "{access_token_ttl=0}", "session.access_token_ttl"),
        ("ROCKET_SESSION", "{access_token_ttl=900,refresh_token_ttl=60}", "session.refresh_token_ttl"),
        ("ROCKET_SESSION", "{reauthentication_window=59}", "session.reauthentication_window"),
        ("ROCKET_SESSION", "{acess_token_ttl=900}", "`session.acess_token_ttl`"),
        ("ROCKET_KEYS", "{announce=329}", "keys.announce"),
        ("ROCKET_KEYS", "{announce=43201}", "keys.announce"),
        ("ROCKET_KEYS", "{rotate_every=86399}", "keys.rotate_every"),
        ("ROCKET_KEYS", "{rotate=86400}", "keys.rotate"),
        ("ROCKET_PROVIDERS", "{idp={client_id=\"x\"}}", "providers.idp"),
        ("ROCKET_PROVIDERS", "{line={client_id=\"\"}}", "providers.line.client_id"),
        ("ROCKET_PROVIDERS", "{line={}}", "providers.line.client_id"),
        ("ROCKET_DATABASES", "{other={url=\"x\"}}", "databases.other"),
        ("ROCKET_DATABASES", "{vestibule={max_connections=0}}", "databases.vestibule.max_connections"),
        ("ROCKET_TRUSTED_PROXIES", "", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "proxy.example.com", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "10.0.0.0/33", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "10.0.0.1/8", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "127.0.0.1,0.0.0.0/0", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "::/0", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "::ffff:0:0/96", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXIES", "10", "ROCKET_TRUSTED_PROXIES"),
        ("ROCKET_TRUSTED_PROXY", "10.0.0.1", "ROCKET_TRUSTED_PROXY"),
        ("ROCKET_FORWARDED_HEADER", "x-real-ip", "ROCKET_FORWARDED_HEADER"),
        ("ROCKET_IP_HEADER", "X-Real-IP", "ROCKET_IP_HEADER"),
        ("ROCKET_TLS", "{certs=\"/nonexistent\",key=\"/nonexistent\"}", "tls.certs"),
        ("ROCKET_TLS", "{certs=\"/etc/hostname\",key=\"/nonexistent\"}", "tls.key"),
        ("ROCKET_TLS", "{certs=\"/etc/hostname\",key=\"/etc/hostname\",mutual={}}", "tls.mutual"),
        ("ROCKET_DRAIN", "301", "ROCKET_DRAIN"),
        ("ROCKET_DRAIN", "soon", "ROCKET_DRAIN"),
        ("ROCKET_RATE_LIMIT", "{enabled=maybe}", "rate_limit.enabled"),
        ("ROCKET_RATE_LIMIT", "{sign_in_per_minute=0}", "rate_limit.sign_in_per_minute"),
        ("ROCKET_RATE_LIMIT", "{refresh_per_minute=1000001}", "rate_limit.refresh_per_minute"),
        ("ROCKET_RATE_LIMIT", "{session_per_minute=-1}", "rate_limit.session_per_minute"),
        ("ROCKET_RATE_LIMIT", "{staff_pages_per_minute=0}", "rate_limit.staff_pages_per_minute"),
        ("ROCKET_RATE_LIMIT", "{sign_in_per_hour=1}", "rate_limit.sign_in_per_hour"),
        ("DATABASE_URL", "mysql://vestibule:hush@db/vestibule", "DATABASE_URL"),
        ("DATABASE_URL", "postgres://vestibule:hush@db:notaport/vestibule", "`DATABASE_URL`"),
        ("DATABASE_URL", "postgres://vestibule:hush@[db/vestibule", "`DATABASE_URL`"),
        ("DATABASE_URL", "postgres://vestibule:hush@db/vestibule?sslmode=sometimes", "`DATABASE_URL`"),
        ("DATABASE_URL", "postgres://vestibule:hush@db/vestibule?port=notaport", "`DATABASE_URL`"),
        ("ROCKET_DATABASES", "{vestibule={connect_timeout=soon}}", "databases.vestibule.connect_timeout"),
        ("ROCKET_ADMIN", "{provider=nobody}", "`admin.provider`"),
        ("ROCKET_LOG_LEVEL", "verbose", "ROCKET_LOG_LEVEL"),
        ("ROCKET_LOG_LEVEL", "normal", "must be one of"),
    ];
    for (variable, value, named) in rows {
        assert_refused(&[(variable, value)], &[named]);
    }
}

#[test]
fn sound_proxies_and_limits_get_as_far_as_the_database() {
    let sound = [
        ("ROCKET_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8,::ffff:172.16.0.0/108,2001:db8::/32"),
        ("ROCKET_FORWARDED_HEADER", "forwarded"),
        ("ROCKET_RATE_LIMIT", "{enabled=false,sign_in_per_minute=1,session_per_minute=1000000}"),
        ("ROCKET_IP_HEADER", "false"),
    ];
    assert_sound(&sound);
}

#[test]
fn a_key_that_signs_client_secrets_is_there_as_a_whole_and_only_for_apple() {
    use crate::support::provider::apple::private_key;
    let sound = [
        ("IDP_PRESET", "apple"),
        ("IDP_TEAM_ID", "A1B2C3D4E5"),
        ("IDP_KEY_ID", "F6G7H8I9J0"),
        ("IDP_PRIVATE_KEY", private_key()),
    ];
    assert_sound(&sound);
    for (changes, words) in [
        ([("IDP_PRESET", "google")].as_slice(), ["`IDP_TEAM_ID`", "is for the preset `apple` only"]),
        (&[("IDP_TEAM_ID", "-")], ["`IDP_TEAM_ID`", "is missing"]),
        (&[("IDP_KEY_ID", "-")], ["`IDP_KEY_ID`", "is missing"]),
        (&[("IDP_PRIVATE_KEY", "-")], ["`IDP_PRIVATE_KEY`", "is missing"]),
        (&[("IDP_TEAM_ID", "com.example.app")], ["`IDP_TEAM_ID`", "is not an id of Apple's"]),
        (&[("IDP_PRIVATE_KEY", "hush")], ["`IDP_PRIVATE_KEY`", "is not a private key of Apple's"]),
        (&[("IDP_PRIVATE_KEY", " ")], ["`IDP_PRIVATE_KEY`", "is empty"]),
        (&[("IDP_PRIVATE_KEY_FILE", "nowhere.p8")], ["`IDP_PRIVATE_KEY_FILE`", "is set in addition to"]),
        (
            &[("IDP_PRIVATE_KEY", "-"), ("IDP_PRIVATE_KEY_FILE", "nowhere.p8")],
            ["`IDP_PRIVATE_KEY_FILE`", "names a file that cannot be read"],
        ),
        (&[("IDP_REVOCATION_URL", "http://id.example.com")], ["`IDP_REVOCATION_URL`", "must be https"]),
    ] {
        assert_refused(&[&sound, changes].concat(), &words);
    }
}

#[test]
fn a_preset_and_its_client_id_get_as_far_as_the_database() {
    for preset in ["google", "line", "apple", "microsoft", "facebook"] {
        assert_sound(&[("IDP_PRESET", preset)]);
    }
    let issuer = ("IDP_ISSUER", "https://id.example.com/realms/people");
    assert_sound(&[("IDP_PRESET", "keycloak"), issuer]);
    assert_sound(&[("IDP_VERIFY", "both")]);
}

#[test]
fn a_misspelt_parameter_of_the_database_shows_no_secret() {
    let url = "postgres://vestibule@127.0.0.1:1/vestibule?pasword=hush";
    assert_refused(
        &[("DATABASE_URL", url)],
        &["`DATABASE_URL`", "has the parameter `pasword`", "the nearest known one is `password`"],
    );
}

#[test]
fn a_password_that_is_not_encoded_is_named_without_it() {
    for password in ["hush/1", "1/hush", "hush#1", "h@hush/hush"] {
        let url = format!("postgres://vestibule:{password}@db.invalid:5433/people");
        let words = ["the host `db.invalid`, port 5433 and the database `people`", "`/` is %2F"];
        assert_refused(&[("DATABASE_URL", &url)], &words);
    }
    let unreachable = [("DATABASE_URL", "postgres://vestibule:hush@127.0.0.1:1/people")];
    let words = ["`people` at `127.0.0.1`, port 1", "percent-encoded"];
    assert_fails(run_with("migrate", &unreachable), &unreachable, &words);
}

#[test]
fn a_table_of_the_file_that_is_not_below_a_profile_is_refused() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("Rocket.toml");
    let place = ("ROCKET_CONFIG", file.to_str().unwrap());
    for (text, words) in [
        ("[providers.partner]\nclient_id = \"x\"\n", "`[providers]` (set in"),
        ("[providers.partner]\nclient_id = \"x\"\n", "write `[default.providers]`"),
        ("[idp]\nlink = \"never\"\n", "write `[default.idp]`"),
        ("[defualt.idp]\nlink = \"never\"\n", "correct it to `[default]`"),
        ("[partner]\nclient_id = \"x\"\n", "`[partner.client_id]`"),
        (
            "[default.idp]\nlink = \"never\"\n[staging.session]\nttl = 1\n[session]\ndrain = 1\n",
            "write `[default.session]`",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_refused(&[place], &[words, "Rocket.toml", "unknown profile"]);
    }
    std::fs::write(&file, "[default]\n[staging]\npublic_url = \"https://staging.example.com\"\n[global]\n")
        .unwrap();
    assert_sound(&[place]);
    std::fs::write(&file, "[production.session]\naccess_token_ttl = 600\n").unwrap();
    assert_sound(&[place, ("ROCKET_PROFILE", "production")]);
}

#[test]
#[cfg(unix)]
fn a_strange_variable_of_somebody_else_stops_nothing() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
    command.arg("migrate").env_clear().envs(SOUND).env("ROCKET_PROFILE", "release");
    command.env("SOMEBODY", std::ffi::OsStr::from_bytes(b"\xff")).current_dir(env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the connection to the database failed"), "{text}");
}

#[test]
fn a_setting_that_has_a_default_of_ours_is_read_from_the_file() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("defaults");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("Rocket.toml");
    for (setting, words) in [
        ("log_level = \"verbose\"", ["`ROCKET_LOG_LEVEL` / `log_level`", "must be one of"]),
        ("ip_header = \"x-real-ip\"", ["`ROCKET_IP_HEADER` / `ip_header`", "any client"]),
    ] {
        for profile in ["default", "release"] {
            std::fs::write(&file, format!("[{profile}]\n{setting}\n")).unwrap();
            assert_refused(&[("ROCKET_CONFIG", file.to_str().unwrap())], &words);
        }
    }
}

#[test]
fn a_mistake_in_the_file_is_named_with_the_file() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("Rocket.toml");
    std::fs::write(&file, "[default]\npublic_ulr = \"https://id.example.com\"\n").unwrap();
    assert_refused(&[("ROCKET_CONFIG", file.to_str().unwrap())], &["public_ulr", "Rocket.toml"]);
    std::fs::write(&file, "[default.idp]\nclient_secret = 7\n").unwrap();
    assert_refused(&[("ROCKET_CONFIG", file.to_str().unwrap())], &["client_secret", "Rocket.toml"]);
    std::fs::write(&file, "not toml").unwrap();
    assert_refused(&[("ROCKET_CONFIG", file.to_str().unwrap())], &["Rocket.toml"]);
    std::fs::remove_file(&file).unwrap();
    assert_refused(
        &[("ROCKET_CONFIG", file.to_str().unwrap())],
        &["environment variable ROCKET_CONFIG names a file that cannot be read", "correct the path"],
    );
}

#[test]
fn the_place_of_a_setting_is_a_whole_path_wherever_the_program_runs() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings-elsewhere");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("Rocket.toml");
    std::fs::write(&file, "[default]\npublic_ulr = \"https://id.example.com\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
    command.arg("migrate").env_clear().envs(SOUND).env("ROCKET_PROFILE", "release");
    let output = command.env("ROCKET_CONFIG", &file).current_dir("/").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("(set in {})", file.display())), "{text}");
}

#[test]
fn a_secret_in_a_file_is_read_and_a_client_id_of_digits_is_text() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("client_secret");
    std::fs::write(&file, "hush\n").unwrap();
    let sound = [("IDP_CLIENT_SECRET_FILE", file.to_str().unwrap()), ("IDP_CLIENT_ID", "1234567890")];
    assert_sound(&sound);
    let twice = [("IDP_CLIENT_SECRET", "hush"), ("IDP_CLIENT_SECRET_FILE", file.to_str().unwrap())];
    assert_refused(&twice, &["IDP_CLIENT_SECRET_FILE"]);
}

#[test]
fn the_database_and_the_secret_key_may_be_in_files() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("secrets");
    std::fs::create_dir_all(&folder).unwrap();
    let [url, key, empty] = ["database_url", "secret_key", "empty"].map(|name| folder.join(name));
    std::fs::write(&url, format!("{}\n", SOUND[0].1)).unwrap();
    std::fs::write(&key, format!("{}\n", SOUND[1].1)).unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let [url, key, empty] = [&url, &key, &empty].map(|path| path.to_str().unwrap());
    let files = [
        ("DATABASE_URL", "-"),
        ("DATABASE_URL_FILE", url),
        ("ROCKET_SECRET_KEY", "-"),
        ("ROCKET_SECRET_KEY_FILE", key),
    ];
    assert_sound(&files);
    for variable in ["DATABASE_URL", "ROCKET_SECRET_KEY"] {
        let file = format!("{variable}_FILE");
        assert_refused(&[(&file, key)], &[&file, "is set in addition to", "remove one of them"]);
        assert_refused(
            &[(variable, "-"), (&file, "/nonexistent")],
            &[&file, "cannot be read", "correct the path"],
        );
        assert_refused(&[(variable, "-"), (&file, empty)], &[&file, "empty", "write the secret to it"]);
    }
    // A new key, and the one before it.
    let two = format!("a new key, of more than 32 characters\n{}\n", SOUND[1].1);
    std::fs::write(key, &two).unwrap();
    assert_sound(&files);
    std::fs::write(key, two.repeat(2)).unwrap();
    assert_refused(&files[2..], &["ROCKET_SECRET_KEY_FILE", "has more than two keys"]);
    for (value, words) in [
        ("[\"hush, hush, hush, hush, hush, hush\", \"too short\"]", "is too short"),
        ("[]", "is missing"),
        ("[\"hush, hush, hush, hush, hush, hush\", 7]", "must be a list of strings"),
        ("7", "a list of the new key and the previous one"),
    ] {
        assert_refused(&[("ROCKET_SECRET_KEY", value)], &["`ROCKET_SECRET_KEY` / `secret_key`", words]);
    }
    std::fs::write(key, format!("{}\n", SOUND[1].1)).unwrap();
    // What is in the file is judged as if it were in the variable.
    assert_refused(&[("DATABASE_URL", "-"), ("DATABASE_URL_FILE", key)], &["DATABASE_URL_FILE"]);
    assert_refused(
        &[("ROCKET_SECRET_KEY", "-"), ("ROCKET_SECRET_KEY_FILE", "/etc/hostname")],
        &["too short"],
    );
}

#[test]
fn a_database_elsewhere_without_tls_is_warned_of() {
    let elsewhere =
        |url: &str| String::from_utf8(run_with("migrate", &[("DATABASE_URL", url)]).stderr).unwrap();
    for url in ["postgres://u:hush@db.invalid/v", "postgres://u:hush@db.invalid/v?sslmode=disable"] {
        let text = elsewhere(url);
        assert!(
            text.contains("WARN") && text.contains("sslmode=verify-full") && !text.contains("hush"),
            "{text}"
        );
    }
    assert!(!elsewhere("postgres://u:hush@db.invalid/v?sslmode=verify-full").contains("WARN"));
}

/// A secret of a webhook that is sound.
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn each_mistake_in_a_webhook_is_named() {
    let url = "url=\"https://shop.example.com/hush?key=hush\"";
    let secret = format!("secret=\"{WEBHOOK_SECRET}\"");
    let rows = [
        ("Shop", format!("{url},{secret}"), "webhooks.Shop", "1 to 32 of a-z"),
        ("shop", secret.clone(), "webhooks.shop.url", "is missing"),
        ("shop", url.to_owned(), "webhooks.shop.secret", "openssl rand"),
        ("shop", format!("url=\"hush\",{secret}"), "webhooks.shop.url", "is not a URL"),
        ("shop", format!("url=\"http://shop.example.com/\",{secret}"), "webhooks.shop.url", "must be https"),
        (
            "shop",
            format!("url=\"https://a:hush@shop.example.com/\",{secret}"),
            "webhooks.shop.url",
            "password",
        ),
        ("shop", format!("url=\"https://10.0.0.1/hush\",{secret}"), "webhooks.shop.url", "private_network"),
        (
            "shop",
            format!("url=\"https://[::ffff:10.0.0.1]/\",{secret}"),
            "webhooks.shop.url",
            "private_network",
        ),
        ("shop", format!("url=\"https://0x7f.1/\",{secret}"), "webhooks.shop.url", "private_network"),
        (
            "shop",
            format!("url=\"https://169.254.169.254/\",private_network=true,{secret}"),
            "webhooks.shop.url",
            "not one of the internet",
        ),
        ("shop", format!("{url},secret=\"hush\""), "webhooks.shop.secret", "24 to 64 bytes"),
        ("shop", format!("{url},secret=\"whsec_aHVzaA==\""), "webhooks.shop.secret", "24 to 64 bytes"),
        ("shop", format!("{url},secret=[]"), "webhooks.shop.secret", "one secret, or two"),
        (
            "shop",
            format!("{url},secret=[\"{WEBHOOK_SECRET}\",\"{WEBHOOK_SECRET}\",\"{WEBHOOK_SECRET}\"]"),
            "webhooks.shop.secret",
            "one secret, or two",
        ),
        ("shop", format!("{url},secret=5"), "webhooks.shop.secret", "wrong type"),
        (
            "shop",
            format!("{url},secret_file=\"/nonexistent\""),
            "webhooks.shop.secret_file",
            "cannot be read",
        ),
        ("shop", format!("{url},{secret},secret_file=\"/x\""), "webhooks.shop.secret_file", "in addition to"),
        ("shop", format!("{url},{secret},events=[]"), "webhooks.shop.events", "user.created"),
        ("shop", format!("{url},{secret},events=\"user.createt\""), "webhooks.shop.events", "user.created"),
        (
            "shop",
            format!("{url},{secret},private_network=\"yes\""),
            "webhooks.shop.private_network",
            "true or false",
        ),
        ("shop", format!("{url},{secret},timeout=5"), "webhooks.shop.timeout", "is not a known key"),
    ];
    for (name, fields, key, words) in rows {
        let webhooks = format!("{{{name}={{{fields}}}}}");
        assert_refused(&[("ROCKET_WEBHOOKS", &webhooks)], &[&format!("`{key}`"), words]);
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("webhook-{}", uuid::Uuid::now_v7()));
    std::fs::write(&file, format!("{WEBHOOK_SECRET}\n\n{WEBHOOK_SECRET}\n")).unwrap();
    let from_file = format!("{url},secret_file={file:?},events=\"user.created,user.deleted\"");
    let near = format!("url=\"https://10.0.0.1/\",private_network=true,{secret}");
    let here = format!("url=\"http://localhost:9/\",{secret}");
    for fields in [from_file, near, here] {
        assert_sound(&[("ROCKET_WEBHOOKS", &format!("{{shop={{{fields}}}}}"))]);
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn no_debug_output_shows_a_secret_or_a_url() {
    let settings = serde_json::json!({ "url": "https://shop.example.com/hush", "secret": WEBHOOK_SECRET });
    let figment = crate::support::app::figment("postgres://127.0.0.1:1/x", "http://127.0.0.1:1/tokeninfo");
    let config = vestibule::config::Config::read(figment.merge(("webhooks.shop", settings))).unwrap();
    let webhooks = vestibule::webhooks::Webhooks::new(config.webhooks).unwrap();
    let shown = format!("{webhooks:?}");
    assert!(shown.contains("shop") && !shown.contains("hush") && !shown.contains("shop.example"), "{shown}");
    let bytes = format!("{:?}", &[0x31, 0xf2, 0x90, 0xf6]);
    assert!(!shown.contains("MfKQ") && !shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
}
