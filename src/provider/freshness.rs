//! The lifetime of a published document (RFC 9111 §4.2), within our own bounds.

use reqwest::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderMap, HeaderName};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// The shortest lifetime, in seconds: no provider makes every sign-in fetch its keys.
const SHORTEST: i64 = 60;
/// The longest lifetime, in seconds: a withdrawn key is accepted for no longer.
const LONGEST: i64 = 24 * 60 * 60;
/// The lifetime if the provider sets none.
const USUAL: i64 = 10 * 60;

/// Returns the seconds for which the document may be used without another request.
pub(super) fn lifetime(headers: &HeaderMap, now: i64) -> i64 {
    let given = max_age(headers).or_else(|| until_expiry(headers, now));
    let age = text(headers, &AGE)
        .and_then(|age| age.trim().parse().ok())
        .unwrap_or(0_i64)
        .max(0);
    given
        .map_or(USUAL, |seconds| seconds.saturating_sub(age))
        .clamp(SHORTEST, LONGEST)
}

/// Returns the strictest lifetime in `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<i64> {
    let fields = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let directives = fields.flat_map(|field| field.split(',')).map(str::trim);
    directives
        .filter_map(|directive| {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" | "no-cache" => Some(0),
                // A number that does not parse counts as 0, and the bounds apply.
                "max-age" => Some(value.trim().trim_matches('"').parse().unwrap_or(0)),
                _ => None,
            }
        })
        .min()
}

/// Returns the provider's time when it answered (RFC 9110 §6.6.1), also if a cache answered in its
/// place.
pub(super) fn server_time(headers: &HeaderMap) -> Option<i64> {
    let age = text(headers, &AGE)
        .and_then(|age| age.trim().parse().ok())
        .unwrap_or(0_i64)
        .max(0);
    Some(timestamp(text(headers, &DATE)?)?.saturating_add(age))
}

fn until_expiry(headers: &HeaderMap, now: i64) -> Option<i64> {
    // An unreadable date, often `0`, means that the document has expired (RFC 9111 §5.3).
    let expires = timestamp(text(headers, &EXPIRES)?).unwrap_or(0);
    let sent = text(headers, &DATE).and_then(timestamp).unwrap_or(now);
    Some(expires.saturating_sub(sent))
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Parses an HTTP date in any of its three forms (RFC 9110 §5.6.7), or one with an offset as in an
/// e-mail.
fn timestamp(text: &str) -> Option<i64> {
    let text = text.trim();
    let date = httpdate::parse_http_date(text)
        .ok()
        .map(OffsetDateTime::from);
    date.or_else(|| OffsetDateTime::parse(text, &Rfc2822).ok())
        .map(OffsetDateTime::unix_timestamp)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn of(fields: &[(&'static str, &'static str)]) -> i64 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        lifetime(&headers, 784_111_777)
    }

    #[test]
    fn the_providers_word_counts_within_bounds() {
        assert_eq!(of(&[]), USUAL);
        assert_eq!(
            of(&[(
                "cache-control",
                "public, max-age=19204, must-revalidate, no-transform"
            )]),
            19204
        );
        assert_eq!(
            of(&[("cache-control", "max-age=3600"), ("age", "600")]),
            3000
        );
        assert_eq!(of(&[("cache-control", "max-age=\"3600\"")]), 3600);
        assert_eq!(
            of(&[
                ("cache-control", "max-age=3600"),
                ("cache-control", "max-age=600")
            ]),
            600
        );
        assert_eq!(of(&[("cache-control", "MAX-AGE=99999999")]), LONGEST);
        for short in [
            "max-age=0",
            "max-age=59",
            "no-store",
            "max-age=600, no-cache",
            "max-age=-1",
            "max-age=x",
        ] {
            assert_eq!(of(&[("cache-control", short)]), SHORTEST, "{short}");
        }
        assert_eq!(
            of(&[
                ("cache-control", "max-age=600"),
                ("age", "99999999999999999999")
            ]),
            600
        );
        assert_eq!(of(&[("cache-control", "private")]), USUAL);
    }

    #[test]
    fn an_expiry_counts_where_nothing_else_is_said() {
        let expires = ("expires", "Sun, 06 Nov 1994 09:49:37 GMT");
        assert_eq!(of(&[expires]), 3600);
        assert_eq!(
            of(&[expires, ("date", "Sun, 06 Nov 1994 09:39:37 GMT")]),
            600
        );
        assert_eq!(of(&[expires, ("cache-control", "max-age=900")]), 900);
        assert_eq!(of(&[("expires", "0")]), SHORTEST);
        assert_eq!(
            of(&[("expires", "Sun, 06 Nov 1994 08:00:00 GMT")]),
            SHORTEST
        );
        assert_eq!(of(&[("expires", "Sun, 06 Nov 1994 10:49:37 +0100")]), 3600);
        // The older forms (RFC 850, asctime).
        assert_eq!(of(&[("expires", "Sunday, 06-Nov-94 09:49:37 GMT")]), 3600);
        assert_eq!(of(&[("expires", "Sun Nov  6 09:49:37 1994")]), 3600);
        assert_eq!(of(&[expires, ("date", "Sun Nov  6 09:39:37 1994")]), 600);
    }
}
