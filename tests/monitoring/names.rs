//! Alerts and the dashboard name only existing metrics, labels and values, and the dashboard shows
//! every metric.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::monitoring::client::sign_in;
use crate::monitoring::prometheus::{Prometheus, is_here, promtool, shipped};
use crate::monitoring::promql::{grouped_by, selectors};
use crate::support::cluster::Database;
use crate::support::process::{Process, until};
use crate::support::provider::{Behaviour, Provider, apple};
use crate::support::token::{claims, with};

/// Labels that Prometheus itself adds.
const ADDED: [&str; 2] = ["job", "instance"];

/// The samples of a page of metrics: the values of each label, by the metric's name.
type Samples = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn samples(page: &str) -> Samples {
    let mut samples = Samples::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let sample = samples.entry(name.to_owned()).or_default();
        // Splitting at commas is safe: our routes and names contain none.
        for label in labels
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.is_empty())
        {
            let (label, value) = label.split_once('=').unwrap();
            sample
                .entry(label.to_owned())
                .or_default()
                .insert(value.trim_matches('"').to_owned());
        }
    }
    samples
}

/// The metrics of a service that has done each kind of work.
async fn of_a_varied_life() -> String {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let key = apple::private_key().replace('\n', "\\n");
    let providers = format!(
        "{{apple={{preset=\"apple\",client_id=\"app\",team_id=\"{}\",key_id=\"{}\",private_key=\"{key}\"}}}}",
        apple::TEAM_ID,
        apple::KEY_ID
    );
    let settings = [
        ("ROCKET_PROVIDERS", providers.as_str()),
        ("ROCKET_RATE_LIMIT", "{sign_in_per_minute=13}"),
        // Nothing listens there.
        (
            "ROCKET_WEBHOOKS",
            "{shop={url=\"http://127.0.0.1:1\",secret=\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"}}",
        ),
    ];
    let service = Process::ready(&database, &provider, &settings).await;
    service.answers("/livez", 200).await;
    let ada = || claims("subject-of-ada", "ada@example.com");
    let (outcome, answer) = sign_in(&service, &provider, ada(), &json!({})).await;
    assert_eq!(outcome, "created");
    let another = claims("another-subject-of-ada", "ada@example.com");
    for (claims, more, expected) in [
        (ada(), json!({}), "signed_in"),
        (another, json!({}), "linked"),
        (
            with(ada(), &json!({ "aud": "another", "azp": "another" })),
            json!({}),
            "audience_mismatch",
        ),
        (
            with(ada(), &json!({ "iss": "https://another.example" })),
            json!({}),
            "issuer_mismatch",
        ),
        (
            ada(),
            json!({ "nonce": "a nonce that is in no token" }),
            "nonce_mismatch",
        ),
    ] {
        assert_eq!(
            sign_in(&service, &provider, claims, &more).await.0,
            expected
        );
    }
    assert_eq!(service.post("/nowhere", &[], &json!({})).await.status, 404);
    provider.behave(Behaviour::status(400));
    assert_eq!(
        sign_in(&service, &provider, ada(), &json!({})).await.0,
        "invalid_token"
    );
    for nonsense in [
        Behaviour::body("application/json", "{"),
        Behaviour::body("application/json", vec![b' '; 100 << 10]),
    ] {
        provider.behave(nonsense);
        assert_eq!(
            sign_in(&service, &provider, ada(), &json!({})).await.0,
            "provider_unavailable"
        );
    }
    provider.behave(Behaviour::status(503));
    assert_eq!(
        sign_in(&service, &provider, ada(), &json!({})).await.0,
        "provider_unavailable"
    );
    let body = json!({ "refresh_token": answer["refresh_token"] });
    assert_eq!(
        service
            .post("/api/v1/auth/refresh", &[], &body)
            .await
            .status,
        200
    );
    until("the limit is met", async || {
        sign_in(&service, &provider, ada(), &json!({})).await.0 == "rate_limited"
    })
    .await;
    database
        .run("UPDATE _sqlx_migrations SET success = false")
        .await;
    service.answers("/readyz", 503).await;
    service.answers("/metrics", 200).await;
    service.answers("/metrics", 200).await
}

/// Each expression of the dashboard, and each text that names labels.
fn dashboard() -> (Vec<String>, Vec<String>) {
    fn collect(value: &Value, expressions: &mut Vec<String>, legends: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("expr", Value::String(text)) => expressions.push(text.clone()),
                        ("legendFormat" | "titleFormat", Value::String(text)) => {
                            legends.push(text.clone());
                        }
                        _ => collect(value, expressions, legends),
                    }
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| collect(item, expressions, legends)),
            _ => {}
        }
    }
    let text = fs::read_to_string(shipped("grafana/vestibule.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut expressions = Vec::new();
    let mut legends = Vec::new();
    collect(&dashboard, &mut expressions, &mut legends);
    assert!(expressions.len() > 20, "they are found");
    (expressions, legends)
}

/// The labels that a template names, as `{{label}}` or `$labels.label`.
fn named_labels(template: &str) -> impl Iterator<Item = &str> {
    let legends = template
        .split("{{")
        .skip(1)
        .filter_map(|rest| rest.split_once("}}"))
        .map(|(name, _)| name);
    let legends =
        legends.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    let labels = template.split("$labels.").skip(1);
    legends.chain(labels.map(|rest| {
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap()
    }))
}

/// Asserts that each metric, label and value in an expression exists.
fn check(expression: &str, templates: &[&str], samples: &Samples) {
    let mut labels: BTreeSet<&str> = ADDED.into();
    let backup = fs::read_to_string(shipped("vestibule-backup.service")).unwrap();
    for selector in selectors(expression) {
        if backup.contains(&format!("{} $(date", selector.name)) {
            continue;
        }
        if matches!(selector.name.as_str(), "up" | "ALERTS") {
            labels.insert("alertname");
            continue;
        }
        let Some((_, sample)) = samples.get_key_value(&selector.name) else {
            panic!("there is no {}: {expression}", selector.name)
        };
        labels.extend(sample.keys().map(String::as_str));
        for matcher in selector
            .matchers
            .iter()
            .filter(|matcher| !ADDED.contains(&matcher.label.as_str()))
        {
            let Some(values) = sample.get(&matcher.label) else {
                panic!("{} has no {}: {expression}", selector.name, matcher.label)
            };
            for value in &matcher.values {
                assert!(
                    values.contains(value),
                    "{} is never {value}: {expression}",
                    matcher.label
                );
            }
        }
    }
    let grouped = grouped_by(expression);
    for label in grouped
        .iter()
        .map(String::as_str)
        .chain(templates.iter().flat_map(|text| named_labels(text)))
    {
        assert!(
            labels.contains(label),
            "there is no label {label}: {expression} {templates:?}"
        );
    }
}

#[test]
fn promtool_accepts_each_file_and_the_tests_of_the_alerts_pass() {
    if !is_here() {
        return;
    }
    promtool(&["check", "config"], &shipped("prometheus/prometheus.yml"));
    promtool(&["check", "rules"], &shipped("prometheus/alerts.yml"));
    promtool(&["test", "rules"], &shipped("prometheus/alerts.test.yml"));
    promtool(
        &["test", "rules"],
        &shipped("prometheus/alerts.days.test.yml"),
    );
    // The job in the guide.
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/production.md")).unwrap();
    let from = page
        .lines()
        .skip_while(|line| !line.starts_with("    - job_name: "));
    let job: Vec<_> = from.take_while(|line| line.starts_with("    ")).collect();
    assert!(job.len() > 5, "it is found");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("job-{}.yml", Uuid::now_v7()));
    fs::write(&file, format!("scrape_configs:\n{}\n", job.join("\n"))).unwrap();
    promtool(&["check", "config"], &file);
    fs::remove_file(file).unwrap();
    // Replaces Grafana's variables, so that the expressions are PromQL.
    let (expressions, _) = dashboard();
    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        let expression = expression
            .replace("$__rate_interval", "5m")
            .replace("$instance", ".*");
        assert!(!expression.contains('$'), "{expression}");
        json!({ "record": format!("dashboard:{number}"), "expr": expression })
    });
    let rules = json!({ "groups": [{ "name": "dashboard", "rules": rules.collect::<Vec<_>>() }] });
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dashboard-{}.yml", Uuid::now_v7()));
    fs::write(&file, rules.to_string()).unwrap();
    promtool(&["check", "rules"], &file);
    fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_dashboard_name_only_existing_metrics_and_the_dashboard_all() {
    if !is_here() {
        return;
    }
    let page = of_a_varied_life().await;
    let samples = samples(&page);
    let prometheus = Prometheus::watch(["127.0.0.1:1", "127.0.0.1:2"]).await;
    let rules = prometheus.rules().await;
    assert!(rules.len() > 10, "they are found");
    for rule in &rules {
        let texts = rule["annotations"].as_object().unwrap();
        assert!(
            ["summary", "description", "runbook_url"]
                .iter()
                .all(|name| texts.contains_key(*name)),
            "{rule}"
        );
        assert!(
            ["critical", "warning"]
                .map(Value::from)
                .contains(&rule["labels"]["severity"]),
            "{rule}"
        );
        let texts: Vec<_> = texts.values().map(|text| text.as_str().unwrap()).collect();
        check(rule["query"].as_str().unwrap(), &texts, &samples);
    }
    let (expressions, legends) = dashboard();
    for expression in &expressions {
        check(&expression.replace("$instance", ""), &[], &samples);
    }
    let known: BTreeSet<_> = samples
        .values()
        .flat_map(|sample| sample.keys().map(String::as_str))
        .collect();
    for label in legends.iter().flat_map(|legend| named_labels(legend)) {
        assert!(
            known.contains(label) || ADDED.contains(&label) || label == "alertname",
            "{label}"
        );
    }
    let shown: BTreeSet<String> = expressions
        .iter()
        .flat_map(|expression| selectors(expression))
        .map(|selector| selector.name)
        .collect();
    for family in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (family, _) = family.split_once(' ').unwrap();
        let of_it = |name: &String| {
            name.strip_prefix(family)
                .is_some_and(|end| ["", "_total", "_bucket", "_info"].contains(&end))
        };
        assert!(
            shown.iter().any(of_it),
            "the dashboard does not show {family}"
        );
    }
}
