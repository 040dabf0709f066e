//! `[default.tls]`, which Rocket reads: what it would say nothing of, or only once the port is open.

use std::fs::File;

use figment::Figment;
use figment::value::magic::RelativePathBuf;
use figment::value::{Dict, Value};

use super::Error;
use super::file::unreadable;
use super::root::known;

const KEYS: [&str; 4] = ["certs", "key", "ciphers", "prefer_server_cipher_order"];

/// That there is nothing that this build would pass over (`mutual`), and that the files can be read.
pub(super) fn check(figment: &Figment, all: &Dict) -> Result<(), Error> {
    let Some(Value::Dict(_, tls)) = all.get("tls") else { return Ok(()) };
    known(figment, "tls.", tls, &[&KEYS])?;
    for key in ["tls.certs", "tls.key"] {
        // Otherwise it is the certificate itself.
        let Ok(path) = figment.extract_inner::<RelativePathBuf>(key) else { continue };
        File::open(path.relative()).map_err(|error| {
            let (problem, remedy) = unreadable(&error);
            Error::at(figment, key, problem, remedy)
        })?;
    }
    Ok(())
}
