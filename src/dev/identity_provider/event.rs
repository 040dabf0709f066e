//! Security event tokens (RFC 8417) about an account, with subjects as Google writes them.
//! `vestibule dev event` sends them to the service as a provider would (RFC 8935).

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::IdentityProvider;
use super::account::DevAccount;
use crate::clock;

/// The events that the provider can send, with the families of their types.
pub const KINDS: [(&str, &str); 13] = [
    ("sessions-revoked", "risc"),
    ("session-revoked", "caep"),
    ("tokens-revoked", "oauth"),
    ("token-revoked", "oauth"),
    ("account-disabled", "risc"),
    ("account-enabled", "risc"),
    ("account-purged", "risc"),
    ("account-credential-change-required", "risc"),
    ("credential-compromise", "risc"),
    ("credential-change", "caep"),
    ("identifier-changed", "risc"),
    ("identifier-recycled", "risc"),
    ("verification", "risc"),
];

/// An event for `vestibule dev event`.
#[derive(Args)]
pub struct Report {
    /// Kind of event
    #[arg(value_parser = PossibleValuesParser::new(KINDS.map(|(kind, _)| kind)))]
    pub kind: String,
    /// E-mail address of the account
    #[arg(long)]
    pub email: Option<String>,
    /// Subject; derived from the e-mail address by default
    #[arg(long)]
    sub: Option<String>,
    /// The provider's reason, such as `hijacking` or `bulk-account`
    #[arg(long)]
    reason: Option<String>,
}

impl IdentityProvider {
    /// Issues the token of an event.
    pub fn report(&self, report: &Report) -> Result<String, &'static str> {
        let known = KINDS.iter().find(|(kind, _)| *kind == report.kind);
        let (kind, family) = known.ok_or("`kind` is not an event that this provider sends")?;
        let mut event = json!({});
        if let Some(reason) = &report.reason {
            event["reason"] = reason.as_str().into();
        }
        match *kind {
            "verification" => event["state"] = "vestibule dev event".into(),
            // The hash matches no token: the service stores no tokens of this provider.
            "token-revoked" => {
                event["subject"] = json!({
                    "subject_type": "oauth_token", "token_type": "refresh_token",
                    "token_identifier_alg": "hash_base64_sha512_sha512", "token": Uuid::new_v4(),
                });
            }
            kind => {
                let [email, subject] =
                    [&report.email, &report.sub].map(|text| text.as_deref().unwrap_or_default());
                let account = DevAccount::new(email, subject, "", true)?;
                event["subject"] = json!({ "subject_type": "iss-sub", "iss": self.issuer, "sub": account.subject });
                if kind == "credential-change" {
                    event["credential_type"] = "password".into();
                    event["change_type"] = "update".into();
                }
                if let Some(email) = account.email.filter(|_| kind == "identifier-changed") {
                    event["new-value"] = format!("new.{}", email.as_given()).into();
                }
            }
        }
        let header = json!({ "alg": "RS256", "kid": self.key.id, "typ": "secevent+jwt" });
        let uri = format!("https://schemas.openid.net/secevent/{family}/event-type/{kind}");
        let mut events = serde_json::Map::new();
        events.insert(uri, event);
        let claims = json!({
            "iss": self.issuer, "aud": self.client_id, "iat": clock::now(), "jti": Uuid::new_v4(),
            "events": Value::Object(events),
        });
        Ok(self.sign(&header, &claims))
    }
}
