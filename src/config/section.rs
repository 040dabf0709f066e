//! A section of the settings, such as `idp` or `webhooks.shop`, and mistakes in it.

use std::path::Path;

use figment::Figment;
use serde::de::DeserializeOwned;

use super::error::Error;
use super::file::{self, Mistake};

#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub figment: &'a Figment,
    /// The section's path; empty for the top level.
    pub key: &'a str,
}

impl Section<'_> {
    fn path(&self, field: &str) -> String {
        [self.key, field]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Returns true if the operator has set this field.
    pub fn sets(&self, field: &str) -> bool {
        self.figment.contains(&self.path(field))
    }

    /// Returns a field that is set, or the whole section if it is empty.
    pub fn get<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, Error> {
        let path = self.path(field);
        let read = || {
            self.figment.extract_inner(&path).map_err(|mut error| {
                // Figment puts this path behind the one within it.
                error.path.rotate_right(path.split('.').count());
                Error::from_figment(&error)
            })
        };
        self.sets(field).then(read).transpose()
    }

    /// Returns the error for a field, or for the whole section if it is empty.
    pub fn error(&self, field: &str, problem: &str, remedy: &str) -> Error {
        Error::at(self.figment, &self.path(field), problem, remedy)
    }

    pub fn refuse(
        &self,
        wrong: bool,
        field: &str,
        problem: &str,
        remedy: &str,
    ) -> Result<(), Error> {
        if wrong {
            Err(self.error(field, problem, remedy))
        } else {
            Ok(())
        }
    }

    pub fn require<T>(&self, field: &str, set: Option<T>, remedy: &str) -> Result<T, Error> {
        set.ok_or_else(|| self.error(field, "is missing", remedy))
    }

    /// Returns a secret that is set itself, or the contents of the file that `<field>_file` names.
    pub fn secret<T>(
        &self,
        field: &str,
        set: Option<T>,
        file: Option<&Path>,
        parse: impl FnOnce(String) -> Result<T, Mistake>,
    ) -> Result<Option<T>, Error> {
        let Some(path) = file else { return Ok(set) };
        let field_of_file = format!("{field}_file");
        let problem = format!("is set in addition to `{field}`");
        self.refuse(
            set.is_some(),
            &field_of_file,
            &problem,
            "remove one of them",
        )?;
        let secret = file::secret(path).and_then(parse);
        secret
            .map(Some)
            .map_err(|(problem, remedy)| self.error(&field_of_file, &problem, remedy))
    }
}
