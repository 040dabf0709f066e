//! The `when` filter: renders an RFC 3339 time as a `<time>` element in a time zone of the IANA database.
//!
//! `{{ person.created_at | when(zone=zone) }}` shows minutes; `precision` can also be `"second"` or `"day"`.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tera::{Filter, Value};

/// The filter. Its output is markup that contains nothing from outside.
pub struct When;

impl Filter for When {
    fn filter(&self, value: &Value, arguments: &HashMap<String, Value>) -> tera::Result<Value> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let time: Timestamp = value
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| tera::Error::msg(format!("`when` takes an RFC 3339 time, not {value}")))?;
        let format = match text("precision").unwrap_or("minute") {
            "day" => "%Y-%m-%d",
            "minute" => "%Y-%m-%d %H:%M %Z",
            "second" => "%Y-%m-%d %H:%M:%S %Z",
            other => return Err(tera::Error::msg(format!("`when` knows no precision `{other}`"))),
        };
        let zone = text("zone").and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
        let shown = time.to_zoned(zone).strftime(format).to_string();
        Ok(Value::String(format!("<time datetime=\"{time}\">{shown}</time>")))
    }

    fn is_safe(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(time: &str, arguments: &[(&str, &str)]) -> tera::Result<String> {
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Ok(When.filter(&time.into(), &arguments)?.as_str().unwrap().to_owned())
    }

    #[test]
    fn a_time_is_shown_in_the_readers_zone_and_told_in_utc() {
        for (zone, precision, shown) in [
            ("UTC", "minute", "2026-07-01 22:30 UTC"),
            ("Europe/Berlin", "minute", "2026-07-02 00:30 CEST"),
            ("Europe/Berlin", "day", "2026-07-02"),
            ("America/New_York", "second", "2026-07-01 18:30:05 EDT"),
            ("no such zone", "day", "2026-07-01"),
        ] {
            assert_eq!(
                when("2026-07-01T22:30:05Z", &[("zone", zone), ("precision", precision)]).unwrap(),
                format!("<time datetime=\"2026-07-01T22:30:05Z\">{shown}</time>")
            );
        }
    }

    #[test]
    fn what_is_no_time_is_an_error_and_not_markup() {
        assert!(when("<script>", &[]).is_err());
        assert!(when("", &[]).is_err());
        assert!(when("2026-07-01T22:30:05Z", &[("precision", "<b>")]).is_err());
    }
}
