//! The URL of a database, as libpq reads it (PostgreSQL, "Connection URIs" and "Parameter Key
//! Words"), for a driver that knows one server and fewer parameters. No error contains a value,
//! since that may be a part of the password.

use url::form_urlencoded;

/// A mistake in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// No program for PostgreSQL that is known here has this parameter.
    Unknown(String),
    /// A problem and its remedy.
    Other(String, String),
}

fn mistake<T>(problem: impl Into<String>, remedy: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake::Other(problem.into(), remedy.into()))
}

/// One of the servers that a URL lists.
pub struct Server {
    /// The URL for the driver.
    pub url: String,
    /// The directory of its Unix socket, which is the host for the driver. In the URL it could not
    /// be replaced by a host.
    pub socket: Option<String>,
}

/// The content of a URL.
pub struct DatabaseUrl {
    pub servers: Vec<Server>,
    /// `sslmode`.
    pub ssl_mode: Option<String>,
    /// `sslrootcert`.
    pub root_certificate: Option<String>,
    /// `connect_timeout` in seconds; `None` for no limit, too.
    pub connect_timeout: Option<u64>,
}

/// The parameters that the driver reads as libpq does, with its own names for some of them.
const PASSED_ON: [&str; 11] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "options",
    "statement-cache-capacity",
];

/// The names of `sslmode`.
const MODE: [&str; 2] = ["sslmode", "ssl-mode"];

/// The parameters that change nothing here with these values, and otherwise are not supported. An
/// empty list stands for any value.
const IGNORED: [(&str, &[&str]); 18] = [
    ("keepalives", &[]),
    ("keepalives_idle", &[]),
    ("keepalives_interval", &[]),
    ("keepalives_count", &[]),
    ("tcp_user_timeout", &[]),
    ("fallback_application_name", &[]),
    ("krbsrvname", &[]),
    ("gsslib", &[]),
    ("gssdelegation", &[]),
    ("sslcompression", &[]),
    ("sslsni", &["1"]),
    ("sslcertmode", &["allow"]),
    ("sslnegotiation", &["postgres"]),
    // The driver offers TLS 1.2 and 1.3.
    ("ssl_min_protocol_version", &["tlsv1", "tlsv1.1", "tlsv1.2"]),
    ("gssencmode", &["disable", "prefer"]),
    ("client_encoding", &["utf8", "utf-8", "unicode", "auto"]),
    ("load_balance_hosts", &["disable"]),
    // The service always uses the server that accepts writes.
    ("target_session_attrs", &["any", "read-write", "primary"]),
];

/// libpq's parameters that the driver cannot honour, each with what to do.
const UNSUPPORTED: [(&str, &str); 11] = [
    (
        "service",
        "write the parameters of the service into the URL",
    ),
    (
        "servicefile",
        "write the parameters of the service into the URL",
    ),
    (
        "passfile",
        "remove it, and set the environment variable PGPASSFILE",
    ),
    ("sslpassword", "remove it, and decrypt the file of `sslkey`"),
    ("sslcrl", "remove it"),
    ("sslcrldir", "remove it"),
    ("sslkeylogfile", "remove it"),
    ("ssl_max_protocol_version", "remove it"),
    ("requirepeer", "remove it"),
    ("require_auth", "remove it"),
    ("replication", "remove it"),
];

const SEARCH_PATH: &str = "remove it, or write `options=-c%20search_path%3D…`";

/// Parameters of other drivers, to whom each belongs, and what to do.
const FOREIGN: [(&str, &str, &str); 9] = [
    ("pgbouncer", "Prisma", "remove it"),
    (
        "connection_limit",
        "Prisma",
        "remove it; the setting for that is `databases.vestibule.max_connections`",
    ),
    (
        "pool_timeout",
        "Prisma",
        "remove it; the setting for that is `databases.vestibule.connect_timeout`",
    ),
    ("schema", "Prisma", SEARCH_PATH),
    ("currentSchema", "JDBC", SEARCH_PATH),
    ("prepareThreshold", "JDBC", "remove it"),
    ("uselibpqcompat", "node-postgres", "remove it"),
    ("binary_parameters", "lib/pq", "remove it"),
    ("supa", "Supabase", "remove it"),
];

/// The parameters of the URL that is being read; the last of each name counts.
#[derive(Default)]
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn set(&mut self, name: &str, value: String) {
        self.take(name);
        self.0.push((name.to_owned(), value));
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0
            .extract_if(.., |(own, _)| own == name)
            .last()
            .map(|(_, value)| value)
    }

    fn get(&self, names: &[&str]) -> Option<&str> {
        let found = self
            .0
            .iter()
            .rfind(|(own, _)| names.contains(&own.as_str()));
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a URL that begins with `postgres://` or `postgresql://`.
pub fn read(url: &str) -> Result<DatabaseUrl, Mistake> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut given = Parameters::default();
    for (name, value) in [("user", user), ("password", password), ("dbname", database)] {
        if !value.is_empty() {
            given.set(name, decoded(value));
        }
    }
    let mut addresses = Vec::new();
    for address in hosts.split(',') {
        addresses.push(split_port(address)?);
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        given.set(&decoded(name), decoded(value));
    }
    let servers = servers(&mut given, &addresses)?;
    let connect_timeout = connect_timeout(given.take("connect_timeout"))?;
    secure(&mut given)?;
    let mut kept = Vec::new();
    for (name, value) in given.0 {
        if is_passed_on(&name) {
            kept.push((name, value));
        } else {
            check_ignored(&name, &value)?;
        }
    }
    let kept = Parameters(kept);
    let root_certificate = kept
        .get(&["sslrootcert", "ssl-root-cert", "ssl-ca"])
        .map(str::to_owned);
    let ssl_mode = kept.get(&MODE).map(str::to_owned);
    let for_driver = |(host, port): (String, String)| {
        let (socket, host) = if host.starts_with('/') {
            (Some(host), String::new())
        } else {
            (None, host)
        };
        let server = [("host", host), ("port", port)]
            .into_iter()
            .filter(|(_, value)| !value.is_empty());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&kept.0).extend_pairs(server);
        Server {
            url: format!("postgres:///?{}", query.finish()),
            socket,
        }
    };
    let servers = servers.into_iter().map(for_driver).collect();
    Ok(DatabaseUrl {
        servers,
        ssl_mode,
        root_certificate,
        connect_timeout,
    })
}

fn is_passed_on(name: &str) -> bool {
    PASSED_ON.contains(&name)
        || ["user", "password", "dbname", "application_name"].contains(&name)
        || name.starts_with("options[") && name.ends_with(']')
}

/// Decodes `%xx`. Unlike in a form, a plus sign stands for itself.
fn decoded(text: &str) -> String {
    let kept = text
        .replace('+', "%2B")
        .replace('&', "%26")
        .replace('=', "%3D");
    form_urlencoded::parse(kept.as_bytes())
        .map(|(name, _)| name.into_owned())
        .collect()
}

/// Splits a host, in brackets if it is an IPv6 address, and its port, either of which may be empty.
fn split_port(address: &str) -> Result<(String, String), Mistake> {
    let (host, port) = match address.strip_prefix('[') {
        None => address.split_once(':').unwrap_or((address, "")),
        Some(rest) => match rest.split_once(']') {
            Some((ip, after)) if ip.parse::<std::net::Ipv6Addr>().is_ok() => (
                &address[..ip.len() + 2],
                after.strip_prefix(':').unwrap_or(after),
            ),
            _ => {
                return mistake(
                    "has an invalid IPv6 address",
                    "write it as in [2001:db8::1]:5432",
                );
            }
        },
    };
    Ok((decoded(host), decoded(port)))
}

/// Takes the hosts and ports, which the query may name as lists.
fn servers(
    given: &mut Parameters,
    addresses: &[(String, String)],
) -> Result<Vec<(String, String)>, Mistake> {
    let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let published =
        |value: fn(&(String, String)) -> &String| addresses.iter().map(value).cloned().collect();
    let hosts: Vec<String> = given
        .take("host")
        .map_or_else(|| published(|(host, _)| host), list);
    let ports: Vec<String> = given
        .take("port")
        .map_or_else(|| published(|(_, port)| port), list);
    let hosts = match given.take("hostaddr") {
        None => hosts,
        Some(_) if hosts.iter().any(|host| !host.is_empty()) => {
            let remedy = "remove one of them: the driver would verify the server's certificate for the IP address";
            return mistake("has `hostaddr` in addition to a host", remedy);
        }
        Some(ips) => list(ips),
    };
    if hosts.iter().any(|host| host.starts_with('@')) {
        let problem = "names an abstract Unix socket, which the driver does not support";
        return mistake(
            problem,
            "name the directory of a socket, as in `host=/run/postgresql`",
        );
    }
    let is_port = |port: &String| port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    if !ports.iter().all(is_port) {
        return mistake(
            "has an invalid port number",
            "set it to a number up to 65535, or remove it",
        );
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        let plural = if hosts.len() == 1 { "" } else { "s" };
        let problem = format!(
            "lists {} ports for {} host{plural}",
            ports.len(),
            hosts.len()
        );
        return mistake(problem, "list one port for all, or one for each host");
    }
    let port = |at: usize| {
        if ports.len() == 1 {
            ports[0].clone()
        } else {
            ports[at].clone()
        }
    };
    Ok(hosts
        .into_iter()
        .enumerate()
        .map(|(at, host)| (host, port(at)))
        .collect())
}

fn connect_timeout(text: Option<String>) -> Result<Option<u64>, Mistake> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<i64>() {
        // Zero and less are no limit.
        Ok(seconds) => Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)),
        Err(_) => mistake(
            "has a `connect_timeout` that is not a number",
            "set it to seconds, such as 10",
        ),
    }
}

/// Resolves the parameters that together decide on encryption: `ssl`, `sslmode`, `sslrootcert` and
/// `channel_binding`.
fn secure(given: &mut Parameters) -> Result<(), Mistake> {
    // As JDBC writes it.
    if let Some(value) = given.take("ssl") {
        if value != "true" {
            return mistake(
                "has `ssl` with another value than `true`",
                "write `sslmode=…` instead",
            );
        }
        if given.get(&MODE).is_none() {
            given.set("sslmode", "require".into());
        }
    }
    if given.get(&["sslrootcert"]) == Some("system") {
        given.take("sslrootcert");
        if given.get(&MODE).is_none() {
            given.set("sslmode", "verify-full".into());
        }
        if !given
            .get(&MODE)
            .is_some_and(|mode| mode.eq_ignore_ascii_case("verify-full"))
        {
            return mistake(
                "has `sslrootcert=system` with a weaker `sslmode`",
                "set `sslmode=verify-full`",
            );
        }
    }
    let verified = given
        .get(&MODE)
        .is_some_and(|mode| mode.eq_ignore_ascii_case("verify-full"));
    match given.take("channel_binding").as_deref() {
        None | Some("disable" | "prefer") => Ok(()),
        // The certificate proves who the server is, as the binding would.
        Some("require") if verified => Ok(()),
        Some("require") => mistake(
            "has `channel_binding=require`, which the driver does not support",
            "set `sslmode=verify-full`, which proves the server's identity as well",
        ),
        Some(_) => mistake(
            "has an unknown `channel_binding`",
            "set it to one of: disable, prefer, require",
        ),
    }
}

/// Checks that a parameter which the driver does not read changes nothing.
fn check_ignored(name: &str, value: &str) -> Result<(), Mistake> {
    if let Some((_, values)) = IGNORED.iter().find(|(known, _)| *known == name) {
        if values.is_empty() || values.contains(&value.to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        if name == "target_session_attrs" {
            return mistake(
                "has a `target_session_attrs` other than `read-write`",
                "remove it, because the service always uses the server that accepts writes",
            );
        }
        return mistake(
            format!("has `{name}` with a value that the driver does not support"),
            format!("remove it, or set it to {}", values[values.len() - 1]),
        );
    }
    if let Some((_, remedy)) = UNSUPPORTED.iter().find(|(known, _)| *known == name) {
        return mistake(
            format!("has the parameter `{name}`, which the driver does not support"),
            *remedy,
        );
    }
    match FOREIGN.iter().find(|(known, ..)| *known == name) {
        Some((_, owner, remedy)) => mistake(
            format!("has the parameter `{name}`, which is for {owner} and not for PostgreSQL"),
            *remedy,
        ),
        None => Err(Mistake::Unknown(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_gets_the_rest_of_the_url() {
        let of = |url| -> Vec<_> {
            let read = read(url).unwrap_or_else(|mistake| panic!("{mistake:?}"));
            read.servers
                .into_iter()
                .map(|server| server.url + server.socket.as_deref().unwrap_or(""))
                .collect()
        };
        assert_eq!(
            of("postgres://u:p,w%2F+@a.example/db?sslmode=verify-full"),
            [
                "postgres:///?user=u&password=p%2Cw%2F%2B&dbname=db&sslmode=verify-full&host=a.example"
            ]
        );
        assert_eq!(
            of("postgres://u@a:1,[::1]:2,c/db?target_session_attrs=read-write"),
            ["host=a&port=1", "host=%5B%3A%3A1%5D&port=2", "host=c"]
                .map(|server| format!("postgres:///?user=u&dbname=db&{server}"))
        );
        assert_eq!(
            of("postgres://a,b"),
            ["postgres:///?host=a", "postgres:///?host=b"]
        );
        assert_eq!(of("postgres://"), ["postgres:///?"]);
        assert_eq!(
            of("postgres://old:x@z:1/old?user=u&password=a%26b=c&host=/s&port=2&dbname=d"),
            ["postgres:///?user=u&password=a%26b%3Dc&dbname=d&port=2/s"]
        );
    }

    #[test]
    fn a_mistake_contains_no_value() {
        for parameter in [
            "sslmod",
            "service",
            "sslpassword",
            "connect_timeout",
            "port",
            "channel_binding",
            "ssl",
        ] {
            let Err(mistake) = read(&format!("postgres://ada:hush@a/db?{parameter}=hush")) else {
                panic!("{parameter}")
            };
            assert!(!format!("{mistake:?}").contains("hush"), "{mistake:?}");
        }
    }
}
