//! Identities that staff move and unlink.

use serde_json::json;
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};

use super::{at, identity, make, user};
use crate::support::app::App;
use crate::support::token::{claims, with};

/// Returns the user's address, and whether it is verified.
async fn address(app: &App, user: Uuid) -> (Option<String>, bool) {
    all!(
        &app.database.pool,
        "SELECT email, email_verified FROM users WHERE id = $1",
        user
    )
    .remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_identity_takes_no_address_along_and_steals_none_later() {
    let app = App::start().await;
    for (number, target) in [
        json!({}),
        json!({ "email": null }),
        json!({ "email_verified": false }),
    ]
    .into_iter()
    .enumerate()
    {
        let theirs = format!("from-{number}@example.com");
        let own = format!("to-{number}@example.com");
        let moved = claims(&format!("from-{number}"), &theirs);
        let from = app.sign_in(&moved).await;
        let to = app
            .sign_in(&with(claims(&format!("to-{number}"), &own), &target))
            .await;
        let before = [
            (Some(theirs.clone()), false),
            address(&app, user(&to)).await,
        ];
        let change = Change::Move {
            identity: identity(&from),
            from: user(&from),
            to: user(&to),
        };
        assert_eq!(make(&app, change).await, Outcome::Done);
        assert_eq!(
            [
                address(&app, user(&from)).await,
                address(&app, user(&to)).await
            ],
            before
        );

        let again = app.sign_in(&moved).await;
        assert_eq!(user(&again), user(&to), "{target}");
        // A user without an address gets the address that the identity proves. The former user, who
        // cannot prove it any more, loses it.
        let welcome = target.get("email").is_some();
        let after = if welcome {
            [(None, false), (Some(theirs.clone()), true)]
        } else {
            before.clone()
        };
        assert_eq!(
            [
                address(&app, user(&from)).await,
                address(&app, user(&to)).await
            ],
            after,
            "{target}"
        );
        let fresh = format!("fresh-{number}@example.com");
        app.sign_in(&with(moved.clone(), &json!({ "email": fresh })))
            .await;
        let expected = if welcome {
            (Some(fresh), true)
        } else {
            before[1].clone()
        };
        assert_eq!(address(&app, user(&to)).await, expected, "{target}");

        // The next user who proves the old address gets it, and none of the former user's data.
        let back = app
            .sign_in_at("second", &at("second", &format!("back-{number}"), &theirs))
            .await;
        assert_eq!(back.outcome(), "created", "{target}");
        assert_eq!(address(&app, user(&from)).await, (None, false), "{target}");
    }
}
