//! No preset: a provider that is defined by its settings alone. What its tokens look like is its
//! own affair.

use super::Defaults;
use crate::domain::id_token::Format;

pub(super) const CUSTOM: Defaults = Defaults { format: Format::Any, ..Defaults::PLAIN };
