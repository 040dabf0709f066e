//! The URL of a database on several servers, as libpq reads it (PostgreSQL, "Specifying Multiple Hosts").

use url::form_urlencoded;

/// The parameter that says which of the servers is meant.
const WANTED: &str = "target_session_attrs";

/// Splits a URL whose authority lists several servers, `a:5432,b:5432`, into one for each. The parameter
/// `target_session_attrs` is left out of them: the service always needs the server that accepts writes.
/// The error is the value of one that asks for another server.
pub fn of_each_server(url: &str) -> Result<Vec<String>, String> {
    let (rest, query) = url.split_once('?').map_or((url, None), |(rest, query)| (rest, Some(query)));
    let (wanted, others): (Vec<_>, Vec<_>) = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .partition(|pair| pair.split('=').next() == Some(WANTED));
    for (_, value) in wanted.iter().flat_map(|pair| form_urlencoded::parse(pair.as_bytes())) {
        if !["read-write", "primary"].contains(&&*value) {
            return Err(value.into_owned());
        }
    }
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    let scheme = rest.find("://").map_or(0, |at| at + 3);
    let end = rest[scheme..].find('/').map_or(rest.len(), |at| scheme + at);
    let hosts = rest[scheme..end].rfind('@').map_or(scheme, |at| scheme + at + 1);
    let (before, after) = (&rest[..hosts], &rest[end..]);
    Ok(rest[hosts..end].split(',').map(|host| format!("{before}{host}{after}{query}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_gets_the_rest_of_the_url() {
        let of = |url| of_each_server(url).unwrap();
        let one = "postgres://u:p,w@a.example/db?sslmode=verify-full";
        assert_eq!(of(one), [one]);
        assert_eq!(
            of("postgres://u:p,w@a:1,[::1]:2,c/db?target_session_attrs=read-write&sslmode=require"),
            [
                "postgres://u:p,w@a:1/db?sslmode=require",
                "postgres://u:p,w@[::1]:2/db?sslmode=require",
                "postgres://u:p,w@c/db?sslmode=require",
            ],
        );
        assert_eq!(of("postgres://a,b"), ["postgres://a", "postgres://b"]);
        assert_eq!(of_each_server("postgres://a,b/db?target_session_attrs=standby"), Err("standby".into()));
    }
}
