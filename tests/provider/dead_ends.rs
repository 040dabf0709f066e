//! Addresses that lead nowhere.

use std::io::ErrorKind;

use tokio::net::TcpStream;

use crate::provider::client::{Client, provider};
use crate::support::provider::{Behaviour, Refusing, Silent};

#[tokio::test]
async fn a_refusing_address_refuses_and_stays_reserved() {
    let refusing = Refusing::reserve();
    assert_eq!(refusing.url(), format!("http://{}", refusing.address()));
    for _ in 0..2 {
        let refused = TcpStream::connect(refusing.address()).await;
        assert_eq!(refused.expect_err("nobody is there").kind(), ErrorKind::ConnectionRefused);
    }
    let taken = std::net::TcpListener::bind(refusing.address());
    assert_eq!(taken.expect_err("it is reserved").kind(), ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_silent_listener_accepts_and_never_speaks() {
    let silent = Silent::start().await;
    assert_eq!(silent.https_url(), format!("https://{}", silent.address()));
    assert_eq!(silent.http_url(), format!("http://{}", silent.address()));
    let mut client = Client::at(silent.address()).await;
    client.send("\x16\x03\x01\x00\x05hello").await;
    client.hears_nothing().await;
    assert_eq!((silent.counts().connections, silent.counts().open), (1, 1));
    drop(client);
    silent.until(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn a_provider_knows_its_addresses() {
    let provider = provider(Behaviour::Usual).await;
    assert_eq!(provider.url(), format!("http://{}", provider.address()));
    assert_eq!(provider.tokeninfo_url(), format!("{}/tokeninfo", provider.url()));
    assert!(provider.address().ip().is_loopback());
}
