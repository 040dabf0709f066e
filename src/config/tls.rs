//! `[default.tls]`, which Rocket reads. Rocket ignores some mistakes and reports others only after the port
//! is open.

use std::fs::File;

use figment::Figment;
use figment::value::Value;
use figment::value::magic::RelativePathBuf;

use super::Error;
use super::file::unreadable;
use super::root::known;

const KEYS: [&str; 4] = ["certs", "key", "ciphers", "prefer_server_cipher_order"];

/// Refuses keys that this build ignores (`mutual`) and files that cannot be read.
pub(super) fn check(figment: &Figment) -> Result<(), Error> {
    let Ok(Value::Dict(_, tls)) = figment.find_value("tls") else { return Ok(()) };
    known(figment, "tls.", &tls, &[&KEYS])?;
    for key in ["tls.certs", "tls.key"] {
        // Otherwise the value is the certificate itself.
        let Ok(path) = figment.extract_inner::<RelativePathBuf>(key) else { continue };
        File::open(path.relative()).map_err(|error| {
            let (problem, remedy) = unreadable(&error);
            Error::at(figment, key, problem, remedy)
        })?;
    }
    Ok(())
}
