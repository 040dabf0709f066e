//! Reads `X-Forwarded-For` and `Forwarded` (RFC 7239 §4) behind trusted proxies.
//!
//! Every proxy appends the IP address that it saw, so the header is read from its right end:
//! anything left of the first untrusted address may be forged. The same holds for the syntax. An
//! open quote on the left must not swallow an address that a proxy appended, so quoted strings are
//! recognised from the right.

use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::{ForwardedHeader, Proxies};

/// Returns the IP address of the client behind a trusted peer, in canonical form.
///
/// The client is the first hop from the right that is not a trusted proxy. If all hops are proxies,
/// the leftmost one is the client. If a hop cannot be read (`unknown`, an obfuscated identifier,
/// garbage), nothing left of it can be trusted, and the client is unknown. The client is also
/// unknown if there is no hop.
pub fn client(lines: &[&str], proxies: &Proxies) -> Option<IpAddr> {
    let mut client = None;
    // Header lines of one name form one list (RFC 9110 §5.3).
    for element in lines.iter().rev().flat_map(|line| from_right(line, b',')) {
        let hop = match proxies.header {
            // Empty elements are legal and have no meaning (RFC 9110 §5.6.1.2).
            _ if element.is_empty() => continue,
            ForwardedHeader::XForwardedFor => node(element),
            ForwardedHeader::Forwarded => forwarded_for(element),
        };
        let hop = hop?;
        client = Some(hop);
        if !proxies.trust(hop) {
            break;
        }
    }
    client
}

/// Returns the trimmed pieces between separators outside quoted strings, the last one first.
fn from_right(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    iter::from_fn(move || {
        let text = rest?;
        let bytes = text.as_bytes();
        let mut quoted = false;
        let at = (0..bytes.len()).rev().find(|&at| {
            if bytes[at] == b'"' && !(quoted && is_escaped(&bytes[..at])) {
                quoted = !quoted;
            }
            bytes[at] == separator && !quoted
        });
        let piece = at.map_or(text, |at| &text[at + 1..]);
        rest = at.map(|at| &text[..at]);
        Some(piece.trim_matches([' ', '\t']))
    })
}

/// Returns `true` if the next byte is the second half of a quoted-pair (RFC 9110 §5.6.4).
fn is_escaped(before: &[u8]) -> bool {
    before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

/// Returns the `for` of a forwarded-element, which must not occur twice (RFC 7239 §4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut found = None;
    for pair in from_right(element, b';').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") && found.replace(node(&unquoted(value)?)?).is_some() {
            return None;
        }
    }
    found
}

/// Returns a token unchanged, or the content of a quoted-string.
fn unquoted(value: &str) -> Option<String> {
    let Some(rest) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let mut content = String::with_capacity(rest.len());
    let mut chars = rest.strip_suffix('"')?.chars();
    while let Some(c) = chars.next() {
        content.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(content)
}

/// Parses an IP address with or without brackets and port (RFC 7239 §6). Bare IPv6 is illegal in
/// `Forwarded` and usual in `X-Forwarded-For`, and it is unambiguous in both.
fn node(text: &str) -> Option<IpAddr> {
    let (address, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        (IpAddr::from(address.parse::<Ipv6Addr>().ok()?), port)
    } else if let Ok(address) = text.parse() {
        (address, "")
    } else {
        let (address, port) = text.split_at(text.find(':')?);
        (IpAddr::from(address.parse::<Ipv4Addr>().ok()?), port)
    };
    (port.is_empty() || is_port(port.strip_prefix(':')?)).then(|| address.to_canonical())
}

/// Returns `true` for a node-port (RFC 7239 §6).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => {
            let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
            !name.is_empty() && name.bytes().all(plain)
        }
        None => (1..=5).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit()),
    }
}
