//! The operating system user that the server runs as. A choice is needed only for root, because `PostgreSQL` refuses
//! to run as root.

use std::fs;
use std::process::Command;

use rustix::process::geteuid;

use super::error::Error;

/// User names in order of preference; the second is that of OpenBSD and macOS.
const NAMES: [&str; 3] = ["postgres", "_postgres", "nobody"];

/// An unprivileged user other than the one this program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// Returns the user for the server; `None` if this program is not root and the server runs as the same user.
    pub(super) fn choose() -> Result<Option<Self>, Error> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let passwd = passwd();
        NAMES.iter().find_map(|name| find(&passwd, name)).map(Some).ok_or(Error::NoAccount)
    }

    /// Returns the server's user id for an account chosen by [`Self::choose`].
    pub(super) fn server_uid(account: Option<&Self>) -> u32 {
        account.map_or_else(|| geteuid().as_raw(), |account| account.uid)
    }
}

/// Returns the entries of the candidates. `getent` also knows users that are not in the file, but some systems lack
/// it.
fn passwd() -> String {
    let asked = Command::new("getent").arg("passwd").args(NAMES).output();
    match asked {
        // The exit status only says whether *all* names were found.
        Ok(output) if !output.stdout.is_empty() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => fs::read("/etc/passwd")
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default(),
    }
}

fn find(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next()? == name;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        // A second name for root would not drop privileges.
        (found && uid != 0).then(|| Account { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_read_from_a_passwd_entry() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:x,,,:/var:/bin/bash\n";
        let account = find(passwd, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
    }

    #[test]
    fn a_negative_or_root_user_id_is_no_account() {
        assert_eq!(find("nobody:*:-2:-2:::", "nobody"), None);
        assert_eq!(find("postgres:x:0:0:::", "postgres"), None);
    }
}
