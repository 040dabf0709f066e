//! No preset: a provider that is defined by its settings alone. Its tokens may have any format.

use super::Defaults;
use crate::domain::id_token::Format;

pub(super) const CUSTOM: Defaults = Defaults { format: Format::Any, ..Defaults::PLAIN };
