//! A database whose disk is full. It still reads, and writes what fits into the pages that it has,
//! so that refreshes may work while sign-ins fail.

use std::sync::atomic::Ordering;

use sqlx::PgPool;

use crate::clock;
use crate::database::error::{Error, NEXT_WRITE, WRITE_EVERY};
use crate::database::planned_each_time::planned_each_time;

/// Returns `true` from the first write that finds the disk full until one succeeds, which this
/// function attempts every five seconds.
pub async fn is_full(pool: &PgPool) -> bool {
    let now = clock::now();
    let due = |next: i64| (next <= now).then_some(now.saturating_add(WRITE_EVERY));
    match NEXT_WRITE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due) {
        Ok(_) if try_to_grow(pool).await.is_ok() => {
            NEXT_WRITE.store(i64::MAX, Ordering::Relaxed);
            false
        }
        Ok(_) => true,
        Err(next) => next != i64::MAX,
    }
}

/// Writes more than fits into the pages that the database has, and rolls it back. The text is
/// longer than any real one in this table, so it goes to pages that nothing else fills.
pub async fn try_to_grow(pool: &PgPool) -> Result<(), Error> {
    let long = sqlx::query!(
        "INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next)
         SELECT uuid_send(gen_random_uuid()), '', '', '', string_agg(md5(line::text), '') FROM generate_series(1, 1000) line"
    );
    long.persistent(false)
        .execute(&mut *planned_each_time(pool).await?)
        .await?;
    Ok(())
}
