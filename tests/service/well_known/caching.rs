//! Caching and revalidation of the documents: RFC 9110 §13, RFC 9111.

use reqwest::Method;

use crate::support::app::{Answer, App};
use crate::support::keys::pass;

const PATHS: [&str; 2] = [
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
];

async fn ask(app: &App, method: Method, path: &str, known: &[&str]) -> Answer {
    let headers: Vec<_> = known.iter().map(|tags| ("If-None-Match", *tags)).collect();
    app.send_with(method, path, &headers, "").await
}

fn assert_public(answer: &Answer) {
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn matching_etags_get_304_and_others_the_document() {
    let app = App::start().await;
    for path in PATHS {
        let whole = ask(&app, Method::GET, path, &[]).await;
        let etag = whole.header("etag").expect("there is a tag").to_owned();
        assert!(
            etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2,
            "a strong tag: {etag}"
        );
        assert_public(&whole);

        let weak = format!("W/{etag}");
        let listed = format!(r#""another", {etag}"#);
        for known in [
            &[etag.as_str()][..],
            &[&weak],
            &[&listed],
            &["\"another\"", &etag],
            &["*"],
        ] {
            let answer = ask(&app, Method::GET, path, known).await;
            assert_eq!(
                (answer.status.as_u16(), answer.text.as_str()),
                (304, ""),
                "{known:?}"
            );
            assert_eq!(answer.header("etag"), Some(etag.as_str()));
            assert_public(&answer);
        }
        for unknown in ["\"another\"", "", "nonsense", etag.trim_matches('"')] {
            let answer = ask(&app, Method::GET, path, &[unknown]).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.text),
                (200, &whole.text),
                "{unknown}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_answers_as_get_does_without_the_body() {
    let app = App::start().await;
    for path in PATHS {
        let get = ask(&app, Method::GET, path, &[]).await;
        let head = ask(&app, Method::HEAD, path, &[]).await;
        assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
        for name in [
            "content-type",
            "content-length",
            "cache-control",
            "etag",
            "access-control-allow-origin",
        ] {
            assert!(get.header(name).is_some(), "{name}");
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        let known = ask(&app, Method::HEAD, path, &[get.header("etag").unwrap()]).await;
        assert_eq!(known.status, 304);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tag_changes_with_the_keys_and_only_then() {
    let app = App::start().await;
    let [keys, metadata] = PATHS;
    let before = [
        ask(&app, Method::GET, keys, &[]).await,
        ask(&app, Method::GET, metadata, &[]).await,
    ];
    app.keys.reload().await.unwrap();
    assert_eq!(
        ask(
            &app,
            Method::GET,
            keys,
            &[before[0].header("etag").unwrap()]
        )
        .await
        .status,
        304
    );
    app.keys.rotation().rotate().await.unwrap();
    app.keys.reload().await.unwrap();
    let announced = ask(
        &app,
        Method::GET,
        keys,
        &[before[0].header("etag").unwrap()],
    )
    .await;
    assert_eq!(announced.status, 200);
    pass(&app.database, 600).await;
    app.keys.reload().await.unwrap();
    let tag = announced.header("etag").unwrap();
    assert_eq!(
        ask(&app, Method::GET, keys, &[tag]).await.status,
        304,
        "signing changes no key"
    );
    let metadata = ask(
        &app,
        Method::GET,
        metadata,
        &[before[1].header("etag").unwrap()],
    )
    .await;
    assert_eq!(metadata.status, 304);
}
