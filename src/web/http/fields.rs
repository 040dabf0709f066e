//! Header fields of requests. Only the part of a field that is read is checked, not the others
//! (other cookies, parameters).

use rocket::Request;

/// The request has several cookies of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

/// The white space within a field's value (RFC 9110 §5.6.3).
const SPACE: [char; 2] = [' ', '\t'];

/// Returns the value of the only field with this name.
pub fn only<'r>(request: &'r Request<'_>, name: &str) -> Option<&'r str> {
    let mut values = request.headers().get(name);
    values.next().filter(|_| values.next().is_none())
}

/// Returns the body's media type without its parameters.
pub fn media_type<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let value = only(request, "Content-Type")?;
    let media_type = value.split(';').next()?.trim_matches(SPACE);
    Some(media_type).filter(|media_type| !media_type.is_empty())
}

pub fn is_json(request: &Request<'_>) -> bool {
    is(request, "application/json")
}

pub fn is_form(request: &Request<'_>) -> bool {
    is(request, "application/x-www-form-urlencoded")
}

fn is(request: &Request<'_>, expected: &str) -> bool {
    media_type(request).is_some_and(|media_type| media_type.eq_ignore_ascii_case(expected))
}

/// Returns the value of the cookie with exactly this name, as the browser sent it.
///
/// Rocket's jar decodes names, and the last of two cookies wins. But a browser protects `__Host-…`
/// by the name's bytes: a sibling host can set `__%48ost-…`, and an attacker could so give a page
/// the attacker's session.
///
/// # Errors
/// There are several cookies of this name.
pub fn cookie<'r>(request: &'r Request<'_>, name: &str) -> Result<Option<&'r str>, Repeated> {
    let pairs = request
        .headers()
        .get("Cookie")
        .flat_map(|line| line.split(';'));
    let mut values = pairs.filter_map(|pair| {
        let (found, value) = pair.trim_matches(SPACE).split_once('=')?;
        (found == name).then_some(value)
    });
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(Repeated),
    }
}

/// Returns how much the client wants a media type by `Accept` (RFC 9110 §12.5.1), in thousandths:
/// of the ranges that match it, the most specific decides. A range with another version than a
/// given one does not match. Without `Accept`, the client wants any.
pub fn preference(request: &Request<'_>, kind: &str, subtype: &str, version: Option<&str>) -> u16 {
    let mut ranges = request
        .headers()
        .get("Accept")
        .flat_map(|line| line.split(','))
        .peekable();
    if ranges.peek().is_none() {
        return 1000;
    }
    let matching = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(|part| part.trim_matches(SPACE));
        let (its_kind, its_subtype) = parts.next()?.split_once('/')?;
        let specific = match (its_kind, its_subtype) {
            ("*", "*") => 0,
            (its_kind, "*") if its_kind.eq_ignore_ascii_case(kind) => 1,
            (its_kind, its_subtype)
                if its_kind.eq_ignore_ascii_case(kind)
                    && its_subtype.eq_ignore_ascii_case(subtype) =>
            {
                2
            }
            _ => return None,
        };
        let mut weight = 1000;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.eq_ignore_ascii_case("q") {
                weight = quality(value).unwrap_or(1000);
            } else if name.eq_ignore_ascii_case("version")
                && version.is_some_and(|version| value.trim_matches('"') != version)
            {
                return None;
            }
        }
        Some((specific, weight))
    });
    matching.max().map_or(0, |(_, quality)| quality)
}

/// Reads a weight such as `0.5`, in thousandths. Java's own client writes `.5`.
fn quality(value: &str) -> Option<u16> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let whole = if whole.is_empty() { "0" } else { whole };
    let digits = format!("{whole}{fraction:0<3}");
    let thousandths: u16 = digits.parse().ok()?;
    (digits.len() == 4).then_some(thousandths.min(1000))
}
