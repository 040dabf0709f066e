//! The body of a request to create a user. Its values must satisfy the same rules as a provider's
//! claims.

use serde_json::Value;

use super::parameters::wrong;
use super::store::{NewIdentity, NewUser};
use crate::domain::claims::{self, MAX_NAME_CHARS};
use crate::domain::user::MAX_IDENTITIES;
use crate::domain::{CustomClaims, Email, Object};
use crate::web::Problem;
use crate::web::guard::json_body::{flag, only, optional, required};

const STRING: &str = "must be a string";

pub(super) fn parse(body: &Object, providers: &[String]) -> Result<NewUser, Problem> {
    only(
        body,
        &[
            "email",
            "email_verified",
            "name",
            "picture",
            "claims",
            "identities",
        ],
        "the body",
    )?;
    let email = email(body, "")?;
    let email_verified = verified(body, "", email.is_some())?.unwrap_or(false);
    let name: Option<&str> = optional(body, "name", STRING)?;
    if name.is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
        return Err(wrong(format!(
            "`name` must have at most {MAX_NAME_CHARS} characters"
        )));
    }
    let picture = optional(body, "picture", STRING)?.map(|text| {
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
    let rule = format!("must be an array of at most {MAX_IDENTITIES}");
    let identities: Vec<Value> = optional(body, "identities", &rule)?.unwrap_or_default();
    if identities.len() > usize::from(MAX_IDENTITIES) {
        return Err(wrong(format!("`identities` {rule}")));
    }
    for (number, item) in identities.into_iter().enumerate() {
        let path = format!("identities[{number}]");
        let Value::Object(item) = item else {
            return Err(wrong(format!("`{path}` must be an object")));
        };
        let identity = identity(&item.into(), &format!("{path}."), &user, providers)?;
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

fn identity(
    item: &Object,
    path: &str,
    user: &NewUser,
    providers: &[String],
) -> Result<NewIdentity, Problem> {
    only(
        item,
        &["provider", "subject", "email", "email_verified"],
        "an identity",
    )?;
    let text = |name: &str| required(item, &format!("{path}{name}")).map(str::to_owned);
    let provider = text("provider")?;
    let subject = text("subject")?;
    if !providers.contains(&provider) {
        return Err(wrong(format!(
            "`{path}provider` must be the name of a configured provider"
        )));
    }
    if !claims::is_subject(&subject) {
        return Err(wrong(format!(
            "`{path}subject` must be 1 to 255 ASCII characters, at least one of them visible and none a control character"
        )));
    }
    // An identity's own e-mail address counts as verified only if its own flag says so.
    let own = email(item, path)?;
    let inherited = own.is_none() && user.email_verified;
    let email = own.or_else(|| user.email.clone());
    let email_verified = verified(item, path, email.is_some())?.unwrap_or(inherited);
    Ok(NewIdentity {
        provider,
        subject,
        email,
        email_verified,
    })
}

fn email(object: &Object, path: &str) -> Result<Option<Email>, Problem> {
    let parse = |text| {
        Email::parse(text).ok_or_else(|| {
            wrong(format!(
                "`{path}email` must be exactly one e-mail address, without a name"
            ))
        })
    };
    optional(object, &format!("{path}email"), STRING)?
        .map(parse)
        .transpose()
}

fn verified(object: &Object, path: &str, has_email: bool) -> Result<Option<bool>, Problem> {
    let verified = flag(object, &format!("{path}email_verified"))?;
    if verified == Some(true) && !has_email {
        return Err(wrong(format!(
            "`{path}email_verified` must not be true without an `email`"
        )));
    }
    Ok(verified)
}
