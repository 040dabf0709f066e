//! Bar charts: the geometry of an SVG that a template draws.

use serde::Serialize;

/// The size of the drawing and the room for labels, in its own units.
const WIDTH: u64 = 380;
const HEIGHT: u64 = 200;
const LEFT: u64 = 44;
const TOP: u64 = 10;
const BOTTOM: u64 = 24;
/// The room for a label below the bars; a label with less is left out.
const LABEL: u64 = 64;
/// The gap between two bars, if there is room.
const GAP: u64 = 2;

/// One bar: its name, and the heights of its parts.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Column {
    pub name: String,
    /// The label below the bar; most bars have none.
    pub label: Option<String>,
    /// One value for each series.
    pub values: Vec<u64>,
}

/// A stacked bar chart.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    id: &'static str,
    title: &'static str,
    /// The names of the series, from the bottom.
    series: Vec<&'static str>,
    columns: Vec<Column>,
    parts: Vec<Part>,
    ticks: Vec<Tick>,
    labels: Vec<Label>,
    width: u64,
    height: u64,
    left: u64,
    total: u64,
}

#[derive(Debug, Serialize)]
struct Part {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    series: usize,
    title: String,
}

#[derive(Debug, Serialize)]
struct Tick {
    y: u64,
    text: String,
}

#[derive(Debug, Serialize)]
struct Label {
    x: u64,
    text: String,
}

/// Returns the least of 1, 2, 5, 10, 20, … that is not below the value.
fn round_up(value: u64) -> u64 {
    let mut step = 1;
    loop {
        for factor in [1, 2, 5] {
            let candidate = factor * step;
            if candidate >= value {
                return candidate;
            }
        }
        let Some(next) = step.checked_mul(10).filter(|next| next.checked_mul(5).is_some()) else {
            return value;
        };
        step = next;
    }
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

/// Returns the vertical position of a value, from the top.
fn level(value: u64, top: u64) -> u64 {
    let plot = HEIGHT - TOP - BOTTOM;
    let above = u128::from(plot) * u128::from(value) / u128::from(top.max(1));
    HEIGHT - BOTTOM - u64::try_from(above).unwrap_or(plot).min(plot)
}

impl Chart {
    pub(super) fn new(
        id: &'static str,
        title: &'static str,
        series: &[&'static str],
        columns: Vec<Column>,
    ) -> Self {
        let sum = |column: &Column| column.values.iter().sum::<u64>();
        let top = round_up(columns.iter().map(sum).max().unwrap_or(0));
        let slot = ((WIDTH - LEFT) / u64::try_from(columns.len().max(1)).unwrap_or(1)).max(1);
        let (mut parts, mut labels, mut x) = (Vec::new(), Vec::new(), LEFT);
        for column in &columns {
            let mut below = 0;
            for (number, &value) in column.values.iter().enumerate().filter(|(_, value)| **value > 0) {
                // The parts share their edges, so that rounding leaves no gap between them.
                let (from, to) = (level(below, top), level(below + value, top));
                below += value;
                let title = format!("{}: {value} {}", column.name, series[number]);
                let width = slot.saturating_sub(GAP).max(1);
                parts.push(Part { x, y: to, width, height: (from - to).max(1), series: number, title });
            }
            let fits = x + LABEL <= WIDTH;
            labels.extend(column.label.clone().filter(|_| fits).map(|text| Label { x, text }));
            x += slot;
        }
        let ticks =
            [0, top / 2, top].into_iter().enumerate().filter(|(number, value)| *number == 0 || *value > 0);
        let ticks = ticks.map(|(_, value)| Tick { y: level(value, top), text: short(value) }).collect();
        let total = columns.iter().map(sum).sum();
        Self {
            id,
            title,
            series: series.into(),
            columns,
            parts,
            ticks,
            labels,
            width: WIDTH,
            height: HEIGHT,
            left: LEFT,
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[u64]) -> Column {
        Column { name: "today".into(), label: None, values: values.into() }
    }

    #[test]
    fn the_parts_of_a_bar_stand_on_each_other_and_the_highest_fits() {
        let chart = Chart::new("id", "title", &["a", "b"], vec![column(&[30, 70]), column(&[0, 1])]);
        let [first, second, third] = &chart.parts[..] else { panic!("{:?}", chart.parts) };
        assert_eq!(second.y + second.height, first.y);
        assert_eq!((first.y + first.height, second.y), (HEIGHT - BOTTOM, TOP));
        assert_eq!((third.series, third.title.as_str()), (1, "today: 1 b"));
        assert!(third.height >= 1 && third.x > first.x && third.x + third.width <= WIDTH);
        assert_eq!((chart.total, chart.ticks.last().map(|tick| tick.text.as_str())), (101, Some("100")));
    }

    #[test]
    fn an_empty_chart_is_no_division_by_zero_and_a_huge_one_no_overflow() {
        assert!(Chart::new("id", "title", &["a"], Vec::new()).parts.is_empty());
        assert_eq!(Chart::new("id", "title", &["a"], vec![column(&[0])]).ticks.len(), 2);
        let huge = Chart::new("id", "title", &["a"], vec![column(&[u64::MAX / 4])]);
        assert!(huge.parts[0].y >= TOP && huge.parts[0].height > 0);
    }

    #[test]
    fn scales_end_with_round_numbers() {
        for (value, round) in [(0, 1), (1, 1), (3, 5), (6, 10), (11, 20), (499, 500), (501, 1000)] {
            assert_eq!(round_up(value), round);
        }
        for (value, text) in [(0, "0"), (500, "500"), (2_500, "2.5k"), (100_000, "100k"), (2_000_000, "2M")] {
            assert_eq!(short(value), text);
        }
    }
}
