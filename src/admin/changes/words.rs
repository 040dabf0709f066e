//! The words of staff's changes: the title, what will happen, warnings, the button, why a change is
//! refused, and what the user's page says afterwards. The templates only print them.

use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use uuid::Uuid;

use crate::accounts::identities::IdentityRow;
use crate::admin::changes::decision::Refused;
use crate::admin::changes::{Change, Loaded};
use crate::admin::lists::users::ListedUser;
use crate::domain::{CustomClaims, LinkedIdentity, UserState, merged};

pub(in crate::admin) const MERGE: &str = "Merge two users";
pub(in crate::admin) const MOVE: &str = "Move an identity";

/// A sentence, or some, with parts in which a user's own text stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(in crate::admin) struct Line(Vec<Piece>);

/// A part of a [`Line`]. `templates/admin/line.html.tera` prints it, escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::admin) enum Piece {
    Text(String),
    /// A user's own text: its direction of writing must not affect the rest of the line.
    Isolated(String),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<P: Into<Piece>> From<P> for Line {
    fn from(text: P) -> Self {
        Self(vec![text.into()])
    }
}

/// Makes a [`Line`] of texts and pieces.
macro_rules! line {
    ($($piece:expr),+ $(,)?) => {
        Line(vec![$(Piece::from($piece)),+])
    };
}

/// The words on the page that asks for the confirmation of a change.
#[derive(Debug, Serialize)]
pub(in crate::admin) struct Words {
    pub title: String,
    /// What will happen.
    pub steps: Vec<Line>,
    pub warnings: Vec<Line>,
    pub button: String,
    /// True if it cannot be undone.
    pub is_final: bool,
    /// What becomes of the reason.
    pub reason_hint: &'static str,
}

impl Words {
    /// Returns the words of a change that can be undone and has no warnings.
    pub(in crate::admin) fn new(title: String, steps: Vec<Line>, button: &str) -> Self {
        Self {
            title,
            steps,
            warnings: Vec::new(),
            button: button.to_owned(),
            is_final: false,
            reason_hint: "The audit log keeps it, with your e-mail address.",
        }
    }

    /// Returns the words of a change to the user of that `name`. `device` is the one whose session
    /// ends, if there is such a session; access tokens are valid for that many `minutes`.
    pub(in crate::admin) fn of(
        change: &Loaded,
        name: &str,
        device: Option<String>,
        minutes: u32,
    ) -> Self {
        let has_device = device.is_some();
        let words = Self::new(
            title(change, name),
            steps(change, device, minutes),
            &button(change, name),
        );
        let warnings = warnings(change, has_device, minutes);
        match change {
            Change::Delete { .. } => Self {
                warnings,
                is_final: true,
                reason_hint: "The reason is kept after the user is deleted. Write nothing personal into it.",
                ..words
            },
            Change::Merge { .. } => Self {
                warnings,
                is_final: true,
                ..words
            },
            Change::Move { .. }
            | Change::Unlink { .. }
            | Change::Release { .. }
            | Change::Disable { .. }
            | Change::Enable { .. }
            | Change::EndSessions { .. }
            | Change::EndSession { .. } => Self { warnings, ..words },
        }
    }
}

/// What was done to a user, by its name in the URL of the page that says so.
#[derive(Debug, Clone, Copy, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(in crate::admin) enum Done {
    Merge,
    Move,
    Unlink,
    Release,
    Disable,
    Enable,
    EndSessions,
    EndSession,
    /// There was no session to end.
    Nothing,
    Note,
}

impl Done {
    /// Returns what making the change has done; `None` for a deletion, which has a receipt.
    pub(in crate::admin) fn of(change: &Loaded) -> Option<Self> {
        Some(match change {
            Change::Delete { .. } => return None,
            Change::Merge { .. } => Self::Merge,
            Change::Move { .. } => Self::Move,
            Change::Unlink { .. } => Self::Unlink,
            Change::Release { .. } => Self::Release,
            Change::Disable { .. } => Self::Disable,
            Change::Enable { .. } => Self::Enable,
            Change::EndSessions { user } if user.sessions() == 0 => Self::Nothing,
            Change::EndSessions { .. } => Self::EndSessions,
            Change::EndSession { .. } => Self::EndSession,
        })
    }

    /// Returns what the user's page says.
    pub(in crate::admin) fn words(self, minutes: u32) -> String {
        let words = match self {
            Self::Merge => {
                "The two users are merged. The identities of both now belong to this user."
            }
            Self::Move => "The identity now belongs to this user.",
            Self::Unlink => "The identity is unlinked.",
            Self::Release => "The identity can sign in again.",
            Self::Disable => {
                return format!(
                    "The user is disabled and signed out everywhere. {}",
                    lag(minutes)
                );
            }
            Self::Enable => "The user can sign in again.",
            Self::EndSessions => {
                return format!("The user is signed out everywhere. {}", lag(minutes));
            }
            Self::EndSession => return format!("That session has ended. {}", lag(minutes)),
            Self::Nothing => "The user had no session, so nothing was changed.",
            Self::Note => "The note is saved.",
        };
        words.to_owned()
    }
}

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

fn title(change: &Loaded, name: &str) -> String {
    match change {
        Change::Merge { .. } => MERGE.to_owned(),
        Change::Disable { .. } => format!("Disable {name}"),
        Change::Enable { .. } => format!("Enable {name}"),
        Change::EndSessions { .. } => format!("Sign {name} out everywhere"),
        Change::EndSession { .. } => format!("End a session of {name}"),
        Change::Delete { .. } => format!("Delete {name}"),
        Change::Move { .. } => MOVE.to_owned(),
        Change::Unlink { .. } => format!("Unlink an identity of {name}"),
        Change::Release { .. } => format!("Release an identity of {name}"),
    }
}

fn button(change: &Loaded, name: &str) -> String {
    let button = match change {
        Change::Merge { .. } => return format!("Merge, and delete {name}"),
        Change::Disable { .. } => "Disable",
        Change::Enable { .. } => "Enable",
        Change::EndSessions { .. } => "Sign out everywhere",
        Change::EndSession { .. } => "End this session",
        Change::Delete { .. } => "Delete permanently",
        Change::Move { .. } => "Move",
        Change::Unlink { .. } => "Unlink",
        Change::Release { .. } => "Release",
    };
    button.to_owned()
}

/// Returns the parts of the change's user and of the other user; `None` if the page does not show
/// the user in detail, or if there is no other user.
pub(in crate::admin) const fn parts(
    change: &Loaded,
) -> (Option<&'static str>, Option<&'static str>) {
    match change {
        Change::Delete { .. } => (Some("will be deleted"), None),
        Change::Merge { .. } => (Some("will be deleted"), Some("stays")),
        Change::Move { .. } => (Some("loses the identity"), Some("gets the identity")),
        Change::Unlink { .. } | Change::Release { .. } => (Some("has the identity"), None),
        Change::Disable { .. }
        | Change::Enable { .. }
        | Change::EndSessions { .. }
        | Change::EndSession { .. } => (None, None),
    }
}

/// Returns what a change does, sentence by sentence.
fn steps(change: &Loaded, device: Option<String>, minutes: u32) -> Vec<Line> {
    match change {
        Change::Delete { user } => deletion(user, minutes),
        Change::Merge { from, into } => merge(from, into, minutes),
        Change::Move { identity, from, to } => moving(identity, from, to, minutes),
        Change::Unlink { identity, user } => unlinking(identity, user, minutes),
        Change::Release { identity, user } => vec![line![
            account(identity),
            " signs in as ",
            who(user),
            " again."
        ]],
        Change::Disable { user } => vec![
            line![
                "No identity of ",
                who(user),
                " can sign in until an admin enables the user again."
            ],
            ending(user.sessions(), Some(user), minutes),
            "Nothing is deleted, and the e-mail address stays taken.".into(),
        ],
        Change::Enable { user } => vec![line![first(user), " can sign in again."]],
        Change::EndSessions { user } => vec![
            ending(user.sessions(), Some(user), minutes),
            line![
                first(user),
                " can sign in again at once. So can a thief who has one of the accounts at the providers."
            ],
        ],
        Change::EndSession { user, .. } => match device {
            None => Vec::new(),
            Some(device) => vec![
                line![
                    "The session of ",
                    who(user),
                    " on ",
                    Piece::Isolated(device),
                    " ends. ",
                    lag(minutes)
                ],
                "Other sessions go on, and the same device can sign in again.".into(),
            ],
        },
    }
}

fn deletion(user: &UserState, minutes: u32) -> Vec<Line> {
    let mut steps = vec![line![
        first(user),
        " is deleted permanently, with e-mail address, name and picture."
    ]];
    steps.extend(user.identities.iter().map(|identity| {
        line![
            account(identity),
            " is unlinked. The next sign-in with it creates a new user."
        ]
    }));
    steps.push(ending(user.sessions(), Some(user), minutes));
    steps.push(
        "The audit log keeps what happened and when, but no e-mail addresses, IP addresses or devices of this user. It \
         keeps this deletion, with your e-mail address and your reason."
            .into(),
    );
    steps
}

fn moving(identity: &LinkedIdentity, from: &UserState, to: &UserState, minutes: u32) -> Vec<Line> {
    let mut steps = vec![
        line![
            account(identity),
            " signs in as ",
            who(to),
            " from now on, no longer as ",
            who(from),
            "."
        ],
        ending(identity.sessions, None, minutes),
        "The e-mail addresses of both users stay as they are.".into(),
    ];
    steps.extend(unproven(identity, from));
    if to.email.is_none() {
        steps.push(line![
            "At the next sign-in with it, ",
            who(to),
            " gets its e-mail address, if the provider has verified the address and no other user has proven it."
        ]);
    }
    steps
}

fn unlinking(identity: &LinkedIdentity, user: &UserState, minutes: u32) -> Vec<Line> {
    let mut steps = vec![
        line![account(identity), " no longer signs in as ", who(user), "."],
        "The next sign-in with it counts as new: it is linked to the user who has its verified e-mail address, or it \
         creates a new user."
            .into(),
        ending(identity.sessions, None, minutes),
    ];
    if let Some(email) = &user.email {
        steps.push(line![
            first(user),
            format!(" keeps the e-mail address {email}.")
        ]);
    }
    steps.extend(unproven(identity, user));
    steps
}

fn merge(from: &UserState, into: &UserState, minutes: u32) -> Vec<Line> {
    let mut steps = Vec::new();
    for identity in &from.identities {
        steps.push(if identity.suspended_at.is_some() {
            line![
                account(identity),
                " becomes one of ",
                who(into),
                format!(", and stays suspended. {}", suspension(identity))
            ]
        } else {
            line![
                account(identity),
                " signs in as ",
                who(into),
                " from now on."
            ]
        });
    }
    if from.identities.is_empty() {
        steps.push(line![
            first(from),
            " has no identity, so there is nothing to move."
        ]);
    }
    steps.push(ending(from.sessions(), Some(from), minutes));
    match (&from.email, &into.email) {
        (Some(lost), Some(kept)) => steps.push(Line::from(format!(
            "The e-mail address stays {kept}. No user has {lost} any more: a new identity with it creates a new user."
        ))),
        (Some(email), None) => {
            let verified = if from.email_verified {
                "verified"
            } else {
                "not verified"
            };
            steps.push(line![
                first(into),
                format!(" gets the e-mail address {email} ({verified}).")
            ]);
        }
        (None, _) => {}
    }
    let names = (into.name.as_deref(), from.name.as_deref());
    steps.extend(kept("name", names.0, names.1, into));
    let pictures = (into.picture.as_deref(), from.picture.as_deref());
    steps.extend(kept("picture", pictures.0, pictures.1, into));
    let after = merged(from, into);
    let json = |claims: CustomClaims| (!claims.is_empty()).then(|| Piece::Isolated(claims.json()));
    if let Some(taken) = json(after.claims.unlike(&into.claims)) {
        steps.push(line![
            "Access tokens of ",
            who(into),
            " get the claims ",
            taken,
            "."
        ]);
    }
    if let Some(lost) = json(from.claims.unlike(&after.claims)) {
        let own = Piece::Isolated(into.claims.json());
        steps.push(line!["The claims ", own, " stay; ", lost, " are dropped."]);
    }
    steps.push(Line::from(format!(
        "The user {} is deleted. Its history stays in the audit log under that ID. Services that store this ID must \
         replace it with {}.",
        from.id, into.id
    )));
    steps
}

/// Returns what to consider before a change is made.
fn warnings(change: &Loaded, has_device: bool, minutes: u32) -> Vec<Line> {
    match change {
        Change::Delete { user } => deletion_warnings(user),
        Change::Merge { from, into } => merge_warnings(from, into, minutes),
        Change::Move { identity, from, to } => move_warnings(identity, from, to),
        Change::Unlink { identity, user } => unlink_warnings(identity, user),
        Change::Release { .. } => vec![
            "It came to this user while a hijacker may have had another account of the user. Release it only if it is the \
             user's."
                .into(),
        ],
        Change::EndSession { .. } if !has_device => {
            vec!["This session has ended already.".into()]
        }
        Change::Disable { .. }
        | Change::Enable { .. }
        | Change::EndSessions { .. }
        | Change::EndSession { .. } => Vec::new(),
    }
}

fn deletion_warnings(user: &UserState) -> Vec<Line> {
    let mut warnings: Vec<Line> = vec!["A deletion cannot be undone.".into()];
    if user.is_hijacked() {
        warnings.push(
            "A provider has reported an account of this user hijacked or disabled, which is forgotten with the user: a \
             hijacker of the account can come back as a new user. To prevent that, disable this user instead."
                .into(),
        );
    }
    if user.disabled_at.is_some() {
        warnings.push(line![
            first(user),
            " is disabled now. After the deletion, the same person can come back as a new user."
        ]);
    }
    warnings
}

fn merge_warnings(from: &UserState, into: &UserState, minutes: u32) -> Vec<Line> {
    let mut warnings = vec![line![
        "A merge cannot be undone. Every person who can sign in as ",
        who(from),
        " can sign in as ",
        who(into),
        " from then on. The same name is no proof: ask for something that only the owner of both would know."
    ]];
    if into.disabled_at.is_some() {
        warnings.push(line![
            first(into),
            " is disabled and stays disabled. No identity of ",
            who(from),
            " can sign in any more."
        ]);
    } else if from.disabled_at.is_some() {
        warnings.push(line![
            first(from),
            " is disabled, so ",
            who(into),
            " will be disabled, too."
        ]);
        warnings.push(ending(into.sessions(), Some(into), minutes));
    }
    warnings.extend(claimed(if into.email.is_some() { into } else { from }));
    warnings
}

fn move_warnings(identity: &LinkedIdentity, from: &UserState, to: &UserState) -> Vec<Line> {
    let mut warnings = Vec::new();
    if identity.suspended_at.is_some() {
        warnings.push(Line::from(format!(
            "The identity stays suspended. {}",
            suspension(identity)
        )));
    }
    match &from.email {
        Some(email) if from.identities.len() == 1 && from.email_vouched => warnings.push(line![
            "This is the last identity of ",
            who(from),
            format!(
                ". After the move, the next person who proves the e-mail address {email} gets that user. If both users are one \
                 person, merge them instead."
            )
        ]),
        _ if from.identities.len() == 1 => warnings.push(line![
            "This is the last identity of ",
            who(from),
            ". After the move, no identity signs in as that user. Merge the two users instead, or delete ",
            who(from),
            " afterwards."
        ]),
        Some(email) if keeps_address_without(from, identity) => warnings.push(line![
            first(from),
            format!(" keeps the e-mail address {email}. Another identity with this address signs in as "),
            who(from),
            ", not as ",
            who(to),
            "."
        ]),
        _ => {}
    }
    if to.disabled_at.is_some() {
        warnings.push(line![
            first(to),
            " is disabled. Sign-ins with the identity will be refused."
        ]);
    }
    warnings.extend(claimed(to));
    warnings
}

fn unlink_warnings(identity: &LinkedIdentity, user: &UserState) -> Vec<Line> {
    let mut warnings = Vec::new();
    if identity.suspended_at.is_some() && !identity.held {
        warnings.push(
            "The identity is suspended, which is forgotten with it. The owner or a hijacker of the account can sign in with \
             it again. To prevent that, disable this user instead."
                .into(),
        );
    }
    let Some(email) = &user.email else {
        return warnings;
    };
    if keeps_address_without(user, identity) {
        warnings.push(Line::from(format!(
            "The identity has the e-mail address {email}, too. If its provider has verified the address, the next sign-in \
             with the identity links it to this user again. To prevent that, move it to another user instead, or disable \
             this user."
        )));
    }
    if user.email_vouched && user.identities.len() == 1 {
        warnings.push(Line::from(format!(
            "This is the last identity. The only way back to this user is a sign-in with the e-mail address {email} at a \
             provider that has verified it."
        )));
    }
    warnings
}

/// Returns true if the identity has the user's address, which stays verified without it.
fn keeps_address_without(user: &UserState, identity: &LinkedIdentity) -> bool {
    user.is_verified_without(identity) && user.has_address_of(identity)
}

/// Says that the user's address is no longer verified without the identity.
fn unproven(identity: &LinkedIdentity, user: &UserState) -> Option<Line> {
    let email = user.email.as_ref()?;
    let is_only_proof = user.email_verified && !user.is_verified_without(identity);
    is_only_proof.then(|| {
        Line::from(format!(
            "{email} is no longer verified: only this identity proves it. The next person who signs in with the verified \
             address gets it."
        ))
    })
}

fn claimed(user: &UserState) -> Option<Line> {
    let email = user.email.as_ref().filter(|_| !user.email_verified)?;
    Some(Line::from(format!(
        "The e-mail address {email} was never verified. If another person proves later that it is theirs, this user loses \
         it."
    )))
}

/// Says which of two values the kept user has after a merge.
fn kept(what: &str, own: Option<&str>, theirs: Option<&str>, into: &UserState) -> Option<Line> {
    let isolated = |text: &str| Piece::Isolated(text.to_owned());
    match (own, theirs?) {
        (None, theirs) => Some(line![
            first(into),
            format!(" gets the {what} "),
            isolated(theirs),
            "."
        ]),
        (Some(own), theirs) if own != theirs => Some(line![
            format!("The {what} stays "),
            isolated(own),
            "; ",
            isolated(theirs),
            " is dropped."
        ]),
        (Some(_), _) => None,
    }
}

/// Returns what the search for the other user of a merge, or of the move of an identity, is for.
pub(in crate::admin) fn search(moved: Option<&IdentityRow>, person: &ListedUser) -> Line {
    match moved {
        Some(identity) => line![
            described(
                &identity.provider,
                &identity.subject,
                identity.email.as_deref()
            ),
            " is linked to ",
            listed(person),
            ". Find the user to move it to."
        ],
        None => "Use this when one person has two users. Find the other user, then choose which one is kept.".into(),
    }
}

/// Says how many sessions end: of the user, or of an identity.
fn ending(count: i64, user: Option<&UserState>, minutes: u32) -> Line {
    let (opened, whose) = match user {
        Some(user) => (" of ", who(user)),
        None => (" ", "opened with it".into()),
    };
    match count {
        0 => line![
            format!("There is no active session{opened}"),
            whose,
            ", so no device is signed out."
        ],
        1 => line![
            format!("One session{opened}"),
            whose,
            format!(" ends. {}", lag(minutes))
        ],
        _ => line![
            format!("{count} sessions{opened}"),
            whose,
            format!(" end. {}", lag(minutes))
        ],
    }
}

fn lag(minutes: u32) -> String {
    let time = match minutes {
        1 => "one more minute".to_owned(),
        _ => format!("up to {minutes} more minutes"),
    };
    format!("For {time}, other services may accept access tokens that were already issued.")
}

fn suspension(identity: &LinkedIdentity) -> &'static str {
    if identity.held {
        "It cannot sign in before an admin releases it."
    } else {
        "It cannot sign in before its provider reports the account enabled."
    }
}

/// Names a user within a sentence.
fn who(user: &UserState) -> Piece {
    named(user.id, user.email.as_ref(), user.name.as_ref(), "the")
}

/// Names a user at the beginning of a sentence.
fn first(user: &UserState) -> Piece {
    named(user.id, user.email.as_ref(), user.name.as_ref(), "The")
}

/// Names a user of a list within a sentence.
pub(in crate::admin) fn listed(user: &ListedUser) -> Piece {
    named(user.id, user.email.as_ref(), user.name.as_ref(), "the")
}

fn named(id: Uuid, email: Option<&String>, name: Option<&String>, the: &str) -> Piece {
    email.or(name).map_or_else(
        || Piece::Text(format!("{the} user {id}")),
        |own| Piece::Isolated(own.clone()),
    )
}

/// Names an identity at the beginning of a sentence.
fn account(identity: &LinkedIdentity) -> String {
    let LinkedIdentity {
        provider,
        subject,
        email,
        ..
    } = identity;
    described(provider, subject, email.as_deref())
}

fn described(provider: &str, subject: &str, email: Option<&str>) -> String {
    let email = email.map(|email| format!(" ({email})"));
    let email = email.unwrap_or_default();
    format!("The {provider} identity {subject}{email}")
}
