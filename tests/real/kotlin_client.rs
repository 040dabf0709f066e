//! Our own client for Android and the JVM, in `clients/kotlin`. Its tests start this program, and
//! simulate a phone's failures.

use crate::real::installed::{maven_in, printed};

#[tokio::test(flavor = "multi_thread")]
async fn our_kotlin_client_survives_a_phones_bad_days() {
    let Some(mut maven) = maven_in("clients/kotlin") else {
        return;
    };
    maven
        .arg("test")
        .env("VESTIBULE", env!("CARGO_BIN_EXE_vestibule"));
    println!("{}", printed(maven).await);
}
