//! Plots as SVG. Each has a background, so that it is readable on any page.

use std::fmt::Write;

/// Colours of series, which colour-blind readers can distinguish.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#8a5a9e"];
/// The drawing of a panel within its labels.
const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;
const PANEL: (f64, f64) = (330.0, 220.0);
const BAR: f64 = 26.0;

/// Values of one name.
pub type Series<'a> = (&'a str, Vec<f64>);

/// A panel of lines over categories. The title contains the unit.
pub struct Lines<'a> {
    pub title: &'a str,
    pub categories: Vec<String>,
    pub series: Vec<Series<'a>>,
}

/// Panels side by side.
pub fn lines(panels: &[Lines]) -> String {
    let mut body = String::new();
    let mut width = 0.0;
    for panel in panels {
        width += 20.0;
        panel.draw(&mut body, width + LEFT);
        width += LEFT + PANEL.0 + 20.0;
    }
    page(width, TOP + PANEL.1 + 50.0, &body)
}

impl Lines<'_> {
    fn draw(&self, body: &mut String, left: f64) {
        let step = step(
            self.series
                .iter()
                .flat_map(|(_, values)| values)
                .copied()
                .fold(0.0, f64::max),
        );
        let highest = step * 5.0;
        let bottom = TOP + PANEL.1;
        let right = left + PANEL.0;
        let y = |value: f64| bottom - value / highest * PANEL.1;
        let x = |place: usize| left + (at(place) + 0.5) * PANEL.0 / at(self.categories.len());
        text(body, left - 60.0, 24.0, "start", self.title);
        for tick in 0..=5 {
            let value = f64::from(tick) * step;
            let y = y(value);
            let _ = write!(
                body,
                r##"<path d="M{left} {y:.1}H{right}" stroke="#d8d8d8"/>"##
            );
            text(body, left - 8.0, y + 4.0, "end", &number(value));
        }
        for (place, category) in self.categories.iter().enumerate() {
            text(body, x(place), bottom + 20.0, "middle", category);
        }
        let mut name_at = left;
        for ((name, values), colour) in self.series.iter().zip(COLOURS) {
            let points: Vec<_> = values
                .iter()
                .enumerate()
                .map(|(place, value)| format!("{:.1},{:.1}", x(place), y(*value)))
                .collect();
            let _ = write!(
                body,
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
                points.join(" ")
            );
            for (point, value) in points.iter().zip(values) {
                let (x, y) = point.split_once(',').unwrap_or_default();
                let _ = write!(
                    body,
                    r#"<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"><title>{}</title></circle>"#,
                    number(*value)
                );
            }
            name_at = legend(body, name_at, 44.0, colour, name);
        }
    }
}

/// Horizontal bars, stacked from the series' values.
pub fn bars(title: &str, series: &[&str], rows: &[(String, Vec<f64>)]) -> String {
    let left = 250.0;
    let width = 460.0;
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let step = step(
        rows.iter()
            .map(|(_, values)| sum(values))
            .fold(0.0, f64::max),
    );
    let bottom = TOP + BAR * at(rows.len());
    let mut body = String::new();
    text(&mut body, 20.0, 24.0, "start", title);
    let mut name_at = 20.0;
    for (name, colour) in series.iter().zip(COLOURS) {
        name_at = legend(&mut body, name_at, 44.0, colour, name);
    }
    for tick in 0..=5 {
        let x = left + f64::from(tick) * width / 5.0;
        let _ = write!(
            body,
            r##"<path d="M{x:.1} {TOP}V{bottom}" stroke="#d8d8d8"/>"##
        );
        text(
            &mut body,
            x,
            bottom + 18.0,
            "middle",
            &number(f64::from(tick) * step),
        );
    }
    for (place, (name, values)) in rows.iter().enumerate() {
        let y = TOP + BAR * at(place);
        text(&mut body, left - 10.0, y + 17.0, "end", name);
        let mut x = left;
        for (value, colour) in values.iter().zip(COLOURS) {
            let length = value / (step * 5.0) * width;
            let _ = write!(
                body,
                r#"<rect x="{x:.1}" y="{:.1}" width="{length:.1}" height="18" fill="{colour}"/>"#,
                y + 4.0
            );
            x += length;
        }
        text(&mut body, x + 6.0, y + 17.0, "start", &number(sum(values)));
    }
    page(left + width + 70.0, bottom + 34.0, &body)
}

/// A key of the colours; returns the place of the next.
fn legend(body: &mut String, x: f64, y: f64, colour: &str, name: &str) -> f64 {
    let _ = write!(
        body,
        r#"<rect x="{x:.1}" y="{:.1}" width="12" height="12" fill="{colour}"/>"#,
        y - 10.0
    );
    text(body, x + 17.0, y, "start", name);
    x + 35.0 + 7.0 * at(name.len())
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = write!(
        body,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
    );
}

fn page(width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}\n</svg>\n",
        body.replace("><", ">\n<")
    )
}

/// The step of an axis with at most five steps: a round number.
fn step(highest: f64) -> f64 {
    let fifth = (highest / 5.0).max(1e-6);
    let power = 10_f64.powf(fifth.log10().floor());
    let factors = [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    power
        * factors
            .into_iter()
            .find(|factor| factor * power >= fifth)
            .unwrap_or(10.0)
}

/// A number with its significant places, and separated thousands.
pub fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => {
            let text = format!("{value:.0}");
            let (head, tail) = text.split_at(text.len() - 3);
            let head = head
                .parse()
                .map_or_else(|_| head.to_owned(), number_of_thousands);
            format!("{head},{tail}")
        }
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}

fn number_of_thousands(thousands: f64) -> String {
    if thousands < 1000.0 {
        format!("{thousands:.0}")
    } else {
        number(thousands)
    }
}

/// A place as a coordinate.
fn at(place: usize) -> f64 {
    u32::try_from(place).map_or(0.0, f64::from)
}
