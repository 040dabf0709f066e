//! Checks a provider's settings against each other and against its preset.

use std::path::PathBuf;
use std::sync::Arc;

use figment::Figment;
use url::Url;

use super::keys::{Client, Keys};
use super::{CERTIFICATE, ClientAuthentication, Method, Protocol, Provider, Verify};
use crate::config::preset::{self, Defaults, GOOGLE_TOKENINFO, Origin, Preset};
use crate::config::{Error, file};
use crate::domain::claims::{NoncePolicy, Nonces};
use crate::domain::client_key::ClientKey;
use crate::domain::id_token::Format;
use crate::domain::issuer::Issuers;
use crate::domain::linking::{Link, Policy};
use crate::domain::metadata;
use crate::domain::secure_url::secure;
use crate::secret::Secret;

/// Concurrent calls to an endpoint. At 100 ms each that is several hundred per second.
const MAX_CALLS: u32 = 64;
const DAY: u32 = 24 * 60 * 60;

/// Reads the default provider, which has a setting for its name.
pub(in crate::config) fn read(figment: &Figment, key: &str, mut raw: Keys) -> Result<Provider, Error> {
    let name = raw.name.take().unwrap_or_else(|| "idp".into());
    Reader { figment, key, name: &name, name_key: "name" }.read(&raw)
}

/// Reads a further provider, which is named by its section.
pub(in crate::config) fn read_named(
    figment: &Figment,
    key: &str,
    name: &str,
    raw: &Keys,
) -> Result<Provider, Error> {
    let reader = Reader { figment, key, name, name_key: "" };
    if raw.name.is_some() {
        return Err(reader.error(
            "name",
            "is set twice",
            "remove it, because the section's name is the provider's name",
        ));
    }
    reader.read(raw)
}

struct Reader<'a> {
    figment: &'a Figment,
    key: &'a str,
    name: &'a str,
    name_key: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        let key = if field.is_empty() { self.key.to_owned() } else { format!("{}.{field}", self.key) };
        Error::at(self.figment, &key, problem, remedy)
    }

    fn read(&self, raw: &Keys) -> Result<Provider, Error> {
        self.check_name()?;
        let preset = raw.preset.or_else(|| implied(raw));
        let defaults = Defaults::of(preset);
        let client_ids = self.client_ids(raw.client_id.as_deref(), raw.additional_client_ids.clone())?;
        let client_secret =
            self.secret("client_secret", raw.client_secret.clone(), raw.client_secret_file.clone())?;
        let nonces = self.nonces(raw, defaults, &client_ids)?;
        let verify = raw.verify.unwrap_or(defaults.verify);
        let discovery = self.discovery(raw, defaults)?;
        let tenant = self.tenant(raw, defaults)?;
        let default_url = |url: Option<&str>| match (url, &tenant) {
            (Some(url), Some(tenant)) => Some(preset::with_tenant(url, &tenant.segment)),
            (url, _) => url.map(str::to_owned),
        };
        let url = |field, set: &Option<String>, default| {
            let text = set.clone().or_else(|| default_url(default));
            text.map(|text| self.url(field, &text)).transpose()
        };
        let max_token_age = raw.max_token_age.unwrap_or(DAY);
        if !(60..=DAY).contains(&max_token_age) {
            return Err(self.error("max_token_age", "is out of range", "set it to 60 to 86400 seconds"));
        }
        self.check_domains(raw, defaults)?;
        let provider = Provider {
            name: self.name.to_owned(),
            key: self.key.to_owned(),
            kind: preset.unwrap_or(Preset::Oidc),
            enabled: raw.enabled.unwrap_or(true),
            client_ids,
            client_secret,
            verify,
            tokeninfo_url: url("tokeninfo_url", &raw.tokeninfo_url, defaults.tokeninfo_url)?,
            tokeninfo_method: raw.tokeninfo_method.unwrap_or(defaults.method),
            protocol: self.protocol(raw, defaults)?,
            introspects_id_tokens: defaults.introspects_id_tokens,
            jwks_url: url("jwks_url", &raw.jwks_url, defaults.jwks_url)?,
            ssf_url: url("ssf_url", &raw.ssf_url, defaults.ssf_url)?,
            issuer: discovery.as_ref().map(|(issuer, _)| issuer.clone()),
            discovery: discovery.as_ref().map(|(_, url)| url.clone()),
            authorization_url: url("authorization_url", &raw.authorization_url, defaults.authorization_url)?,
            token_url: url("token_url", &raw.token_url, defaults.token_url)?,
            token_auth: self.token_auth(raw)?.or(defaults.token_auth),
            revocation_url: url("revocation_url", &raw.revocation_url, defaults.revocation_url)?,
            client_key: self.client_key(raw, preset)?,
            issuers: match (tenant, discovery) {
                (Some(tenant), _) if raw.issuers.is_empty() => Issuers::Tenants(tenant.tenants),
                (_, Some((issuer, _))) if raw.issuers.is_empty() => Issuers::Listed(vec![issuer]),
                _ => Issuers::Listed(self.issuers(raw.issuers.clone(), defaults)?),
            },
            dialect: defaults.dialect,
            allowed_domains: raw.allowed_domains.iter().map(|domain| domain.to_ascii_lowercase()).collect(),
            token_format: raw.token_format.unwrap_or(match verify {
                Verify::Tokeninfo => defaults.format,
                Verify::Jwks | Verify::Both => Format::Jwt,
            }),
            nonces,
            trust_email: raw.trust_email.unwrap_or(false),
            max_token_age,
            max_calls: self.max_calls(raw)?,
            verify_cache: self.verify_cache(raw, verify)?,
            policy: Policy {
                link: raw.link,
                unverified_email: raw.unverified_email,
                missing_email: raw.missing_email,
                recycled_email: raw.recycled_email,
            },
        };
        self.check_verification(raw, defaults, &provider)?;
        Ok(provider)
    }

    fn nonces(&self, raw: &Keys, defaults: &Defaults, client_ids: &[String]) -> Result<Nonces, Error> {
        let usual = NoncePolicy {
            rule: raw.nonce.unwrap_or(defaults.nonce.rule),
            form: raw.nonce_form.unwrap_or(defaults.nonce.form),
        };
        if raw.clients.keys().any(|id| !client_ids.contains(id)) {
            let remedy = "use values of `client_id` and `additional_client_ids` only";
            return Err(self.error(
                "clients",
                "contains a value that is not a client id of this provider",
                remedy,
            ));
        }
        let policy = |client: &Client| NoncePolicy {
            rule: client.nonce.unwrap_or(usual.rule),
            form: client.nonce_form.unwrap_or(usual.form),
        };
        let by_client = raw.clients.iter().map(|(id, client)| (id.clone(), policy(client))).collect();
        Ok(Nonces { usual, by_client })
    }

    fn max_calls(&self, raw: &Keys) -> Result<usize, Error> {
        let calls = raw.max_calls.unwrap_or(MAX_CALLS);
        let calls = usize::try_from(calls).ok().filter(|calls| (1..=10_000).contains(calls));
        calls.ok_or_else(|| self.error("max_calls", "is out of range", "set it to 1 to 10000"))
    }

    fn token_auth(&self, raw: &Keys) -> Result<Option<ClientAuthentication>, Error> {
        if raw.token_auth == Some(ClientAuthentication::None) {
            let remedy = "set it to \"client_secret_basic\" or \"client_secret_post\"";
            return Err(self.error("token_auth", "must be a method that sends the client secret", remedy));
        }
        Ok(raw.token_auth)
    }

    fn verify_cache(&self, raw: &Keys, verify: Verify) -> Result<u32, Error> {
        let seconds = raw.verify_cache.unwrap_or(0);
        if seconds > 3600 {
            let remedy = "set it to at most 3600s, the time for which a revoked token stays accepted";
            return Err(self.error("verify_cache", "is out of range", remedy));
        }
        if seconds > 0 && verify == Verify::Jwks {
            return Err(self.error("verify_cache", "is not used with `verify = \"jwks\"`", "remove it"));
        }
        Ok(seconds)
    }

    /// Checks that the chosen verification has all its settings, and that none is set that it would ignore.
    fn check_verification(&self, raw: &Keys, defaults: &Defaults, provider: &Provider) -> Result<(), Error> {
        const ASKED: &str = "is not used with `verify = \"jwks\"`";
        const SIGNED: &str = "is not used without `verify = \"jwks\"` or \"both\"";
        let asked = provider.verify != Verify::Jwks;
        let signed = provider.verify != Verify::Tokeninfo;
        if asked && !defaults.can_be_asked {
            let problem = "cannot be used here: this provider has no token-information endpoint";
            return Err(self.error("verify", problem, "set it to \"jwks\" or remove it"));
        }
        if asked && provider.tokeninfo_url.is_none() && provider.discovery.is_none() {
            return Err(self.error("tokeninfo_url", "is missing", "set it to the provider's endpoint"));
        }
        if signed && provider.jwks_url.is_none() && provider.discovery.is_none() {
            return Err(self.error("jwks_url", "is missing", "set it to the URL of the provider's keys"));
        }
        if signed && provider.token_format == Format::Any {
            let remedy = "remove it, or set `verify` to \"tokeninfo\"";
            return Err(self.error("token_format", "must be \"jwt\" when signatures are verified", remedy));
        }
        for (field, set, used, problem) in [
            ("tokeninfo_url", raw.tokeninfo_url.is_some(), asked, ASKED),
            ("tokeninfo_method", raw.tokeninfo_method.is_some(), asked, ASKED),
            ("tokeninfo_auth", raw.tokeninfo_auth.is_some(), asked, ASKED),
            ("jwks_url", raw.jwks_url.is_some(), signed, SIGNED),
        ] {
            if set && !used {
                return Err(self.error(field, problem, "remove it, or correct `verify`"));
            }
        }
        let authenticates = matches!(
            provider.protocol,
            Protocol::Introspection(
                ClientAuthentication::ClientSecretBasic | ClientAuthentication::ClientSecretPost
            )
        );
        if asked && authenticates && provider.client_secret.is_none() {
            let remedy =
                "set it to the client secret that the provider issued, or `tokeninfo_auth` to \"none\"";
            return Err(self.error("client_secret", "is missing", remedy));
        }
        Ok(())
    }

    fn protocol(&self, raw: &Keys, defaults: &Defaults) -> Result<Protocol, Error> {
        match (defaults.protocol, raw.tokeninfo_auth) {
            (Protocol::Introspection(_), _) if raw.tokeninfo_method == Some(Method::Get) => {
                Err(self.error("tokeninfo_method", "must be \"post\" for token introspection", "remove it"))
            }
            (Protocol::Introspection(usual), auth) => Ok(Protocol::Introspection(auth.unwrap_or(usual))),
            (_, Some(_)) => {
                let problem = "is for token introspection only";
                Err(self.error("tokeninfo_auth", problem, "remove it, or set `preset` to \"rfc7662\""))
            }
            (protocol, None) => Ok(protocol),
        }
    }

    /// Returns `issuer` exactly as written, and the URL of its discovery document.
    fn discovery(&self, raw: &Keys, defaults: &Defaults) -> Result<Option<(String, Url)>, Error> {
        const REMEDY: &str =
            "set it to the provider's issuer URL, such as https://id.example.com/realms/people";
        match (&raw.issuer, defaults.issuers == Origin::Discovered) {
            (None, false) => Ok(None),
            (None, true) => Err(self.error("issuer", "is missing", REMEDY)),
            (Some(_), false) => {
                let problem = "is for the presets `keycloak` and `oidc` only";
                Err(self.error(
                    "issuer",
                    problem,
                    "remove it, or set `preset`; list accepted issuers in `issuers`",
                ))
            }
            (Some(issuer), true) => {
                let url = self.url("issuer", issuer)?;
                if url.path().ends_with(metadata::WELL_KNOWN) {
                    let remedy = format!("remove `{}` from the end", metadata::WELL_KNOWN);
                    return Err(self.error("issuer", "is the URL of the discovery document", remedy));
                }
                if url.query().is_some() {
                    return Err(self.error("issuer", "must not have a query", REMEDY));
                }
                Ok(Some((issuer.clone(), metadata::address(&url))))
            }
        }
    }

    fn tenant(&self, raw: &Keys, defaults: &Defaults) -> Result<Option<preset::Tenant>, Error> {
        if defaults.issuers == Origin::Tenants {
            return preset::tenants(&raw.tenants).map(Some).ok_or_else(|| {
                let problem = "are neither ids nor one of `common`, `organizations` and `consumers`";
                self.error("tenants", problem, "set it to the ids of the organisations that may sign in")
            });
        }
        if raw.tenants.is_empty() {
            Ok(None)
        } else {
            Err(self.error("tenants", "is for the preset `microsoft` only", "remove it, or set `preset`"))
        }
    }

    fn issuers(&self, set: Vec<String>, defaults: &Defaults) -> Result<Vec<String>, Error> {
        if !set.is_empty() {
            return Ok(set);
        }
        match defaults.issuers {
            Origin::Listed(issuers) if !issuers.is_empty() => {
                Ok(issuers.iter().map(|&issuer| issuer.to_owned()).collect())
            }
            _ => {
                Err(self.error("issuers", "is missing", "list the values of `iss` in this provider's tokens"))
            }
        }
    }

    /// Refuses rules on `hd` if the provider's tokens never have it: no user could sign in or link.
    fn check_domains(&self, raw: &Keys, defaults: &Defaults) -> Result<(), Error> {
        const PROBLEM: &str = "cannot be used here: this provider's tokens have no `hd`";
        if defaults.hosted_domains {
            return Ok(());
        }
        if !raw.allowed_domains.is_empty() {
            return Err(self.error("allowed_domains", PROBLEM, "remove it"));
        }
        if raw.link == Link::Authoritative {
            return Err(self.error("link", PROBLEM, "set it to \"verified\" or \"never\""));
        }
        Ok(())
    }

    fn check_name(&self) -> Result<(), Error> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let sound = (1..=32).contains(&self.name.len()) && self.name.bytes().all(plain);
        sound.then_some(()).ok_or_else(|| {
            self.error(self.name_key, "is not a valid provider name", "use 1 to 32 of a-z, 0-9, - and _")
        })
    }

    fn client_ids(&self, client_id: Option<&str>, additional: Vec<String>) -> Result<Vec<String>, Error> {
        const REMEDY: &str = "set it to the client id that the provider issued";
        let client_id = client_id.ok_or_else(|| self.error("client_id", "is missing", REMEDY))?;
        if client_id.is_empty() || client_id.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(self.error("client_id", "is empty or contains whitespace", REMEDY));
        }
        if client_id.contains(',') {
            let remedy = "keep one client id and list the others in additional_client_ids";
            return Err(self.error("client_id", "contains a comma", remedy));
        }
        let mut ids = vec![client_id.to_owned()];
        ids.extend(additional);
        Ok(ids)
    }

    /// Reads the key that signs client secrets: it is there as a whole or not at all.
    fn client_key(&self, raw: &Keys, preset: Option<Preset>) -> Result<Option<Arc<ClientKey>>, Error> {
        let key_field = if raw.private_key_file.is_some() { "private_key_file" } else { "private_key" };
        let set = [
            ("team_id", raw.team_id.is_some()),
            ("key_id", raw.key_id.is_some()),
            (key_field, raw.private_key.is_some() || raw.private_key_file.is_some()),
        ];
        let Some((first, _)) = set.iter().find(|(_, set)| *set) else { return Ok(None) };
        if preset != Some(Preset::Apple) {
            let problem = "is for the preset `apple` only";
            return Err(self.error(first, problem, "remove it, or set `preset`"));
        }
        let id = |field, id: &Option<String>| {
            let remedy = "set it to the ten letters and digits that Apple's developer pages show";
            match id {
                None => Err(self.error(field, "is missing", remedy)),
                Some(id) if id.len() == 10 && id.bytes().all(|b| b.is_ascii_alphanumeric()) => Ok(id.clone()),
                Some(_) => Err(self.error(field, "is not an id of Apple's", remedy)),
            }
        };
        let (team_id, key_id) = (id("team_id", &raw.team_id)?, id("key_id", &raw.key_id)?);
        let pem = self.secret("private_key", raw.private_key.clone(), raw.private_key_file.clone())?;
        let remedy = "set it to the contents of the .p8 file that Apple's developer pages offer once";
        let pem = pem.ok_or_else(|| self.error("private_key", "is missing", remedy))?;
        let key = ClientKey::read(team_id, key_id, pem.expose());
        let key = key.map_err(|_| self.error(key_field, "is not a private key of Apple's", remedy))?;
        Ok(Some(Arc::new(key)))
    }

    /// Reads a secret, which is set itself or by a file.
    fn secret(
        &self,
        field: &str,
        secret: Option<Secret<String>>,
        file: Option<PathBuf>,
    ) -> Result<Option<Secret<String>>, Error> {
        let file_field = format!("{field}_file");
        match (secret, file) {
            (Some(_), Some(_)) => {
                Err(self.error(&file_field, format!("is set in addition to {field}"), "remove one of them"))
            }
            (Some(secret), None) if secret.expose().trim().is_empty() => {
                Err(self.error(field, "is empty", "set it or remove it"))
            }
            (secret, None) => Ok(secret),
            (None, Some(path)) => file::secret(&path)
                .map(|text| Some(Secret::new(text)))
                .map_err(|(problem, remedy)| self.error(&file_field, problem, remedy)),
        }
    }

    fn url(&self, field: &str, text: &str) -> Result<Url, Error> {
        const REMEDY: &str = "set it to the provider's endpoint";
        let url = Url::parse(text).map_err(|e| self.error(field, format!("is not a URL ({e})"), REMEDY))?;
        if !secure(&url) {
            let problem = "must be https (http only on this machine), without a password or a fragment";
            let remedy = match url.scheme() {
                "http" => CERTIFICATE,
                _ => REMEDY,
            };
            return Err(self.error(field, problem, remedy));
        }
        if url.query_pairs().any(|(name, _)| name == "id_token" || name == "token") {
            return Err(self.error(field, "must not have an `id_token` or `token` parameter", REMEDY));
        }
        Ok(url)
    }
}

/// Returns Google as the preset, unless another token-information endpoint or a URL of keys is set.
fn implied(raw: &Keys) -> Option<Preset> {
    let asked = raw.tokeninfo_url.as_deref().is_none_or(|url| url == GOOGLE_TOKENINFO);
    (asked && raw.jwks_url.is_none()).then_some(Preset::Google)
}
