//! Advice to staff about refused sign-ins and what looks like theft: what happened, what to say to
//! the user, and what to pass on to whom. The catalogue of problems speaks to developers instead.

use std::borrow::Cow;

use serde::Serialize;
use strum::VariantArray;

use crate::domain::Reason;
use crate::domain::dpop::Refused;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Advice {
    pub title: &'static str,
    pub cause: Cow<'static, str>,
    pub tell: &'static str,
    /// The people to inform, and the facts that they need.
    pub pass_on: Option<(&'static str, &'static str)>,
}

/// The people behind the service, as staff know them.
const DEVELOPER: &str = "the app’s developers";
const OPERATOR: &str = "the operator";
const ADMIN: &str = "an admin";

type Texts = (
    &'static str,
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

const OTHERS: [&str; 3] = [
    "provider_unavailable",
    "identity_already_linked",
    "another_client",
];

impl Advice {
    /// Returns the names of all reasons that have advice, except the reasons that concern proofs.
    pub fn reasons() -> impl Iterator<Item = &'static str> {
        Reason::VARIANTS
            .iter()
            .map(|reason| (*reason).into())
            .chain(OTHERS)
    }

    pub fn about(reason: &str) -> Option<Self> {
        if let Some(cause) = reason
            .strip_prefix("proof_")
            .and_then(|cause| cause.parse().ok())
        {
            return Some(Self::unproven(cause));
        }
        let (title, cause, tell, pass_on) = match reason {
            "provider_unavailable" => (
                "Provider gave no answer",
                "The provider gave no answer in time, or an unusable one. The user did nothing wrong.",
                "Try again in a few minutes.",
                Some((
                    OPERATOR,
                    "the provider, the time and the request ID, if it does not stop.",
                )),
            ),
            "identity_already_linked" => (
                "Already linked to another user",
                "A signed-in user tried to add this way to sign in, but another user signs in with it already.",
                "This way to sign in belongs to another account. If that is yours, too, sign out, and sign in this way to \
                 reach it.",
                Some((
                    ADMIN,
                    "both users, if they are the same person. An admin can merge them.",
                )),
            ),
            "another_client" => (
                "Refresh token in two places",
                "Within half a minute, two clients used one refresh token: their IP addresses differ, and so do their apps or \
                 browsers. This is the second of them. A thief may have a copy of the session’s tokens, and both go on with \
                 the session. End the user’s sessions, unless the user knows both.",
                "Another person may use your account. We have signed you out everywhere: sign in again, and tell us if you do \
                 not know one of the devices in your list.",
                Some((
                    DEVELOPER,
                    "the request ID, if it happens to many users. An app may refresh in two ways at once.",
                )),
            ),
            reason => reason.parse().map(Self::refused).ok()?,
        };
        Some(Self {
            title,
            cause: cause.into(),
            tell,
            pass_on,
        })
    }

    fn unproven(cause: Refused) -> Self {
        let cause = cause.sentence().replace('\'', "’");
        let cause = format!(
            "A session that is bound to its device needs a proof by the device’s key, and {cause}. Nothing was read or \
             changed. At a sign-in, the app is faulty or too old. At another request, a thief may have a copy of the session’s \
             tokens, which is of no use without the key."
        );
        Self {
            title: "Key of the device not proven",
            cause: cause.into(),
            tell: "Your account is safe. If the app does not work, sign out and sign in again.",
            pass_on: Some((DEVELOPER, "the request ID, if it happens to many users.")),
        }
    }

    const fn refused(reason: Reason) -> Texts {
        match reason {
            Reason::InvalidToken => (
                "Token not valid",
                "The provider does not accept the token that the app sent, or the token is incomplete.",
                "Close the app, open it again, and sign in.",
                Some((
                    DEVELOPER,
                    "the provider and the request ID, if it happens again.",
                )),
            ),
            Reason::TokenExpired => (
                "Token expired",
                "The token was too old when it arrived: the sign-in took too long, the clock of the device is wrong, or the provider has ended the account’s sessions since it issued the token.",
                "Set date and time of your device to automatic, then sign in again.",
                Some((
                    DEVELOPER,
                    "the provider and the time, if it happens to many users. The app may send an old token.",
                )),
            ),
            Reason::IssuerMismatch => (
                "Token of another issuer",
                "The token comes from an issuer that is not accepted for this provider.",
                "This way to sign in does not work at the moment. If you have another one, use that.",
                Some((OPERATOR, "the provider and the issuer that was received.")),
            ),
            Reason::AudienceMismatch => (
                "Token for another app",
                "The token was made for another app: its client ID is not accepted for this provider.",
                "Install the latest version of the app from the app store, then sign in again.",
                Some((
                    OPERATOR,
                    "the provider and the client ID that was received. If it belongs to one of our apps, it is missing from the settings.",
                )),
            ),
            Reason::NonceMismatch => (
                "Nonce differs",
                "The token does not fit this attempt to sign in: its one-time value (nonce) differs.",
                "Close the app, open it again, and sign in.",
                Some((
                    DEVELOPER,
                    "the provider, the device and the request ID, if it happens again.",
                )),
            ),
            Reason::DomainNotAllowed => (
                "Organisation not allowed",
                "Only accounts of certain organisations may sign in with this provider. This account belongs to none of them.",
                "Sign in with the account of your organisation.",
                Some((
                    OPERATOR,
                    "the domain of the organisation, if it should be allowed.",
                )),
            ),
            Reason::UserDisabled => (
                "User disabled",
                "Staff have disabled this user. The reason is in the user’s history.",
                "Your account is disabled.",
                Some((
                    ADMIN,
                    "the user, if they may come back. An admin can enable them.",
                )),
            ),
            Reason::IdentitySuspended => (
                "Identity suspended",
                "The provider has reported this account hijacked, disabled or deleted, or it is held, because it may be a hijacker's. Which of them, and since when, is among the linked identities of the user.",
                "Your account is suspended. Recover it at its provider, or sign in another way.",
                Some((
                    ADMIN,
                    "the user, if the account is lost or held. An admin can merge them with the user of another account, or release it.",
                )),
            ),
            Reason::UserNotFound => (
                "No such user",
                "The app let in existing users only, and nobody has signed in with this identity before.",
                "Sign in the way you did before, or sign up first.",
                None,
            ),
            Reason::IdentityConflict => (
                "Second account of one provider",
                "The user with this e-mail address signs in with an older account of the same provider. The address may \
                 have a new owner.",
                "Sign in with the account that you used before.",
                Some((
                    ADMIN,
                    "the user, if that account is lost. Once an admin has unlinked it, the new one can sign in.",
                )),
            ),
            Reason::LinkRequired => (
                "Address of another user, not proven",
                "A user with this e-mail address exists. This provider has not verified the address, or is not trusted to \
                 link by it, or the user’s identity with the address is suspended.",
                "Sign in the way you did before. Then add the new way to sign in within the app.",
                None,
            ),
            Reason::TooManyIdentities => (
                "Too many identities",
                "The user with this e-mail address has 20 identities, which is the most that a user may have.",
                "Sign in the way you did before.",
                Some((
                    ADMIN,
                    "the user. Once an admin has unlinked identities that nobody uses, the new one can sign in.",
                )),
            ),
            Reason::EmailNotVerified => (
                "E-mail not verified",
                "The provider has not verified this e-mail address.",
                "Confirm your e-mail address at the provider, then sign in again.",
                None,
            ),
            Reason::EmailMissing => (
                "No e-mail from the provider",
                "The provider gave no e-mail address, and one is required.",
                "Sign in again, and allow the app to see your e-mail address.",
                Some((
                    DEVELOPER,
                    "the provider, if the user was not asked. The app has to request the e-mail address.",
                )),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_advice_in_words_for_people() {
        for reason in Advice::reasons().chain(Refused::VARIANTS.iter().map(Into::into)) {
            let advice = Advice::about(reason)
                .unwrap_or_else(|| panic!("there is no advice about {reason}"));
            let passed_on = advice.pass_on.map_or("x.", |(_, what)| what);
            for text in [&*advice.cause, advice.tell, passed_on] {
                assert!(
                    text.ends_with('.') && !text.contains('`') && !text.contains('_'),
                    "{reason}: {text}"
                );
            }
        }
        assert!(Advice::about("x").is_none());
    }
}
