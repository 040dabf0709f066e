//! Reads a provider's settings above the defaults of its preset, and checks them against each
//! other.

use std::sync::Arc;

use figment::Figment;
use figment::providers::{Format as _, Toml};
use url::Url;

use super::Provider;
use super::values::{CLIENT_ID, Client, ISSUER};
use crate::config::error::Error;
use crate::config::protocol::Verify;
use crate::config::section::Section;
use crate::config::text::is_name;
use crate::domain::claims::Nonces;
use crate::domain::id_token::Format;
use crate::domain::linking::Policy;
use crate::domain::presets::apple::{self, ClientKey};
use crate::domain::presets::microsoft::Tenants;
use crate::domain::presets::{OF_EACH, PRESETS, Preset, Protocol, google};
use crate::domain::{Issuers, Link, NoncePolicy, metadata};
use crate::secret::Secret;

/// Reads a provider. A section names a further provider; the default one has a setting for its
/// name.
pub(in crate::config) fn read(
    figment: &Figment,
    key: &str,
    section: Option<&str>,
) -> Result<Provider, Error> {
    let mut provider = read_each(figment, key, section)?;
    provider.complete(Section { figment, key })?;
    Ok(provider)
}

/// Reads the settings of a provider, each of which is valid by itself.
pub(in crate::config) fn read_each(
    figment: &Figment,
    key: &str,
    section: Option<&str>,
) -> Result<Provider, Error> {
    let settings = Section { figment, key };
    let valid = |name: &str, field| {
        let remedy = "use 1 to 32 of a-z, 0-9, - and _";
        settings.refuse(
            !is_name(name),
            field,
            "is not a valid provider name",
            remedy,
        )
    };
    if let Some(name) = section {
        let remedy = "remove it, because the section's name is the provider's name";
        settings.refuse(settings.sets("name"), "name", "is set twice", remedy)?;
        valid(name, "")?;
    }
    let preset = match settings.get("preset")? {
        Some(preset) => preset,
        None => implied(settings),
    };
    let tenants = settings.get("tenants")?.unwrap_or(Tenants::Any);
    let defaults = |toml: &str| Toml::string(&format!("[default.{key}]\n{toml}")).nested();
    let joined = figment
        .clone()
        .join(defaults(&tenants.select(preset.settings)))
        .join(defaults(OF_EACH));
    let mut provider: Provider = Section {
        figment: &joined,
        key,
    }
    .get("")?
    .unwrap_or_default();
    key.clone_into(&mut provider.key);
    provider.preset = preset;
    match section {
        Some(name) => name.clone_into(&mut provider.name),
        None => valid(&provider.name, "name")?,
    }
    Ok(provider)
}

/// Returns Google as the preset, unless another token-information endpoint or a URL of keys is set.
fn implied(settings: Section<'_>) -> &'static Preset {
    let url = settings.get::<String>("tokeninfo_url").ok().flatten();
    let google = url.map_or(!settings.sets("tokeninfo_url"), |url| {
        Url::parse(&url).is_ok_and(|url| url.as_str() == google::TOKENINFO)
    });
    if google && !settings.sets("jwks_url") {
        &google::PRESET
    } else {
        &Preset::CUSTOM
    }
}

/// Returns the problem with a setting that only some presets have.
fn only_for(has: impl Fn(&Preset) -> bool) -> String {
    let names: Vec<_> = PRESETS
        .iter()
        .filter(|preset| has(preset))
        .map(|preset| format!("`{}`", preset.name))
        .collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("is for the presets {} and {last} only", others.join(", "))
        }
        _ => format!("is for the preset {} only", names.concat()),
    }
}

impl Provider {
    /// Fills in what follows from the settings, and checks them against each other.
    fn complete(&mut self, settings: Section<'_>) -> Result<(), Error> {
        self.client_ids = vec![settings.require("client_id", self.client_id.take(), CLIENT_ID)?];
        self.client_ids.append(&mut self.additional_client_ids);
        let both = self
            .additional_audiences
            .iter()
            .any(|audience| self.client_ids.contains(audience));
        let problem = "contains a client id of this provider";
        let remedy =
            "list there only audiences that are not yours; a client id is accepted by itself";
        settings.refuse(both, "additional_audiences", problem, remedy)?;
        let secret = |text| Ok(Secret::new(text).into());
        let set = self.client_secret.take();
        let file = self.client_secret_file.as_deref();
        self.client_secret = settings.secret("client_secret", set, file, secret)?;
        self.nonces = self.nonces(settings)?;
        self.policy = Policy {
            link: self.link,
            unverified_email: self.unverified_email,
            missing_email: self.missing_email,
            recycled_email: self.recycled_email,
        };
        self.check_preset(settings)?;
        let issuer = self
            .issuer
            .as_deref()
            .and_then(|issuer| Url::parse(issuer).ok());
        self.discovery = issuer.map(|issuer| metadata::address(&issuer));
        if !settings.sets("token_format") && self.verify != Verify::Tokeninfo {
            self.token_format = Format::Jwt;
        }
        self.client_key = self.client_key(settings)?;
        self.issuers = self.issuers(settings)?;
        self.check_verification(settings)
    }

    fn nonces(&self, settings: Section<'_>) -> Result<Nonces, Error> {
        let foreign = self.clients.keys().any(|id| !self.client_ids.contains(id));
        let remedy = "use values of `client_id` and `additional_client_ids` only";
        let problem = "contains a value that is not a client id of this provider";
        settings.refuse(foreign, "clients", problem, remedy)?;
        let policy = |client: &Client| NoncePolicy {
            rule: client.nonce.unwrap_or(self.nonce),
            form: client.nonce_form.unwrap_or(self.nonce_form),
        };
        let by_client = self
            .clients
            .iter()
            .map(|(id, client)| (id.clone(), policy(client)))
            .collect();
        Ok(Nonces {
            usual: policy(&Client::default()),
            by_client,
        })
    }

    /// Refuses settings of other presets, and rules on `hd` if the provider's tokens never have it:
    /// no user could sign in or link.
    fn check_preset(&self, settings: Section<'_>) -> Result<(), Error> {
        let preset = self.preset;
        settings.refuse(
            preset.has_discovery && self.issuer.is_none(),
            "issuer",
            "is missing",
            ISSUER,
        )?;
        let problem = only_for(|preset| preset.has_discovery);
        let remedy = "remove it, or set `preset`; list accepted issuers in `issuers`";
        settings.refuse(
            !preset.has_discovery && self.issuer.is_some(),
            "issuer",
            &problem,
            remedy,
        )?;
        settings.refuse(
            self.tenants.is_some() && !preset.has_tenants,
            "tenants",
            &only_for(|preset| preset.has_tenants),
            "remove it, or set `preset`",
        )?;
        let problem = "cannot be used here: this provider's tokens have no `hd`";
        let hosted = preset.has_hosted_domains;
        let domains = !self.allowed_domains.is_empty();
        settings.refuse(domains && !hosted, "allowed_domains", problem, "remove it")?;
        let authoritative = self.link == Link::Authoritative;
        let remedy = "set it to \"verified\" or \"never\"";
        settings.refuse(authoritative && !hosted, "link", problem, remedy)
    }

    /// Checks that the chosen verification has all its settings, and no settings that it would
    /// ignore.
    fn check_verification(&self, settings: Section<'_>) -> Result<(), Error> {
        let asked = self.verify != Verify::Jwks;
        let signed = self.verify != Verify::Tokeninfo;
        let problem = "cannot be used here: this provider has no token-information endpoint";
        settings.refuse(
            asked && !self.preset.has_tokeninfo,
            "verify",
            problem,
            "set it to \"jwks\" or remove it",
        )?;
        let remedy = "set it to the provider's endpoint";
        let url = self.tokeninfo_url.as_ref().or(self.discovery.as_ref());
        settings.refuse(
            asked && url.is_none(),
            "tokeninfo_url",
            "is missing",
            remedy,
        )?;
        let remedy = "set it to the URL of the provider's keys";
        let url = self.jwks_url.as_ref().or(self.discovery.as_ref());
        settings.refuse(signed && url.is_none(), "jwks_url", "is missing", remedy)?;
        let problem = "must be \"jwt\" when signatures are verified";
        let remedy = "remove it, or set `verify` to \"tokeninfo\"";
        settings.refuse(
            signed && self.token_format == Format::Any,
            "token_format",
            problem,
            remedy,
        )?;
        for (field, used, problem) in [
            (
                "tokeninfo_url",
                asked,
                "is not used with `verify = \"jwks\"`",
            ),
            (
                "jwks_url",
                signed,
                "is not used without `verify = \"jwks\"` or \"both\"",
            ),
        ] {
            let remedy = "remove it, or correct `verify`";
            settings.refuse(settings.sets(field) && !used, field, problem, remedy)?;
        }
        let mute = self.preset.protocol == Protocol::Introspection && self.client_secret.is_none();
        let remedy = "set it to the client secret that the provider issued";
        settings.refuse(asked && mute, "client_secret", "is missing", remedy)
    }

    fn issuers(&self, settings: Section<'_>) -> Result<Issuers, Error> {
        let listed = match &self.issuers {
            Issuers::Listed(listed) if !listed.is_empty() => Some(self.issuers.clone()),
            _ if self.preset.has_tenants => Some(Issuers::Tenants(
                self.tenants.clone().unwrap_or(Tenants::Any),
            )),
            _ => self
                .issuer
                .clone()
                .map(|issuer| Issuers::Listed(vec![issuer])),
        };
        settings.require(
            "issuers",
            listed,
            "list the values of `iss` in this provider's tokens",
        )
    }

    /// Reads the key that signs client secrets: it is there as a whole or not at all.
    fn client_key(&mut self, settings: Section<'_>) -> Result<Option<Arc<ClientKey>>, Error> {
        let key_field = if self.private_key_file.is_some() {
            "private_key_file"
        } else {
            "private_key"
        };
        let Some(first) = ["team_id", "key_id", key_field]
            .into_iter()
            .find(|field| settings.sets(field))
        else {
            return Ok(None);
        };
        let takes_key = |preset: &Preset| preset.without_client_key.is_some();
        settings.refuse(
            !takes_key(self.preset),
            first,
            &only_for(takes_key),
            "remove it, or set `preset`",
        )?;
        let team_id = settings.require("team_id", self.team_id.take(), apple::ID_REMEDY)?;
        let key_id = settings.require("key_id", self.key_id.take(), apple::ID_REMEDY)?;
        let set = self.private_key.take();
        let file = self.private_key_file.as_deref();
        let pem = settings.secret("private_key", set, file, |text| Ok(Secret::new(text)))?;
        let pem = settings.require("private_key", pem, apple::KEY_REMEDY)?;
        let key = ClientKey::read(team_id, key_id, pem.expose());
        let key = key.map_err(|_| {
            settings.error(
                key_field,
                "is not a private key of Apple's",
                apple::KEY_REMEDY,
            )
        })?;
        Ok(Some(Arc::new(key)))
    }
}
