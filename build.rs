//! Rebuilds when the schema changes, and keeps the build away from any database.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=.sqlx");
    println!("cargo:rerun-if-env-changed=SQLX_OFFLINE");
    // Queries are checked against the committed `.sqlx`, also where DATABASE_URL names the database
    // that the program, not the compiler, should use.
    if env::var_os("SQLX_OFFLINE").is_none() {
        println!("cargo:rustc-env=SQLX_OFFLINE=true");
    }
}
