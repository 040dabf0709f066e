//! Token introspection (RFC 7662): the operator says where, and who issues the tokens. An inactive
//! token is a 200 that says so. Every claim that is checked must be in the answer, those that the
//! standard leaves optional as well.
//!
//! A token that is not a JWT does not tell what kind of token it is, and most that are introspected are access
//! tokens: every service that is shown one could sign in with it here, unless only `token_format = "jwt"` is taken.
//! What is a JWT is judged by its own claims, and must be an `id_token`.

use super::Defaults;
use crate::domain::id_token::Format;

pub(super) const RFC7662: Defaults = Defaults { format: Format::Any, ..Defaults::INTROSPECTED };
