//! Events that record no change. A change records its event in its own statement.

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::database::Database;
use crate::database::error::Error;
use crate::domain::{Actor, Author, Email, Origin, Role};
use crate::events::author::SqlAuthor;
use crate::events::kind::EventKind;

/// A sign-in that was refused without a query, or a request that did not prove the key of its
/// session.
#[derive(Debug, Clone, Default)]
pub struct RefusedRequest {
    pub reason: &'static str,
    pub provider: String,
    /// Unverified e-mail address in the token.
    pub claimed_email: Option<String>,
    /// Unverified `iss` in the token.
    pub claimed_issuer: Option<String>,
    /// Unverified `aud` in the token.
    pub claimed_audience: Option<String>,
    pub origin: Origin,
    /// The session whose key was not proven.
    pub session: Option<Uuid>,
}

/// Records refused requests. A retry does not record them twice. After an error, nothing was
/// recorded.
pub async fn record_refusals(
    database: &Database,
    refusals: &[RefusedRequest],
) -> Result<(), Error> {
    let ids: Vec<_> = refusals.iter().map(|_| Uuid::now_v7()).collect();
    database
        .run(|_| record_refusals_as(database, &ids, refusals))
        .await
}

async fn record_refusals_as(
    database: &Database,
    ids: &[Uuid],
    refusals: &[RefusedRequest],
) -> Result<(), Error> {
    let texts =
        |read: fn(&RefusedRequest) -> Option<String>| refusals.iter().map(read).collect::<Vec<_>>();
    sqlx::query!(
        r#"INSERT INTO events (id, kind, reason, provider, email, user_id, session_id, ip, user_agent, request_id, detail)
           SELECT refused.id, CASE WHEN session_id IS NULL THEN 'sign_in_refused' ELSE 'proof_refused' END, reason,
                  coalesce(i.provider, refused.provider), refused.email, i.user_id, session_id, ip, user_agent, request_id,
                  jsonb_strip_nulls(jsonb_build_object('claimed_issuer', issuer, 'claimed_audience', audience))
           FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::inet[], $6::text[], $7::text[], $8::text[], $9::text[],
                       $10::uuid[])
                AS refused (id, reason, provider, email, ip, user_agent, request_id, issuer, audience, session_id)
           LEFT JOIN sessions s ON s.id = session_id
           LEFT JOIN identities i ON i.id = s.identity_id
           ORDER BY uuid_hash(i.user_id)
           ON CONFLICT (id) DO NOTHING"#,
        ids,
        &texts(|refused| Some(refused.reason.to_owned())) as &[Option<String>],
        &texts(|refused| Some(refused.provider.clone())) as &[Option<String>],
        &texts(|refused| refused.claimed_email.clone()) as &[Option<String>],
        &refusals.iter().map(|refused| refused.origin.ip).collect::<Vec<_>>() as &[Option<IpAddr>],
        &texts(|refused| refused.origin.user_agent.clone()) as &[Option<String>],
        &texts(|refused| Some(refused.origin.request_id.clone())) as &[Option<String>],
        &texts(|refused| refused.claimed_issuer.clone()) as &[Option<String>],
        &texts(|refused| refused.claimed_audience.clone()) as &[Option<String>],
        &refusals.iter().map(|refused| refused.session).collect::<Vec<_>>() as &[Option<Uuid>],
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Records a command of an operator whose statements record nothing. A repetition after an error
/// may record it twice.
pub async fn record_command(database: &Database, kind: EventKind) -> Result<(), Error> {
    let author = SqlAuthor::needing(Role::Admin, Author::COMMAND_LINE);
    database
        .run(|_| async {
            let recorded = sqlx::query!(
                "INSERT INTO events SELECT e.* FROM event_row($1, $2) AS e",
                author as SqlAuthor<'_>,
                kind.name()
            );
            recorded.execute(database).await?;
            Ok::<_, Error>(())
        })
        .await
}

#[derive(Debug, Clone, Copy)]
pub struct DataAccess<'a> {
    pub kind: EventKind,
    pub user: Option<Uuid>,
    /// The fields of the search that were filled in, by name.
    pub search: &'a [(&'a str, &'a str)],
    /// The reason of an export.
    pub reason: Option<&'a str>,
}

impl<'a> DataAccess<'a> {
    pub const fn person(id: Uuid) -> Self {
        Self {
            user: Some(id),
            ..Self::list(EventKind::UserViewed, &[])
        }
    }

    /// A view of a list of users or events.
    pub const fn list(kind: EventKind, search: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            kind,
            user: None,
            search,
            reason: None,
        }
    }
}

/// Records a view by a member of staff or an operator. A retry does not record it twice. Returns
/// `false`, and records nothing, if a member of staff has lost access, or must not export. If the
/// search contains an e-mail address, the event's e-mail is that address, so that the deletion of
/// its owner finds the event.
pub async fn record_access(
    database: &Database,
    access: DataAccess<'_>,
    actor: Actor<'_>,
    origin: &Origin,
) -> Result<bool, Error> {
    let address = access
        .search
        .iter()
        .find_map(|(_, text)| Email::first_in(text));
    let fields: Map<_, _> = access
        .search
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect();
    let fields = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
    let id = Uuid::now_v7();
    database.run(|_| async {
        // The conflict is with an earlier attempt whose response was lost.
        let recorded = sqlx::query!(
            "INSERT INTO events (id, kind, user_id, email, actor, detail, ip, user_agent, request_id)
             SELECT $1, $2, $3, $6, $4,
                    jsonb_strip_nulls(jsonb_build_object('search', $5::text::jsonb, 'reason', $10::text)),
                    $7::inet, $8, $9
             WHERE NOT $11::boolean OR EXISTS (
                 SELECT FROM current_staff
                 WHERE email = $4 AND (may_export OR role = 'admin' OR $2 NOT IN ('users_exported', 'audit_exported')))
             ON CONFLICT (id) DO UPDATE SET kind = excluded.kind",
            id,
            access.kind.name(),
            access.user,
            actor.name(),
            fields,
            address.as_ref().map(Email::folded),
            origin.ip as _,
            origin.user_agent,
            origin.request_id,
            access.reason,
            matches!(actor, Actor::Staff(_)),
        );
        Ok::<_, Error>(recorded.execute(database).await?.rows_affected() > 0)
    }).await
}
