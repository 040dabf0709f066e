//! What has served its time goes; what has not stays.

use vestibule::session::prune::{Pruned, prune};

use crate::support::app::App;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn expired_tokens_go_with_the_sessions_they_leave_empty_and_a_replay_is_known_until_then() {
    let app = App::start().await;
    let live = app.sign_in(&claims("live", "live@example.com")).await;
    let next = app.refresh(&live.refresh_token()).await;
    app.sign_in(&claims("dead", "dead@example.com")).await;
    let statements = [
        "UPDATE refresh_tokens SET expires_at = now() - interval '1 second' WHERE session_id IN
             (SELECT s.id FROM sessions s JOIN identities i ON i.id = s.identity_id WHERE i.subject = 'dead')",
        "UPDATE refresh_tokens SET expires_at = now() - interval '1 second' WHERE consumed_at IS NOT NULL",
        // More than one batch of old tokens, and of old events.
        "INSERT INTO refresh_tokens (hash, session_id, generation, expires_at)
         SELECT sha256(n::text::bytea), (SELECT id FROM sessions ORDER BY id LIMIT 1), -n, now() - interval '1 day'
         FROM generate_series(1, 2500) AS n",
        "INSERT INTO events (id, kind, created_at)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'signed_in', now() - interval '401 days'
         FROM generate_series(1, 2500) AS n",
    ];
    for sql in statements {
        sqlx::query(sql).execute(&app.database.pool).await.unwrap();
    }
    let events = app.database.count("SELECT count(*) FROM events").await;
    let pruned = prune(&app.database.pool, 400).await.unwrap();
    assert_eq!(pruned, Pruned { refresh_tokens: 2502, events: 2500, ..Pruned::default() });
    assert_eq!(app.database.rows().await, [2, 2, 1, 1], "users and identities stay, and the live session");
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, events - 2500);
    assert_eq!(prune(&app.database.pool, 400).await.unwrap(), Pruned::default());
    assert_eq!(app.refresh(&next.refresh_token()).await.status.as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_staff_that_are_idle_or_old_go_and_the_others_stay() {
    let app = App::start().await;
    let statements = [
        "INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), 'staff@example.com', 'admin')",
        "INSERT INTO staff_sessions (hash, staff_id, created_at, last_used_at, ip)
         SELECT sha256(n::text::bytea), id, now() - interval '1 hour', now() - interval '31 minutes', '192.0.2.1'
         FROM staff, generate_series(1, 2000) AS n",
        "INSERT INTO staff_sessions (hash, staff_id, created_at) SELECT sha256('old'), id, now() - interval '12 hours' FROM staff",
        "INSERT INTO staff_sessions (hash, staff_id, created_at, last_used_at)
         SELECT sha256('live'), id, now() - interval '11 hours', now() - interval '29 minutes' FROM staff",
    ];
    for sql in statements {
        sqlx::query(sql).execute(&app.database.pool).await.unwrap();
    }
    let pruned = prune(&app.database.pool, 400).await.unwrap();
    assert_eq!(pruned, Pruned { staff_sessions: 2001, ..Pruned::default() });
    assert_eq!(
        app.database.count("SELECT count(*) FROM staff_sessions WHERE hash = sha256('live')").await,
        1
    );
    assert_eq!(app.database.count("SELECT count(*) FROM staff_sessions").await, 1);
}
