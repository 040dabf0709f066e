//! Decodes `application/x-www-form-urlencoded` text.

/// The decoded name-value pairs in order; a stray `%` stays as it is.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

fn decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        decoded.push(match (first, after) {
            (b'+', _) => b' ',
            (b'%', &[high, low, ref tail @ ..]) => match hex(high).zip(hex(low)) {
                Some((high, low)) => {
                    rest = tail;
                    high << 4 | low
                }
                None => b'%',
            },
            _ => first,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}
