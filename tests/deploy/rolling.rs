//! Replacing the instances behind HAProxy one by one, while people use them.

use std::sync::Arc;

use crate::haproxy::HaProxy;
use crate::phone::Crowd;
use crate::support::cluster::Database;
use crate::support::provider::Provider;
use crate::tools::{alone, eventually, folder};
use crate::vestibule::Vestibule;

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_behind_haproxy_loses_no_request() {
    let _alone = alone().await;
    let (folder, database) = (folder("rolling"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let mut instances = Vestibule::two(&folder, &database.url, &provider).await;
    let Some(proxy) = HaProxy::start(&folder, &[&instances[0], &instances[1]]) else { return };
    proxy.sees(2).await;

    // Some speak HTTP/2, some HTTP/1.1 on connections that are kept.
    let clients = (0..8).map(|number| {
        let client = proxy.client();
        if number % 2 == 0 { client.http1_only() } else { client }.build().unwrap()
    });
    let crowd = Crowd::gather(clients.collect(), &proxy.url(), &provider);
    for instance in &mut instances {
        let before = crowd.answers();
        eventually("people are at it", async || (crowd.answers() > before + 100).then_some(())).await;
        instance.tell_to_stop();
        assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
        instance.start();
        instance.ready().await;
        proxy.sees(2).await;
    }
    let answers = crowd.content().await;
    println!("{answers} requests, all answered well");
}
