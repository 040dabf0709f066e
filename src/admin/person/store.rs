//! Single users, as staff see them.

use sqlx::PgPool;
use uuid::Uuid;

use crate::admin::users::store::ListedUser;
use crate::store::Error;

/// Returns one user, active or disabled.
///
/// # Errors
/// See [`Error`].
pub async fn user(pool: &PgPool, id: Uuid) -> Result<Option<ListedUser>, Error> {
    let user = sqlx::query_as!(
        ListedUser,
        r#"SELECT u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, u.last_seen_on,
                  ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
           FROM users u WHERE u.id = $1"#,
        id,
    );
    Ok(user.fetch_optional(pool).await?)
}
