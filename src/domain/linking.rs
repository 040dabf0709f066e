//! The linking rules for an unknown identity, as far as they do not depend on stored data. The rest
//! is SQL; see `accounts::users`.

use serde::Deserialize;

use super::claims::VerifiedClaims;
use super::refusal::Reason;

/// The rule by which an e-mail address may link to an existing user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    #[default]
    Verified,
    /// The provider also runs the mailbox: `@gmail.com`, or verified with `hd`.
    Authoritative,
    /// An e-mail address never links.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The general rules apply.
    #[default]
    Allow,
    Refuse,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    pub link: Link,
    /// The decision about a new user with an unverified e-mail address.
    pub unverified_email: Doubt,
    /// The decision about a new user without an e-mail address.
    pub missing_email: Doubt,
    /// The decision about a second subject of one provider with the same e-mail address.
    pub recycled_email: Doubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Link or refuse, if another user has the e-mail address.
    pub if_taken: Result<(), Reason>,
    /// Create or refuse, if no user has it.
    pub if_free: Result<(), Reason>,
    /// Refuses to link a second subject of this provider to one user.
    pub refuse_recycled: bool,
    /// True if the provider proves the e-mail address: it is verified and may link.
    pub proves: bool,
}

impl Policy {
    /// Decides about an unknown identity. `create` is the client's request to create a user.
    pub fn decide(self, claims: &VerifiedClaims, create: bool) -> Decision {
        let refuse_recycled = self.recycled_email == Doubt::Refuse;
        let proves = self.proves(claims);
        if !create {
            let unknown = Err(Reason::UserNotFound);
            return Decision {
                if_taken: unknown,
                if_free: unknown,
                refuse_recycled,
                proves,
            };
        }
        let unverified_refused = self.unverified_email == Doubt::Refuse;
        let (if_taken, if_free) = match (&claims.email, claims.email_verified) {
            // An absent e-mail address never links, so no user can have it.
            (None, _) if self.missing_email == Doubt::Refuse => {
                (Err(Reason::EmailMissing), Err(Reason::EmailMissing))
            }
            (Some(_), false) if unverified_refused => {
                (Err(Reason::EmailNotVerified), Err(Reason::EmailNotVerified))
            }
            _ if proves => (Ok(()), Ok(())),
            _ => (Err(Reason::LinkRequired), Ok(())),
        };
        Decision {
            if_taken,
            if_free,
            refuse_recycled,
            proves,
        }
    }

    /// Returns true if the e-mail address counts as proven: this provider has verified it, and may
    /// link by it.
    pub fn proves(self, claims: &VerifiedClaims) -> bool {
        claims.email_verified && self.link.admits(claims)
    }
}

impl Link {
    /// Returns true if this rule lets a verified e-mail address link.
    pub fn admits(self, claims: &VerifiedClaims) -> bool {
        match self {
            Self::Verified => true,
            Self::Authoritative => {
                let mailbox = claims
                    .email
                    .as_ref()
                    .is_some_and(|email| email.folded().ends_with("@gmail.com"));
                mailbox || claims.hosted_domain.is_some()
            }
            Self::Never => false,
        }
    }
}
