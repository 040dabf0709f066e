//! Made-up users are valid and varied, and more can be added.

use time::OffsetDateTime;
use vestibule::accounts::seed::add_users;
use vestibule::events::counts::since;
use vestibule::prune::{Pruned, prune};

use crate::support::app::LIMITS;
use crate::support::cluster::Database;

#[tokio::test(flavor = "multi_thread")]
async fn seeding_adds_varied_consistent_users_and_can_be_repeated() {
    const PEOPLE: i32 = 6_000;
    let database = Database::create().await;
    for (seed, all) in [(0.1, 6_000), (0.2, 12_000)] {
        let mut progress = 0;
        let added = add_users(&database.service, PEOPLE, Some(seed), |users| {
            progress += users;
        })
        .await
        .unwrap();
        assert_eq!((progress, added.users), (6_000, 6_000));
        assert_eq!(database.count("SELECT count(*) FROM users").await, all);
    }
    let per_thousand = [
        (1250..1350, "SELECT count(*) FROM identities"),
        (160..220, "SELECT count(*) FROM sessions"),
        (
            150..220,
            "SELECT count(*) FROM sessions WHERE expires_at > now()",
        ),
        (270..350, "SELECT count(*) FROM events"),
        (
            80..120,
            "SELECT count(*) FROM events WHERE kind = 'sign_in_refused'",
        ),
        (
            5..15,
            "SELECT count(*) FROM users WHERE disabled_at IS NOT NULL",
        ),
        (
            35..65,
            "SELECT count(*) FROM users WHERE email IS NOT NULL AND NOT email_verified",
        ),
        (25..55, "SELECT count(*) FROM users WHERE email IS NULL"),
        (35..65, "SELECT count(*) FROM users WHERE name IS NULL"),
        (
            450..620,
            "SELECT count(*) FROM users WHERE seen_noted_on > current_date - 30",
        ),
    ];
    for (expected, sql) in per_thousand {
        let count = database.count(sql).await / (i64::from(PEOPLE) * 2 / 1000);
        assert!(expected.contains(&count), "{count}: {sql}");
    }
    let various = [
        (6, "SELECT count(DISTINCT provider) FROM identities"),
        (12, "SELECT count(DISTINCT reason) FROM events"),
        (1000, "SELECT count(DISTINCT name) FROM users"),
        (30, "SELECT count(DISTINCT created_at::date) FROM events"),
        (4, "SELECT count(DISTINCT kind) FROM events"),
        // Events reach back over the whole month.
        (
            1000,
            "SELECT count(*) FROM events WHERE created_at < now() - interval '15 days'",
        ),
    ];
    for (least, sql) in various {
        assert!(database.count(sql).await >= least, "{sql}");
    }
    let never = [
        "SELECT count(*) FROM users WHERE created_at > now() OR seen_noted_on < created_at::date",
        "SELECT count(*) FROM sessions WHERE rotated_at > now() OR created_at < now() - interval '31 days'",
        "SELECT count(*) FROM identities i JOIN users u ON u.id = i.user_id WHERE i.created_at < u.created_at",
        "SELECT count(*) FROM users WHERE email !~ '@(.*\\.)?example(\\.com|\\.org|\\.net)?$'",
        "SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id)",
        // Ids and dates contain the same time.
        "SELECT count(*) FROM users WHERE abs(extract(epoch FROM created_at) * 1000
             - ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint) > 1",
    ];
    for sql in never {
        assert_eq!(database.count(sql).await, 0, "{sql}");
    }
    assert_eq!(
        prune(&database.service, LIMITS).await.unwrap(),
        Pruned::default(),
        "nothing of it is too old to keep"
    );
    let counted = since(&database.service, OffsetDateTime::UNIX_EPOCH)
        .await
        .unwrap();
    let counted: i64 = counted.iter().map(|row| row.count).sum();
    assert!(counted > 2_400, "the overview counts {counted}");
}
