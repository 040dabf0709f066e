//! The `when` filter: renders an RFC 3339 time as a `<time>` element in a time zone of the IANA
//! database.
//!
//! `{{ person.created_at | when(zone=zone) }}` shows minutes; `precision` can also be `"second"` or `"day"`. With `"ago"` it
//! shows how long ago the time was, and the time itself as the title; a day without a time counts
//! in days of UTC. With `"clock"` it shows hours and minutes, and the time as the title.

use std::collections::HashMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use tera::{Filter, Value};

/// The filter. Its output is markup that contains nothing from outside.
pub struct When;

impl Filter for When {
    fn filter(&self, value: &Value, arguments: &HashMap<String, Value>) -> tera::Result<Value> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let day = value
            .as_str()
            .filter(|text| text.len() == 10)
            .and_then(|text| text.parse::<Date>().ok());
        if let Some(day) = day {
            let days = day.until((Unit::Day, Timestamp::now().to_zoned(TimeZone::UTC).date()));
            let ago = days_ago(days.map_or(0, |days| days.get_days()).into());
            return Ok(Value::String(format!(
                "<time datetime=\"{day}\" title=\"{day}\">{ago}</time>"
            )));
        }
        let time: Timestamp = value
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| {
                tera::Error::msg(format!("`when` takes an RFC 3339 time, not {value}"))
            })?;
        let precision = text("precision").unwrap_or("minute");
        let format = match precision {
            "day" => "%Y-%m-%d",
            "minute" | "ago" => "%Y-%m-%d %H:%M %Z",
            "second" | "clock" => "%Y-%m-%d %H:%M:%S %Z",
            other => {
                return Err(tera::Error::msg(format!(
                    "`when` knows no precision `{other}`"
                )));
            }
        };
        let zone = text("zone")
            .and_then(|name| TimeZone::get(name).ok())
            .unwrap_or(TimeZone::UTC);
        let shown = time.to_zoned(zone).strftime(format).to_string();
        // HTML takes three digits of a fraction at most.
        let time = Timestamp::from_second(time.as_second()).map_err(tera::Error::msg)?;
        Ok(Value::String(match precision {
            "ago" => {
                let ago = ago(Timestamp::now().as_second() - time.as_second());
                format!("<time datetime=\"{time}\" title=\"{shown}\">{ago}</time>")
            }
            "clock" => {
                let clock = shown.get(11..16).unwrap_or_default();
                format!("<time datetime=\"{time}\" title=\"{shown}\">{clock}</time>")
            }
            _ => format!("<time datetime=\"{time}\">{shown}</time>"),
        }))
    }

    fn is_safe(&self) -> bool {
        true
    }
}

const DAY: i64 = 24 * 60 * 60;
const UNITS: [(i64, &str); 5] = [
    (365 * DAY, "year"),
    (30 * DAY, "month"),
    (DAY, "day"),
    (60 * 60, "hour"),
    (60, "minute"),
];

/// Returns a number of seconds in the largest unit that fits.
fn ago(seconds: i64) -> String {
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| seconds >= *size) else {
        return "just now".to_owned();
    };
    let number = seconds / size;
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

fn days_ago(days: i64) -> String {
    match days {
        ..=0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        _ => ago(days * DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(time: &str, arguments: &[(&str, &str)]) -> tera::Result<String> {
        let arguments = arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        Ok(When
            .filter(&time.into(), &arguments)?
            .as_str()
            .unwrap()
            .to_owned())
    }

    #[test]
    fn times_are_shown_in_the_readers_zone_and_marked_in_utc() {
        for (zone, precision, shown) in [
            ("UTC", "minute", "2026-07-01 22:30 UTC"),
            ("Europe/Berlin", "minute", "2026-07-02 00:30 CEST"),
            ("Europe/Berlin", "day", "2026-07-02"),
            ("America/New_York", "second", "2026-07-01 18:30:05 EDT"),
            ("no such zone", "day", "2026-07-01"),
        ] {
            assert_eq!(
                when(
                    "2026-07-01T22:30:05Z",
                    &[("zone", zone), ("precision", precision)]
                )
                .unwrap(),
                format!("<time datetime=\"2026-07-01T22:30:05Z\">{shown}</time>")
            );
        }
    }

    #[test]
    fn a_past_time_is_told_in_the_largest_unit_that_fits() {
        for (seconds, told) in [
            (-5, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (3599, "59 minutes ago"),
            (3600, "1 hour ago"),
            (2 * DAY - 1, "1 day ago"),
            (29 * DAY, "29 days ago"),
            (364 * DAY, "12 months ago"),
            (800 * DAY, "2 years ago"),
        ] {
            assert_eq!(ago(seconds), told);
        }
        assert_eq!(
            [0, 1, 2].map(days_ago),
            ["today", "yesterday", "2 days ago"]
        );
        assert_eq!(
            when(
                "2000-01-01T23:30:05Z",
                &[("zone", "Europe/Berlin"), ("precision", "ago")]
            )
            .unwrap(),
            format!(
                "<time datetime=\"2000-01-01T23:30:05Z\" title=\"2000-01-02 00:30 CET\">{}</time>",
                ago(Timestamp::now().as_second() - 946_769_405)
            )
        );
        let day = when("2000-01-01", &[("precision", "ago")]).unwrap();
        assert!(
            day.starts_with("<time datetime=\"2000-01-01\" title=\"2000-01-01\">"),
            "{day}"
        );
    }

    #[test]
    fn what_is_no_time_is_an_error_and_not_markup() {
        assert!(when("<script>", &[]).is_err());
        assert!(when("", &[]).is_err());
        assert!(when("2026-07-01T22:30:05Z", &[("precision", "<b>")]).is_err());
    }
}
