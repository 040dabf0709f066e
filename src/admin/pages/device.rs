//! Devices in words: `User-Agent` headers (RFC 9110 §10.1.5) of browsers, apps and HTTP libraries.
//! A header that is not recognised is shown as it is.

/// Browsers by their token in `User-Agent`. A browser also sends tokens from further down the list,
/// so special ones come first.
const BROWSERS: [(&str, &str); 11] = [
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
    ("AppleWebKit/", "A web view"),
];

/// HTTP libraries of apps, by the product that they name.
const LIBRARIES: [(&str, &str); 5] = [
    ("okhttp", "An app on Android"),
    ("Dalvik", "An app on Android"),
    ("Dart", "An app made with Flutter"),
    ("CFNetwork", "An app on an Apple device"),
    ("node", "A server or script"),
];

/// Returns the user agent in words: `Chrome on Android`, `Example 4.2 on iPhone, iOS 19.1`.
pub(super) fn in_words(user_agent: &str) -> String {
    described(user_agent.trim()).unwrap_or_else(|| user_agent.trim().to_owned())
}

fn described(user_agent: &str) -> Option<String> {
    let (product, rest) = user_agent.split_once('/')?;
    let (version, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let comment = rest
        .strip_prefix('(')
        .and_then(|rest| rest.split(')').next())
        .unwrap_or_default();
    if product == "Mozilla" {
        let (_, browser) = BROWSERS
            .into_iter()
            .find(|(token, _)| user_agent.contains(token))?;
        return Some(match browser_system(comment) {
            Some(system) => format!("{browser} on {system}"),
            None => browser.to_owned(),
        });
    }
    let library = LIBRARIES
        .into_iter()
        .find(|(name, _)| product.eq_ignore_ascii_case(name));
    if let Some((_, what)) = library {
        return Some(what.to_owned());
    }
    if product.is_empty() || version.is_empty() || product.contains(char::is_whitespace) {
        return None;
    }
    let app = format!("{product} {version}");
    if rest.starts_with("CFNetwork/") {
        return Some(format!("{app} on an Apple device"));
    }
    let parts: Vec<_> = comment
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    match parts[..] {
        [] if rest.is_empty() => Some(app),
        // The device and its system, in either order.
        [first, second] => {
            let (device, system) = if is_system(first) {
                (second, first)
            } else {
                (first, second)
            };
            Some(format!("{app} on {device}, {system}"))
        }
        [one] => Some(format!("{app} on {one}")),
        _ => None,
    }
}

fn is_system(part: &str) -> bool {
    ["Android", "iOS", "iPadOS", "Windows", "macOS", "Linux"]
        .iter()
        .any(|name| part.starts_with(name))
}

/// Returns the system that a browser runs on. Browsers hide its version, or freeze it.
fn browser_system(comment: &str) -> Option<&'static str> {
    let systems = [
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("CrOS", "ChromeOS"),
        ("Windows", "Windows"),
        ("Macintosh", "Mac"),
        ("Linux", "Linux"),
    ];
    systems
        .into_iter()
        .find(|(token, _)| comment.contains(token))
        .map(|(_, system)| system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_user_agents_are_named_and_others_shown_verbatim() {
        const WEBKIT: &str = "AppleWebKit/537.36 (KHTML, like Gecko)";
        for (system, rest, expected) in [
            (
                "Linux; Android 10; K",
                "Chrome/140.0.0.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Windows NT 10.0; Win64; x64",
                "Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Macintosh; Intel Mac OS X 10_15_7",
                "Version/19.1 Safari/605.1.15",
                "Safari on Mac",
            ),
            (
                "iPhone; CPU iPhone OS 19_1 like Mac OS X",
                "CriOS/140.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "iPhone; CPU iPhone OS 19_1 like Mac OS X",
                "Mobile/15E148",
                "A web view on iPhone",
            ),
            (
                "Linux; Android 16; SM-S931B",
                "SamsungBrowser/28.0 Chrome/130.0 Mobile Safari/537.36",
                "Samsung Internet on Android",
            ),
        ] {
            assert_eq!(
                in_words(&format!("Mozilla/5.0 ({system}) {WEBKIT} {rest}")),
                expected
            );
        }
        for (user_agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Example/4.2 (iPhone; iOS 19.1)",
                "Example 4.2 on iPhone, iOS 19.1",
            ),
            (
                "Example/4.1 (Android 16; Pixel 9)",
                "Example 4.1 on Pixel 9, Android 16",
            ),
            (
                "Example/42 CFNetwork/1494.0.7 Darwin/23.4.0",
                "Example 42 on an Apple device",
            ),
            ("okhttp/4.12.0", "An app on Android"),
            ("Dart/3.9 (dart:io)", "An app made with Flutter"),
            (
                "Dalvik/2.1.0 (Linux; U; Android 16; Pixel 9 Build/BP2A)",
                "An app on Android",
            ),
            ("curl/8.14.1", "curl 8.14.1"),
            (" curl/8.14.1 ", "curl 8.14.1"),
            ("", ""),
            ("x", "x"),
            ("/", "/"),
            ("Mozilla/5.0", "Mozilla/5.0"),
            ("a/1 (", "a/1 ("),
            ("a/1 (b; c; d; e)", "a/1 (b; c; d; e)"),
            ("<b>/1", "<b> 1"),
            ("é/ü (ö", "é ü on ö"),
        ] {
            assert_eq!(in_words(user_agent), expected);
        }
    }
}
