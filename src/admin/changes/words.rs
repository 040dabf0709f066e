//! The titles of changes, and why one is refused. `templates/admin/changes.html.tera` has the other
//! words.

use crate::admin::changes::decision::Refused;
use crate::admin::changes::{Change, Loaded};

pub(in crate::admin) const MERGE: &str = "Merge two users";
pub(in crate::admin) const MOVE: &str = "Move an identity";

pub(in crate::admin) const fn refused(why: Refused) -> &'static str {
    match why {
        Refused::OwnAccount => {
            "This is your own account: it has your verified e-mail address. You cannot delete or disable yourself here. Ask \
             another admin."
        }
        Refused::LastIdentity => {
            "This is the only way to sign in as this user, for whose e-mail address neither a backend nor an import \
             vouches. Move the identity to the right user, merge the two users, or delete this one."
        }
        Refused::TooManyIdentities => {
            "The user would have more than 20 identities, which is the most that a user may have. Unlink some of them first."
        }
        Refused::ClaimsTooLong => {
            "The claims of both users are too long for one user. The product's backend has to set shorter ones first."
        }
    }
}

/// Returns the title of a change to the user of that name, and the button that confirms it.
pub(in crate::admin) fn title(change: &Loaded, name: &str) -> (String, String) {
    match change {
        Change::Merge { .. } => (MERGE.into(), format!("Merge, and delete {name}")),
        Change::Disable { .. } => (format!("Disable {name}"), "Disable".into()),
        Change::Enable { .. } => (format!("Enable {name}"), "Enable".into()),
        Change::EndSessions { .. } => (
            format!("Sign {name} out everywhere"),
            "Sign out everywhere".into(),
        ),
        Change::EndSession { .. } => (
            format!("End a session of {name}"),
            "End this session".into(),
        ),
        Change::Delete { .. } => (format!("Delete {name}"), "Delete permanently".into()),
        Change::Move { .. } => (MOVE.into(), "Move".into()),
        Change::Unlink { .. } => (format!("Unlink an identity of {name}"), "Unlink".into()),
        Change::Release { .. } => (format!("Release an identity of {name}"), "Release".into()),
    }
}
