//! Days as staff type them, in their time zone, and instants as links have them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Serialize, Serializer};
use time::OffsetDateTime;

/// Returns the start of the day `YYYY-MM-DD` in the zone, or the instant (RFC 3339) itself; `None`
/// if it is neither a day of the years 1 to 9999 nor an instant since 1970.
pub(super) fn begin_of(day: &str, zone: Option<&str>) -> Option<OffsetDateTime> {
    instant(day).or_else(|| start(read(day)?, zone))
}

/// Returns the end of the day, or the instant; `None` if it is neither.
pub(super) fn end_of(day: &str, zone: Option<&str>) -> Option<OffsetDateTime> {
    instant(day).or_else(|| start(read(day)?.tomorrow().ok()?, zone))
}

fn instant(text: &str) -> Option<OffsetDateTime> {
    let at = text
        .parse::<Timestamp>()
        .ok()
        .filter(|at| at.as_second() >= 0)?;
    OffsetDateTime::from_unix_timestamp(at.as_second()).ok()
}

/// Returns the last day, `YYYY-MM-DD`, of a `day`, `week` or `month` that begins tomorrow in the
/// zone.
pub(super) fn last_day(period: &str, zone: Option<&str>) -> Option<String> {
    let span = match period {
        "day" => 1.day(),
        "week" => 1.week(),
        "month" => 1.month(),
        _ => return None,
    };
    Timestamp::now()
        .to_zoned(zone_of(zone))
        .date()
        .checked_add(span)
        .ok()
        .map(|day| day.to_string())
}

/// Returns the day that ends at this time in the reader's zone or else in UTC, where staff may have
/// typed it; `None` if no day ends there.
pub(super) fn day_before(end: OffsetDateTime, zone: Option<&str>) -> Option<String> {
    let end = Timestamp::from_second(end.unix_timestamp()).ok()?;
    let last = |zone: TimeZone| {
        let end = end.to_zoned(zone);
        let begins = end.start_of_day().is_ok_and(|start| start == end);
        begins.then(|| end.date().yesterday().ok()).flatten()
    };
    let here = zone
        .and_then(|name| TimeZone::get(name).ok())
        .and_then(last);
    here.map(|day| day.to_string())
        .or_else(|| last(TimeZone::UTC).map(|day| format!("{day} (UTC)")))
}

pub(super) fn day_of(time: OffsetDateTime, zone: Option<&str>) -> String {
    let zone = zone_of(zone);
    let time = Timestamp::from_second(time.unix_timestamp()).unwrap_or_default();
    let day = time.to_zoned(zone.clone()).date();
    let today = Timestamp::now().to_zoned(zone).date();
    match today.since(day).map_or(-1, |days| days.get_days()) {
        0 => "Today".into(),
        1 => "Yesterday".into(),
        _ if day.year() == today.year() => day.strftime("%-d %B").to_string(),
        _ => day.strftime("%-d %B %Y").to_string(),
    }
}

/// Serialises a day as `YYYY-MM-DD`.
pub(super) fn text<S: Serializer>(
    day: &(impl Copy + Into<Option<time::Date>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*day)
        .into()
        .map(|day| day.to_string())
        .serialize(serializer)
}

fn zone_of(name: Option<&str>) -> TimeZone {
    name.and_then(|name| TimeZone::get(name).ok())
        .unwrap_or(TimeZone::UTC)
}

fn read(day: &str) -> Option<Date> {
    day.trim().parse().ok().filter(|day: &Date| day.year() >= 1)
}

fn start(day: Date, zone: Option<&str>) -> Option<OffsetDateTime> {
    let begin = day.to_zoned(zone_of(zone)).ok()?.timestamp();
    OffsetDateTime::from_unix_timestamp(begin.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_shown_as_the_day_that_was_typed() {
        let shown = |day, typed_in, read_in| day_before(end_of(day, typed_in).unwrap(), read_in);
        let berlin = Some("Europe/Berlin");
        let new_york = Some("America/New_York");
        assert_eq!(shown("2026-11-29", berlin, berlin).unwrap(), "2026-11-29");
        assert_eq!(
            shown("2026-11-29", Some("UTC"), Some("UTC")).unwrap(),
            "2026-11-29"
        );
        assert_eq!(
            shown("2026-11-29", None, berlin).unwrap(),
            "2026-11-29 (UTC)"
        );
        assert_eq!(shown("2026-11-29", None, None).unwrap(), "2026-11-29 (UTC)");
        assert_eq!(shown("2026-11-29", berlin, new_york), None);
    }

    #[test]
    fn a_day_begins_and_ends_where_the_reader_is() {
        let seconds = |time: Option<OffsetDateTime>| time.map(OffsetDateTime::unix_timestamp);
        let utc = seconds(begin_of("2026-10-25", None)).unwrap();
        // Clocks go back on that day, so it has 25 hours.
        assert_eq!(
            seconds(begin_of("2026-10-25", Some("Europe/Berlin"))),
            Some(utc - 2 * 3600)
        );
        assert_eq!(
            seconds(end_of("2026-10-25", Some("Europe/Berlin"))),
            Some(utc + 23 * 3600)
        );
        let hour = "2026-10-25T01:00:00Z";
        assert_eq!(
            [begin_of(hour, Some("Europe/Berlin")), end_of(hour, None)].map(seconds),
            [Some(utc + 3600); 2]
        );
        for text in [
            "",
            "2026-02-30",
            "today",
            "-1",
            "9999-12-31T",
            "99999-01-01",
            "9999-12-31",
            "-009999-01-01",
            "0000-12-31",
        ] {
            assert_eq!(end_of(text, None), None, "{text}");
        }
    }
}
