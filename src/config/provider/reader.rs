//! Checks a provider's settings against each other and against its preset.

use std::path::Path;
use std::sync::Arc;

use figment::Figment;
use url::Url;

use super::Provider;
use super::keys::{APPLES_ID, CLIENT_ID, Client, ISSUER, Keys};
use crate::config::error::Error;
use crate::config::file;
use crate::config::preset::{Defaults, GOOGLE_TOKENINFO, Origin, Preset};
use crate::config::protocol::{Protocol, Verify};
use crate::config::text::{DAY, is_name};
use crate::domain::claims::Nonces;
use crate::domain::client_key::ClientKey;
use crate::domain::id_token::Format;
use crate::domain::linking::Policy;
use crate::domain::{Issuers, Link, NoncePolicy};
use crate::secret::Secret;

/// Concurrent calls to an endpoint. At 100 ms each that is several hundred per second.
const MAX_CALLS: u32 = 64;

/// Reads a provider. A section names a further provider; the default one has a setting for its name.
pub(in crate::config) fn read(
    figment: &Figment,
    key: &str,
    section: Option<&str>,
    raw: &Keys,
) -> Result<Provider, Error> {
    let preset = raw.preset.or_else(|| implied(raw));
    let reader = Reader { figment, key, raw, preset, defaults: Defaults::of(preset) };
    let remedy = "remove it, because the section's name is the provider's name";
    reader.refuse(section.is_some() && raw.name.is_some(), "name", "is set twice", remedy)?;
    let name = section.or(raw.name.as_deref()).unwrap_or("idp");
    let field = if section.is_some() { "" } else { "name" };
    let remedy = "use 1 to 32 of a-z, 0-9, - and _";
    reader.refuse(!is_name(name), field, "is not a valid provider name", remedy)?;
    reader.read(name)
}

/// Returns Google as the preset, unless another token-information endpoint or a URL of keys is set.
fn implied(raw: &Keys) -> Option<Preset> {
    let asked = raw.tokeninfo_url.as_ref().is_none_or(|url| url.as_str() == GOOGLE_TOKENINFO);
    (asked && raw.jwks_url.is_none()).then_some(Preset::Google)
}

struct Reader<'a> {
    figment: &'a Figment,
    key: &'a str,
    raw: &'a Keys,
    preset: Option<Preset>,
    defaults: &'static Defaults,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: &str, remedy: &str) -> Error {
        let key = if field.is_empty() { self.key.to_owned() } else { format!("{}.{field}", self.key) };
        Error::at(self.figment, &key, problem, remedy)
    }

    fn refuse(&self, wrong: bool, field: &str, problem: &str, remedy: &str) -> Result<(), Error> {
        if wrong { Err(self.error(field, problem, remedy)) } else { Ok(()) }
    }

    fn require<T: Clone>(&self, field: &str, set: Option<&T>, remedy: &str) -> Result<T, Error> {
        set.cloned().ok_or_else(|| self.error(field, "is missing", remedy))
    }

    fn read(&self, name: &str) -> Result<Provider, Error> {
        let (raw, defaults) = (self.raw, self.defaults);
        let mut client_ids = vec![self.require("client_id", raw.client_id.as_ref(), CLIENT_ID)?];
        client_ids.extend(raw.additional_client_ids.iter().cloned());
        let client_secret =
            self.secret("client_secret", raw.client_secret.as_ref(), raw.client_secret_file.as_deref())?;
        let nonces = self.nonces(&client_ids)?;
        self.check_preset()?;
        let tenant = raw.tenants.clone().unwrap_or_default();
        let url = |set: &Option<Url>, default: Option<&str>| {
            set.clone().or_else(|| Url::parse(&tenant.select(default?)).ok())
        };
        let verify = raw.verify.unwrap_or(defaults.verify);
        let provider = Provider {
            name: name.to_owned(),
            key: self.key.to_owned(),
            kind: self.preset.unwrap_or(Preset::Oidc),
            enabled: raw.enabled.unwrap_or(true),
            client_ids,
            client_secret: client_secret.map(Into::into),
            verify,
            tokeninfo_url: url(&raw.tokeninfo_url, defaults.tokeninfo_url),
            protocol: defaults.protocol,
            introspects_id_tokens: defaults.introspects_id_tokens,
            jwks_url: url(&raw.jwks_url, defaults.jwks_url),
            ssf_url: url(&raw.ssf_url, defaults.ssf_url),
            issuer: raw.issuer.as_ref().map(|set| set.issuer.clone()),
            discovery: raw.issuer.as_ref().map(|set| set.document.clone()),
            authorization_url: url(&raw.authorization_url, defaults.authorization_url),
            token_url: url(&raw.token_url, defaults.token_url),
            token_auth: raw.token_auth.or(defaults.token_auth),
            revocation_url: url(&raw.revocation_url, defaults.revocation_url),
            client_key: self.client_key()?,
            issuers: self.issuers()?,
            dialect: defaults.dialect,
            allowed_domains: raw.allowed_domains.iter().map(|domain| domain.to_ascii_lowercase()).collect(),
            token_format: raw.token_format.unwrap_or(match verify {
                Verify::Tokeninfo => defaults.format,
                Verify::Jwks | Verify::Both => Format::Jwt,
            }),
            nonces,
            bindings: raw
                .clients
                .iter()
                .filter_map(|(id, client)| Some((id.clone(), client.binding?)))
                .collect(),
            trust_email: raw.trust_email,
            max_token_age: raw.max_token_age.unwrap_or(DAY),
            max_calls: raw.max_calls.unwrap_or(MAX_CALLS) as usize,
            policy: Policy {
                link: raw.link,
                unverified_email: raw.unverified_email,
                missing_email: raw.missing_email,
                recycled_email: raw.recycled_email,
            },
        };
        self.check_verification(&provider)?;
        Ok(provider)
    }

    fn nonces(&self, client_ids: &[String]) -> Result<Nonces, Error> {
        let raw = self.raw;
        let usual = NoncePolicy {
            rule: raw.nonce.unwrap_or(self.defaults.nonce.rule),
            form: raw.nonce_form.unwrap_or(self.defaults.nonce.form),
        };
        let foreign = raw.clients.keys().any(|id| !client_ids.contains(id));
        let remedy = "use values of `client_id` and `additional_client_ids` only";
        let problem = "contains a value that is not a client id of this provider";
        self.refuse(foreign, "clients", problem, remedy)?;
        let policy = |client: &Client| NoncePolicy {
            rule: client.nonce.unwrap_or(usual.rule),
            form: client.nonce_form.unwrap_or(usual.form),
        };
        let by_client = raw.clients.iter().map(|(id, client)| (id.clone(), policy(client))).collect();
        Ok(Nonces { usual, by_client })
    }

    /// Refuses settings of other presets, and rules on `hd` if the provider's tokens never have it: no user could sign in
    /// or link.
    fn check_preset(&self) -> Result<(), Error> {
        let (raw, defaults) = (self.raw, self.defaults);
        let discovered = defaults.issuers == Origin::Discovered;
        self.refuse(discovered && raw.issuer.is_none(), "issuer", "is missing", ISSUER)?;
        let problem = "is for the presets `keycloak` and `oidc` only";
        let remedy = "remove it, or set `preset`; list accepted issuers in `issuers`";
        self.refuse(!discovered && raw.issuer.is_some(), "issuer", problem, remedy)?;
        let stray = raw.tenants.is_some() && defaults.issuers != Origin::Tenants;
        self.refuse(stray, "tenants", "is for the preset `microsoft` only", "remove it, or set `preset`")?;
        let problem = "cannot be used here: this provider's tokens have no `hd`";
        let without = |used: bool| used && !defaults.hosted_domains;
        self.refuse(without(!raw.allowed_domains.is_empty()), "allowed_domains", problem, "remove it")?;
        let remedy = "set it to \"verified\" or \"never\"";
        self.refuse(without(raw.link == Link::Authoritative), "link", problem, remedy)
    }

    /// Checks that the chosen verification has all its settings, and that none is set that it would ignore.
    fn check_verification(&self, provider: &Provider) -> Result<(), Error> {
        const ASKED: &str = "is not used with `verify = \"jwks\"`";
        const SIGNED: &str = "is not used without `verify = \"jwks\"` or \"both\"";
        let raw = self.raw;
        let asked = provider.verify != Verify::Jwks;
        let signed = provider.verify != Verify::Tokeninfo;
        let problem = "cannot be used here: this provider has no token-information endpoint";
        let remedy = "set it to \"jwks\" or remove it";
        self.refuse(asked && !self.defaults.can_be_asked, "verify", problem, remedy)?;
        if asked {
            let url = provider.tokeninfo_url.as_ref().or(provider.discovery.as_ref());
            self.require("tokeninfo_url", url, "set it to the provider's endpoint")?;
        }
        if signed {
            let url = provider.jwks_url.as_ref().or(provider.discovery.as_ref());
            self.require("jwks_url", url, "set it to the URL of the provider's keys")?;
        }
        let problem = "must be \"jwt\" when signatures are verified";
        let remedy = "remove it, or set `verify` to \"tokeninfo\"";
        self.refuse(signed && provider.token_format == Format::Any, "token_format", problem, remedy)?;
        for (field, set, used, problem) in [
            ("tokeninfo_url", raw.tokeninfo_url.is_some(), asked, ASKED),
            ("jwks_url", raw.jwks_url.is_some(), signed, SIGNED),
        ] {
            self.refuse(set && !used, field, problem, "remove it, or correct `verify`")?;
        }
        if asked && provider.protocol == Protocol::Introspection {
            let remedy = "set it to the client secret that the provider issued";
            self.require("client_secret", provider.client_secret.as_ref(), remedy)?;
        }
        Ok(())
    }

    fn issuers(&self) -> Result<Issuers, Error> {
        if !self.raw.issuers.is_empty() {
            return Ok(Issuers::Listed(self.raw.issuers.clone()));
        }
        let known = match self.defaults.issuers {
            Origin::Tenants => {
                return Ok(Issuers::Tenants(self.raw.tenants.clone().unwrap_or_default().tenants));
            }
            Origin::Discovered => self.raw.issuer.iter().map(|set| set.issuer.clone()).collect(),
            Origin::Listed(issuers) => issuers.iter().map(|&issuer| issuer.to_owned()).collect(),
        };
        let known = Some(known).filter(|known: &Vec<_>| !known.is_empty());
        let remedy = "list the values of `iss` in this provider's tokens";
        self.require("issuers", known.as_ref(), remedy).map(Issuers::Listed)
    }

    /// Reads the key that signs client secrets: it is there as a whole or not at all.
    fn client_key(&self) -> Result<Option<Arc<ClientKey>>, Error> {
        let raw = self.raw;
        let key_field = if raw.private_key_file.is_some() { "private_key_file" } else { "private_key" };
        let set = [
            ("team_id", raw.team_id.is_some()),
            ("key_id", raw.key_id.is_some()),
            (key_field, raw.private_key.is_some() || raw.private_key_file.is_some()),
        ];
        let Some((first, _)) = set.iter().find(|(_, set)| *set) else { return Ok(None) };
        let stray = self.preset != Some(Preset::Apple);
        self.refuse(stray, first, "is for the preset `apple` only", "remove it, or set `preset`")?;
        let team_id = self.require("team_id", raw.team_id.as_ref(), APPLES_ID)?;
        let key_id = self.require("key_id", raw.key_id.as_ref(), APPLES_ID)?;
        let pem = self.secret("private_key", raw.private_key.as_ref(), raw.private_key_file.as_deref())?;
        let remedy = "set it to the contents of the .p8 file that Apple's developer pages offer once";
        let pem = self.require("private_key", pem.as_ref(), remedy)?;
        let key = ClientKey::read(team_id, key_id, pem.expose());
        let key = key.map_err(|_| self.error(key_field, "is not a private key of Apple's", remedy))?;
        Ok(Some(Arc::new(key)))
    }

    /// Reads a secret, which is set itself or by a file.
    fn secret(
        &self,
        field: &str,
        secret: Option<&Secret<String>>,
        file: Option<&Path>,
    ) -> Result<Option<Secret<String>>, Error> {
        let Some(path) = file else { return Ok(secret.cloned()) };
        let field_of_file = format!("{field}_file");
        let problem = format!("is set in addition to {field}");
        self.refuse(secret.is_some(), &field_of_file, &problem, "remove one of them")?;
        let text = file::secret(path);
        let text = text.map_err(|(problem, remedy)| self.error(&field_of_file, &problem, remedy))?;
        Ok(Some(Secret::new(text)))
    }
}
