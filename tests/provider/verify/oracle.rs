//! A second, independent implementation of the rules for claims. The service may accept only claims
//! that this one accepts.

use serde_json::Value;

use super::under_test::NOW;

const MINUTE: i128 = 60;
const DAY: i128 = 24 * 60 * MINUTE;

/// The rules of one provider.
pub struct Rules {
    /// `None` allows any Microsoft tenant, by its `tid`.
    pub issuers: Option<Vec<String>>,
    pub clients: Vec<String>,
    pub numbers_are_audiences: bool,
    pub client_id_counts: bool,
    pub stray_nonce: bool,
    /// The claim that verifies an address, and its valid values.
    pub proof: (&'static str, Vec<Value>),
}

/// A response as a list of members, which may repeat a name.
pub type Members = Vec<(String, Value)>;

impl Rules {
    pub fn accept(&self, members: &Members) -> bool {
        let twice = members
            .iter()
            .enumerate()
            .any(|(at, (name, _))| members[..at].iter().any(|(n, _)| n == name));
        !twice
            && self.issuer(members)
            && self.audience(members)
            && dates(members)
            && subject(members)
            && (self.stray_nonce || find(members, "nonce").is_none())
            && is_id_token(members)
    }

    pub fn vouches(&self, members: &Members) -> bool {
        find(members, self.proof.0).is_some_and(|value| self.proof.1.contains(value))
    }

    fn issuer(&self, members: &Members) -> bool {
        let Some(Value::String(issuer)) = find(members, "iss") else {
            return false;
        };
        if let Some(issuers) = &self.issuers {
            return issuers.contains(issuer);
        }
        let Some(Value::String(tenant)) = find(members, "tid") else {
            return false;
        };
        let groups: Vec<_> = tenant.split('-').map(str::len).collect();
        groups == [8, 4, 4, 4, 12]
            && tenant
                .chars()
                .all(|c| c == '-' || matches!(c, '0'..='9' | 'a'..='f'))
            && *issuer == format!("https://login.microsoftonline.com/{tenant}/v2.0")
    }

    fn audience(&self, members: &Members) -> bool {
        let ours = |value: &Value| match value {
            Value::String(text) => self.clients.contains(text),
            Value::Number(number) => {
                self.numbers_are_audiences
                    && number.is_u64()
                    && self.clients.contains(&number.to_string())
            }
            _ => false,
        };
        let audience = match find(members, "aud") {
            Some(Value::Array(several)) => !several.is_empty() && several.iter().all(ours),
            Some(one) => ours(one),
            None => false,
        };
        let party = |name| match find(members, name) {
            None => true,
            Some(Value::String(text)) => self.clients.contains(text),
            Some(_) => false,
        };
        audience && party("azp") && (!self.client_id_counts || party("client_id"))
    }
}

fn find<'m>(members: &'m Members, name: &str) -> Option<&'m Value> {
    members
        .iter()
        .find(|(n, value)| n == name && !value.is_null())
        .map(|(_, value)| value)
}

fn is_id_token(members: &Members) -> bool {
    let says = |name, words: &[&str]| match find(members, name) {
        None => true,
        Some(Value::String(text)) => words.contains(&text.to_ascii_lowercase().as_str()),
        Some(_) => false,
    };
    let foreign = ["scope", "scp", "azpacr", "appidacr", "events"];
    says("typ", &["id", "jwt"])
        && says("token_use", &["id"])
        && foreign.iter().all(|name| find(members, name).is_none())
}

fn subject(members: &Members) -> bool {
    match find(members, "sub") {
        Some(Value::String(text)) => {
            let within = text.len() < 256 && text.chars().all(|c| (' '..='~').contains(&c));
            within && !text.trim_matches(' ').is_empty()
        }
        _ => false,
    }
}

fn dates(members: &Members) -> bool {
    let now = i128::from(NOW);
    let read = |name| find(members, name).map(date);
    let (Some(Some(expires)), Some(Some(issued))) = (read("exp"), read("iat")) else {
        return false;
    };
    let begins = match read("nbf") {
        None => now,
        Some(Some(begins)) => begins,
        Some(None) => return false,
    };
    now < expires + MINUTE
        && issued <= now + MINUTE
        && issued >= now - DAY
        && begins <= now + MINUTE
}

/// Whole seconds, up to the last of the year 9999.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is whole and small enough by then"
)]
fn date(value: &Value) -> Option<i128> {
    let seconds = match value {
        Value::Number(number) => {
            let whole = number.as_i128();
            whole.or_else(|| {
                number
                    .as_f64()
                    .map(|seconds| seconds.trunc().clamp(-9.3e18, 9.3e18) as i128)
            })
        }
        Value::String(text) if text.chars().all(|c| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    seconds.filter(|seconds| *seconds <= 253_402_300_799)
}
