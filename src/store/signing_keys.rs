//! The rows that hold the signing keys of access tokens.

use sqlx::PgPool;

use super::Error;

/// A key as it is stored.
#[derive(Debug, Clone)]
pub struct SigningKeyRow {
    /// Key id, as in the tokens' header.
    pub kid: String,
    /// Uncompressed point.
    pub public_key: Vec<u8>,
    /// Sealed PKCS #8.
    pub sealed_private_key: Vec<u8>,
}

/// The key that signs now, if there is one.
///
/// # Errors
/// See [`Error`].
pub async fn current(pool: &PgPool) -> Result<Option<SigningKeyRow>, Error> {
    let row = sqlx::query_as!(
        SigningKeyRow,
        "SELECT kid, public_key, sealed_private_key FROM signing_keys
         WHERE signs_from <= now() AND retired_at IS NULL
         ORDER BY number DESC LIMIT 1",
    );
    Ok(row.fetch_optional(pool).await?)
}

/// Stores the very first key. Of several instances that try at once, one succeeds.
///
/// # Errors
/// See [`Error`].
pub async fn insert_first(pool: &PgPool, key: &SigningKeyRow) -> Result<(), Error> {
    sqlx::query!(
        "INSERT INTO signing_keys (kid, number, public_key, sealed_private_key)
         VALUES ($1, 1, $2, $3) ON CONFLICT (number) DO NOTHING",
        key.kid,
        key.public_key,
        key.sealed_private_key,
    )
    .execute(pool)
    .await?;
    Ok(())
}
