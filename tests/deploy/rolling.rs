//! Replacing the instances behind HAProxy one by one, while people use them and while the schema becomes that of a later
//! version: the upgrade of a deployment, and the way back.

use std::sync::Arc;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, SqlSafeStr};
use vestibule::store::migrations;

use crate::deploy::haproxy::HaProxy;
use crate::deploy::phone::Crowd;
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::provider::Provider;

/// The migration of a later version, which only adds.
fn later() -> Migrator {
    let sql = "ALTER TABLE users ADD COLUMN later text;
               ALTER TABLE identities ADD COLUMN later text;
               ALTER TABLE sessions ADD COLUMN later text";
    let (description, kind) = ("of a later version".into(), MigrationType::Simple);
    Migrator::with_migrations(vec![Migration::new(
        99_991_231_235_959,
        description,
        kind,
        sql.into_sql_str(),
        false,
    )])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_around_a_migration_behind_haproxy_loses_no_request() {
    let _alone = alone().await;
    let (folder, database) = (folder("rolling"), Database::create().await);
    let provider = Arc::new(Provider::start().await);
    let mut instances = Vestibule::two(&folder, &database.url, &provider).await;
    let Some(proxy) = HaProxy::start(&folder, &[&instances[0], &instances[1]]) else { return };
    proxy.sees(2).await;

    let clients = (0..8).map(|_| proxy.client().build().unwrap());
    let crowd = Crowd::gather(clients.collect(), &proxy.url(), &provider);
    // The second instance goes on with a schema that it did not start on; then both start on it.
    for (index, migrates) in [(0, false), (1, true), (0, false)] {
        if migrates {
            let mut connection = PgConnection::connect(&database.url).await.unwrap();
            migrations::run(&mut connection, &mut later()).await.unwrap();
        }
        let before = crowd.answers();
        eventually("people are at it", async || (crowd.answers() > before + 100).then_some(())).await;
        let instance = &mut instances[index];
        instance.tell_to_stop();
        assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
        instance.start();
        instance.ready().await;
        proxy.sees(2).await;
    }
    let answers = crowd.content().await;
    println!("{answers} requests, all answered well");
}
