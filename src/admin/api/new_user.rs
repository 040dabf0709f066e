//! The body of a request to create a user. It is parsed by hand, to report what is wrong. Its values must satisfy the same
//! rules as a provider's claims.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::parameters::wrong;
use super::store::{NewIdentity, NewUser};
use crate::domain::claims;
use crate::domain::custom_claims::CustomClaims;
use crate::domain::email::Email;
use crate::domain::json::Object;
use crate::web::guard::json_body::only;
use crate::web::problem::Problem;

/// The most identities of one new user.
const MAX_IDENTITIES: usize = 20;
/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 200;

// The derived parser is not used; its attribute says in the schema that there are no other members.
/// A user to create. An `email` or an identity is required.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what `parse` reads by hand")]
pub(super) struct NewUserRequest {
    /// The e-mail address, exactly one and without a name.
    #[schema(max_length = 254)]
    email: Option<String>,
    /// True if you have verified that the address belongs to the user: whoever proves it to a provider signs in as this
    /// user. The default is false.
    email_verified: Option<bool>,
    /// The name to be shown.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// An `https` URL of a picture.
    #[schema(max_length = 2048, pattern = "^https://[!-~]*$")]
    picture: Option<String>,
    /// Claims for the user's access tokens: an object of at most 1,000 bytes without the names that have a meaning of
    /// their own.
    #[schema(value_type = Option<Object>)]
    claims: Option<Map<String, Value>>,
    /// The accounts at identity providers with which the user signs in.
    #[schema(max_items = 20)]
    identities: Option<Vec<NewIdentityRequest>>,
}

/// An identity of a user to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what `parse` reads by hand")]
pub(super) struct NewIdentityRequest {
    /// The name of a configured provider.
    provider: String,
    /// The account's `sub` at the provider.
    #[schema(min_length = 1, max_length = 255, pattern = "^[!-~]+$")]
    subject: String,
    /// The account's e-mail address; by default that of the user.
    #[schema(max_length = 254)]
    email: Option<String>,
    /// True if the provider has verified it; by default as with the user.
    email_verified: Option<bool>,
}

/// Reads a user with identities at these providers.
pub(super) fn parse(body: &Object, providers: &[String]) -> Result<NewUser, Problem> {
    only(body, &["email", "email_verified", "name", "picture", "claims", "identities"], "the body")?;
    let email = email(body, "")?;
    let email_verified = verified(body, "", email.is_some())?.unwrap_or(false);
    let name = text(body, "", "name")?;
    if name.is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
        return Err(wrong(format!("`name` must have at most {MAX_NAME_CHARS} characters")));
    }
    let picture = text(body, "", "picture")?.map(|text| {
        let rule = "`picture` must be an `https` URL of at most 2,048 visible ASCII characters";
        claims::picture(text).ok_or_else(|| wrong(rule.to_owned()))
    });
    let claims = match body.get("claims") {
        None => CustomClaims::default(),
        // The mistake names a claim, which the caller has sent.
        Some(claims) => CustomClaims::parse(&claims.to_string())
            .map_err(|mistake| wrong(mistake.to_string().chars().take(200).collect()))?,
    };
    let mut user = NewUser {
        email,
        email_verified,
        name: name.and_then(claims::display_name),
        picture: picture.transpose()?,
        claims,
        identities: Vec::new(),
    };
    let identities = match body.get("identities") {
        None => &[],
        Some(Value::Array(items)) if items.len() <= MAX_IDENTITIES => items.as_slice(),
        Some(_) => return Err(wrong(format!("`identities` must be an array of at most {MAX_IDENTITIES}"))),
    };
    for (number, item) in identities.iter().enumerate() {
        let path = format!("identities[{number}]");
        let Value::Object(item) = item else { return Err(wrong(format!("`{path}` must be an object"))) };
        let identity = identity(&item.clone().into(), &format!("{path}."), &user, providers)?;
        let same = |other: &NewIdentity| {
            (&other.provider, &other.subject) == (&identity.provider, &identity.subject)
        };
        if user.identities.iter().any(same) {
            return Err(wrong(format!("`{path}` is there twice")));
        }
        user.identities.push(identity);
    }
    if user.email.is_none() && user.identities.is_empty() {
        return Err(wrong(
            "a user needs an `email` or an identity: no sign-in could find one without".into(),
        ));
    }
    Ok(user)
}

fn identity(item: &Object, path: &str, user: &NewUser, providers: &[String]) -> Result<NewIdentity, Problem> {
    only(item, &["provider", "subject", "email", "email_verified"], "an identity")?;
    let required = |name: &str| {
        text(item, path, name)?.ok_or_else(|| wrong(format!("`{path}{name}` is missing"))).map(str::to_owned)
    };
    let (provider, subject) = (required("provider")?, required("subject")?);
    if !providers.contains(&provider) {
        return Err(wrong(format!("`{path}provider` must be the name of a configured provider")));
    }
    if !claims::is_subject(&subject) {
        return Err(wrong(format!("`{path}subject` must be 1 to 255 visible ASCII characters")));
    }
    // An identity's own e-mail address counts as verified only if its own flag says so.
    let own = email(item, path)?;
    let inherited = own.is_none() && user.email_verified;
    let email = own.or_else(|| user.email.clone());
    let email_verified = verified(item, path, email.is_some())?.unwrap_or(inherited);
    Ok(NewIdentity { provider, subject, email, email_verified })
}

fn text<'b>(object: &'b Object, path: &str, name: &str) -> Result<Option<&'b str>, Problem> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(format!("`{path}{name}` must be a string"))),
    }
}

fn email(object: &Object, path: &str) -> Result<Option<Email>, Problem> {
    let parse = |text| {
        Email::parse(text)
            .ok_or_else(|| wrong(format!("`{path}email` must be exactly one e-mail address, without a name")))
    };
    text(object, path, "email")?.map(parse).transpose()
}

fn verified(object: &Object, path: &str, has_email: bool) -> Result<Option<bool>, Problem> {
    match object.get("email_verified") {
        None => Ok(None),
        Some(Value::Bool(true)) if !has_email => {
            Err(wrong(format!("`{path}email_verified` must not be true without an `email`")))
        }
        Some(Value::Bool(verified)) => Ok(Some(*verified)),
        Some(_) => Err(wrong(format!("`{path}email_verified` must be true or false"))),
    }
}
