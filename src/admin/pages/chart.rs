//! Bar charts: the geometry of an SVG that a template draws, and the table of its numbers.

use serde::Serialize;

/// The height of the drawing. A column is one unit wide.
const HEIGHT: f64 = 100.0;
/// The least height of a part, so that it is seen.
const LEAST: f64 = 0.6;

/// One bar: its name, and the heights of its parts.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Column {
    pub name: String,
    /// The label below the bar; most bars have none.
    pub label: Option<String>,
    /// The path of the events that it counts.
    pub href: String,
    /// One value for each series.
    pub values: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Chart {
    id: &'static str,
    title: &'static str,
    /// The length of a column's time and the time zone, in words.
    unit: String,
    /// The names of the series, from the bottom.
    series: Vec<&'static str>,
    columns: Vec<Column>,
    bars: Vec<Bar>,
    /// The values at the top, in the middle and at the axis.
    ticks: [String; 3],
    total: u64,
}

#[derive(Debug, Serialize)]
struct Bar {
    title: String,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    series: usize,
    y: f64,
    height: f64,
}

/// Returns the least of 1, 2, 5, 10, 20, … that is not below the value.
fn round_up(value: u64) -> u64 {
    let digit = 10_u64.pow(value.max(1).ilog10());
    let round = [1, 2, 5, 10]
        .into_iter()
        .filter_map(|factor| digit.checked_mul(factor));
    round
        .into_iter()
        .find(|round| *round >= value)
        .unwrap_or(value)
}

/// Formats a round number briefly: 2500 is `2.5k`.
fn short(value: u64) -> String {
    let units = [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')];
    match units.into_iter().find(|(unit, _)| value >= *unit) {
        Some((unit, sign)) if value.is_multiple_of(unit) => format!("{}{sign}", value / unit),
        Some((unit, sign)) => format!("{}.{}{sign}", value / unit, value % unit * 10 / unit),
        None => value.to_string(),
    }
}

/// Returns the height of a value, rounded to hundredths.
#[expect(clippy::cast_precision_loss, reason = "a pixel is coarser")]
pub(super) fn height(value: u64, top: u64) -> f64 {
    (value as f64 * HEIGHT * 100.0 / top.max(1) as f64).round() / 100.0
}

impl Bar {
    fn new(column: &Column, series: &[&'static str], top: u64) -> Self {
        let mut bottom = HEIGHT;
        let mut parts = Vec::new();
        let mut told = Vec::new();
        for (number, &value) in column
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value > 0)
        {
            let height = height(value, top).max(LEAST).min(bottom);
            bottom -= height;
            parts.push(Part {
                series: number,
                y: (bottom * 100.0).round() / 100.0,
                height,
            });
            told.push(format!("{value} {}", series[number]));
        }
        let told = if told.is_empty() {
            "none".to_owned()
        } else {
            told.join(", ")
        };
        Self {
            title: format!("{}: {told}", column.name),
            parts,
        }
    }
}

impl Chart {
    pub(super) fn new(
        id: &'static str,
        title: &'static str,
        unit: String,
        series: &[&'static str],
        columns: Vec<Column>,
    ) -> Self {
        let sum = |column: &Column| column.values.iter().sum::<u64>();
        let top = round_up(columns.iter().map(sum).max().unwrap_or(0)).max(2);
        let bars = columns
            .iter()
            .map(|column| Bar::new(column, series, top))
            .collect();
        let ticks = [top, top / 2, 0].map(short);
        let total = columns.iter().map(sum).sum();
        Self {
            id,
            title,
            unit,
            series: series.into(),
            columns,
            bars,
            ticks,
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(columns: &[&[u64]]) -> Chart {
        let column = |values: &&[u64]| Column {
            name: "today".into(),
            label: None,
            href: String::new(),
            values: values.to_vec(),
        };
        Chart::new(
            "id",
            "title",
            String::new(),
            &["a", "b"],
            columns.iter().map(column).collect(),
        )
    }

    #[test]
    fn parts_of_a_bar_are_stacked_inside_the_chart() {
        let columns: [&[u64]; 5] = [
            &[30, 70],
            &[0, 1],
            &[1, 1_000_000],
            &[1_000_000, 1],
            &[u64::MAX / 4],
        ];
        for columns in [&columns[..2], &columns[..4], &columns[..]] {
            for bar in &chart(columns).bars {
                let mut bottom = HEIGHT;
                for part in &bar.parts {
                    assert!((part.y + part.height - bottom).abs() < 0.02, "{bar:?}");
                    assert!(part.y >= 0.0 && part.height > 0.0, "{bar:?}");
                    bottom = part.y;
                }
            }
        }
        let chart = chart(&columns[..2]);
        assert_eq!(
            (chart.bars[0].title.as_str(), chart.bars[1].title.as_str()),
            ("today: 30 a, 70 b", "today: 1 b")
        );
        assert_eq!(
            (chart.total, &chart.ticks),
            (101, &["100", "50", "0"].map(str::to_owned))
        );
    }

    #[test]
    fn an_empty_chart_is_no_division_by_zero() {
        assert!(chart(&[]).bars.is_empty());
        assert_eq!(chart(&[&[0]]).bars[0].title, "today: none");
    }

    #[test]
    fn scales_end_with_round_numbers() {
        for (value, round) in [
            (0, 1),
            (1, 1),
            (3, 5),
            (6, 10),
            (11, 20),
            (499, 500),
            (501, 1000),
        ] {
            assert_eq!(round_up(value), round);
        }
        for (value, text) in [
            (0, "0"),
            (500, "500"),
            (2_500, "2.5k"),
            (100_000, "100k"),
            (2_000_000, "2M"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
