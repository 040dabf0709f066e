//! Single users, as staff see them.

use sqlx::PgPool;
use uuid::Uuid;

use crate::admin::users::store::ListedUser;
use crate::store::Error;

/// A user with what lists leave out.
#[derive(Debug, Clone)]
pub struct PersonRow {
    /// The user.
    pub user: ListedUser,
    /// The claims that the product's backend has set, as JSON.
    pub claims: Option<String>,
    /// True if the name is the user's own word.
    pub own_name: bool,
}

/// Returns one user, active or disabled.
///
/// # Errors
/// See [`Error`].
pub async fn user(pool: &PgPool, id: Uuid) -> Result<Option<PersonRow>, Error> {
    let row = sqlx::query!(
        r#"SELECT u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, u.last_seen_on,
                  u.claims::text AS claims, u.own_name,
                  ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
           FROM users u WHERE u.id = $1"#,
        id,
    );
    Ok(row.fetch_optional(pool).await?.map(|row| PersonRow {
        user: ListedUser {
            id: row.id,
            email: row.email,
            email_verified: row.email_verified,
            name: row.name,
            created_at: row.created_at,
            disabled_at: row.disabled_at,
            last_seen_on: row.last_seen_on,
            providers: row.providers,
        },
        claims: row.claims,
        own_name: row.own_name,
    }))
}
