//! A parser of as much `PromQL` as it takes to find the names in it. `promtool` checks the syntax.

/// `name{label="value", …}`.
#[derive(Debug)]
pub struct Selector {
    pub name: String,
    pub matchers: Vec<Matcher>,
}

/// `label="value"`, and with `=~` and `!~` each of the values between bars.
#[derive(Debug)]
pub struct Matcher {
    pub label: String,
    pub values: Vec<String>,
}

/// The selectors in an expression. Each has braces, empty ones if need be.
pub fn selectors(expression: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some((before, behind)) = rest.split_once('{') {
        let (inside, after) = behind.split_once('}').expect(expression);
        let start = before.rfind(|c: char| !is_name(c)).map_or(0, |at| at + 1);
        found.push(Selector {
            name: before[start..].to_owned(),
            matchers: matchers(inside),
        });
        rest = after;
    }
    let named = expression.matches("vestibule_").count();
    let ours = found
        .iter()
        .filter(|selector| selector.name.starts_with("vestibule_"))
        .count();
    assert_eq!(named, ours, "each name has braces: {expression}");
    found
}

fn matchers(inside: &str) -> Vec<Matcher> {
    let matchers = inside
        .split(',')
        .map(str::trim)
        .filter(|matcher| !matcher.is_empty());
    matchers
        .map(|matcher| {
            let (label, value) = matcher.split_once(['=', '!']).expect(matcher);
            let value = value.trim_start_matches(['=', '~']).trim_matches('"');
            Matcher {
                label: label.to_owned(),
                values: value.split('|').map(str::to_owned).collect(),
            }
        })
        .collect()
}

/// The labels that an expression groups or joins by.
pub fn grouped_by(expression: &str) -> Vec<String> {
    let lists = ["by (", "on ("]
        .into_iter()
        .flat_map(|word| expression.split(word).skip(1));
    let lists = lists.map(|rest| rest.split_once(')').expect(expression).0);
    lists
        .flat_map(|list| list.split(',').map(|label| label.trim().to_owned()))
        .collect()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

#[test]
fn names_and_labels_are_found_in_an_expression() {
    let expression = r#"sum by (a, le) (rate(x_total{b="1", c!~"2|3"}[5m])) / on (d) y{}"#;
    let found = selectors(expression);
    let plain: Vec<_> = found
        .iter()
        .map(|s| (s.name.as_str(), s.matchers.len()))
        .collect();
    assert_eq!(plain, [("x_total", 2), ("y", 0)]);
    assert_eq!(
        (
            found[0].matchers[1].label.as_str(),
            found[0].matchers[1].values.len()
        ),
        ("c", 2)
    );
    assert_eq!(grouped_by(expression), ["a", "le", "d"]);
}
