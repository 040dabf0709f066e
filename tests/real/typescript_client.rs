//! Our own client for apps, in `clients/typescript`. Its tests start this program, and simulate a
//! phone's failures.

use crate::real::installed::{npm, printed, project};

#[tokio::test(flavor = "multi_thread")]
async fn our_typescript_client_survives_a_phones_bad_days() {
    let Some(mut npm) = npm("clients/typescript") else {
        return;
    };
    npm.arg("test").current_dir(project("clients/typescript"));
    npm.env("VESTIBULE", env!("CARGO_BIN_EXE_vestibule"));
    println!("{}", printed(npm).await);
}
