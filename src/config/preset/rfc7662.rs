//! Token introspection (RFC 7662): the operator says where, and who issues the tokens. An inactive
//! token is a 200 that says so. Every claim that is checked must be in the answer, those that the
//! standard leaves optional as well.

use super::Defaults;
use crate::domain::id_token::Format;

pub(super) const RFC7662: Defaults = Defaults { format: Format::Any, ..Defaults::INTROSPECTED };
