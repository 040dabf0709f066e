//! The upgrade of a deployment and its rollback: instances behind HAProxy are replaced one by one,
//! while users use them and a later version migrates the schema.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, SqlSafeStr};
use vestibule::database::migrations;

use crate::deploy::phone::PhoneUsers;
use crate::deploy::vestibule::Deployment;
use crate::support::process::until;

/// The migrations of a later version, which only add.
fn later() -> Migrator {
    let sql = "ALTER TABLE users ADD COLUMN later text;
               ALTER TABLE identities ADD COLUMN later text;
               ALTER TABLE sessions ADD COLUMN later text";
    let description = "of a later version".into();
    let kind = MigrationType::Simple;
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
    let mut deployment = Deployment::start("rolling").await;
    let Some(proxy) = deployment.haproxy(&[]).await else {
        return;
    };
    let clients = (0..8).map(|_| proxy.site.client().build().unwrap());
    let phone_users = PhoneUsers::start(clients.collect(), &proxy.site.url(), &deployment.provider);
    // The second instance continues on a schema that it did not start with. Then both start with
    // it.
    for (index, migrates) in [(0, false), (1, true), (0, false)] {
        if migrates {
            let mut connection = PgConnection::connect(&deployment.database.url)
                .await
                .unwrap();
            migrations::run(&mut connection, &mut later())
                .await
                .unwrap();
        }
        let before = phone_users.answers();
        until("people are at it", async || {
            phone_users.answers() > before + 100
        })
        .await;
        let instance = &mut deployment.instances[index];
        instance.tell_to_stop();
        assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
        instance.start();
        instance.ready().await;
        proxy.sees(2).await;
    }
    let answers = phone_users.stop().await;
    println!("{answers} requests, all answered well");
}
