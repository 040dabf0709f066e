//! The rules by which an unknown identity finds its user, as far as they do not depend on
//! what is stored. The rest is one SQL statement; see `store::users`.

use serde::Deserialize;

use super::claims::VerifiedClaims;
use super::refusal::Reason;

/// When an e-mail address may lead to an existing user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// When the provider has verified it.
    #[default]
    Verified,
    /// When the provider also runs the mailbox: `@gmail.com`, or verified with `hd`.
    Authoritative,
    /// Never.
    Never,
}

/// What to do about a sign-in that a rule calls into question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Carry on by the general rules.
    #[default]
    Allow,
    /// Refuse.
    Refuse,
}

/// A provider's linking settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// When an address may lead to an existing user.
    pub link: Link,
    /// Whether an unverified address is good enough to create a user with.
    pub unverified_email: Doubt,
    /// Whether a user can be created without an address.
    pub missing_email: Doubt,
    /// Whether a second subject with one address is taken for the same person.
    pub recycled_email: Doubt,
}

/// What becomes of an identity that is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// When somebody has the address: link, or refuse.
    pub if_taken: Result<(), Reason>,
    /// When nobody has it: create, or refuse.
    pub if_free: Result<(), Reason>,
    /// Refuse to link a second subject of this provider to one user.
    pub refuse_recycled: bool,
    /// The provider proves the e-mail: it is verified, and may link.
    pub proves: bool,
}

impl Policy {
    /// Decides about an unknown identity. `create` is the caller's wish.
    #[must_use]
    pub fn decide(self, claims: &VerifiedClaims, create: bool) -> Decision {
        let refuse_recycled = self.recycled_email == Doubt::Refuse;
        let proves = self.proves(claims);
        if !create {
            let unknown = Err(Reason::UserNotFound);
            return Decision { if_taken: unknown, if_free: unknown, refuse_recycled, proves };
        }
        let unverified_refused = self.unverified_email == Doubt::Refuse;
        let (if_taken, if_free) = match (&claims.email, claims.email_verified) {
            // Nothing ever joins on "no e-mail", so nobody can have it.
            (None, _) if self.missing_email == Doubt::Refuse => {
                (Err(Reason::EmailMissing), Err(Reason::EmailMissing))
            }
            (Some(_), false) if unverified_refused => {
                (Err(Reason::EmailNotVerified), Err(Reason::EmailNotVerified))
            }
            _ if proves => (Ok(()), Ok(())),
            _ => (Err(Reason::LinkRequired), Ok(())),
        };
        Decision { if_taken, if_free, refuse_recycled, proves }
    }

    /// Tells whether the e-mail counts as proven: this provider has verified it, and may link by it.
    #[must_use]
    pub fn proves(self, claims: &VerifiedClaims) -> bool {
        claims.email.is_some() && claims.email_verified && self.link.admits(claims)
    }
}

impl Link {
    /// Whether a verified address is proven enough.
    #[must_use]
    pub fn admits(self, claims: &VerifiedClaims) -> bool {
        match self {
            Self::Verified => true,
            Self::Authoritative => {
                let mailbox =
                    claims.email.as_ref().is_some_and(|email| email.folded().ends_with("@gmail.com"));
                mailbox || claims.hosted_domain.is_some()
            }
            Self::Never => false,
        }
    }
}
