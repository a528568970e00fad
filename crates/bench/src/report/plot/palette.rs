//! Colours, dashes and markers. Colours are CSS variables that the page sets for light and dark;
//! the drawing crate writes only literal ones, so each role is drawn in a literal colour that
//! stands for it and is exchanged afterwards.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use crate::report::document::{Plot, Series};

/// Colours in the page's style sheet, `--s0` to `--s7`: after Okabe and Ito, "Color Universal
/// Design", 2008.
pub const COLOURS: usize = 8;

/// Dash patterns in units of the drawing, one per colour.
const DASHES: [&str; COLOURS] =
    ["none", "16 8", "5 6", "18 6 5 6", "34 8", "10 12", "18 6 5 6 5 6", "26 6 12 6"];
const CURVE_DASH: &str = "3 7";

/// What a literal colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The line of a series.
    Line = 1,
    /// A marker.
    Fill = 2,
    /// A computed curve.
    Curve = 3,
    /// The spread of a point.
    Whisker = 4,
    /// Labels.
    Ink = 5,
    /// Grid lines.
    Grid = 6,
    /// The axes.
    Axis = 7,
    /// A bar.
    Bar = 9,
}

/// The literal colour for a role and a series' number.
pub fn literal(role: Role, slot: usize) -> RGBColor {
    RGBColor(0, role as u8, (slot % 256) as u8)
}

/// Exchanges literal colours in SVG attributes for variables, with what belongs to their role.
pub fn recolour(svg: &str) -> String {
    let mut text = String::with_capacity(svg.len() + svg.len() / 8);
    let mut rest = svg;
    while let Some(at) = rest.find("\"#00") {
        let (role, slot) = (rest.get(at + 4..at + 6), rest.get(at + 6..at + 8));
        let known = role.zip(slot).and_then(|(role, slot)| {
            let slot = usize::from_str_radix(slot, 16).ok()?;
            attributes(u8::from_str_radix(role, 16).ok()?, slot)
        });
        let (kept, taken) = if known.is_some() { (at, at + 9) } else { (at + 4, at + 4) };
        text.push_str(&rest[..kept]);
        text.push_str(&known.unwrap_or_default());
        rest = &rest[taken..];
    }
    text + rest
}

/// The quoted variable, and further attributes after it.
fn attributes(role: u8, slot: usize) -> Option<String> {
    let colour = slot % COLOURS;
    let dashed = |dash: &str| {
        format!("\"var(--s{colour})\" stroke-linejoin=\"round\" stroke-dasharray=\"{dash}\"")
    };
    Some(match role {
        1 => dashed(dash(slot)),
        2 => format!("\"var(--s{colour})\" stroke=\"var(--paper)\" stroke-width=\"2\""),
        3 => dashed(CURVE_DASH),
        5 => "\"var(--ink)\"".to_owned(),
        6 => "\"var(--grid)\"".to_owned(),
        7 => "\"var(--axis)\"".to_owned(),
        4 | 9 => format!("\"var(--s{colour})\""),
        _ => return None,
    })
}

fn dash(slot: usize) -> &'static str {
    // After one round of colours the dashes shift, so that no two of 64 series look alike.
    DASHES[(slot + slot / COLOURS) % DASHES.len()]
}

/// The outline of a series' marker around 0, 0.
pub fn marker(slot: usize, radius: i32) -> Vec<(i32, i32)> {
    let r = f64::from(radius);
    let turn = |corners: u32, from: f64, radius: f64| -> Vec<(i32, i32)> {
        let angle = |i: u32| from + std::f64::consts::TAU * f64::from(i) / f64::from(corners);
        let corner =
            |a: f64| ((radius * a.sin()).round() as i32, (-radius * a.cos()).round() as i32);
        (0..corners).map(angle).map(corner).collect()
    };
    let half = std::f64::consts::PI;
    // They shift like the dashes.
    match (slot + slot / COLOURS) % COLOURS {
        0 => turn(16, 0.0, r),
        1 => turn(4, half / 4.0, 1.25 * r),
        2 => turn(3, 0.0, 1.35 * r),
        3 => turn(4, 0.0, 1.35 * r),
        4 => turn(3, half, 1.35 * r),
        5 => cross(radius, false),
        6 => cross(radius, true),
        _ => turn(5, 0.0, 1.2 * r),
    }
}

/// A plus, or turned by an eighth.
fn cross(radius: i32, turned: bool) -> Vec<(i32, i32)> {
    let (long, arm) = (f64::from(radius) * 1.3, f64::from(radius) * 0.45);
    let quarter = [(-arm, -long), (arm, -long), (arm, -arm)];
    let turn = if turned { std::f64::consts::FRAC_PI_4 } else { 0.0 };
    let mut corners = Vec::new();
    for side in 0..4 {
        let (sin, cos) = (turn + std::f64::consts::FRAC_PI_2 * f64::from(side)).sin_cos();
        for (x, y) in quarter {
            corners.push(((x * cos - y * sin).round() as i32, (x * sin + y * cos).round() as i32));
        }
    }
    corners
}

/// Numbers of series by name: the same name looks the same in the whole document. What follows a
/// comma is a part: parts of a name have its colour, with dashes and markers of their own.
#[derive(Debug, Default)]
pub struct Slots {
    names: Vec<String>,
    parts: Vec<String>,
}

impl Slots {
    /// Names in the order in which they first appear, but `servers` before all others: so a server
    /// has the same colour whatever else is drawn.
    pub fn of<'a>(servers: &[&str], plots: impl Iterator<Item = &'a Plot>) -> Self {
        let mut slots = Self::default();
        let owners: Vec<_> = plots.flat_map(|plot| &plot.series).map(owner).collect();
        let of_servers = owners.iter().filter(|(name, _)| servers.contains(name));
        for (name, part) in of_servers.chain(&owners) {
            add(&mut slots.names, name);
            if let Some(part) = part {
                add(&mut slots.parts, part);
            }
        }
        slots
    }

    /// The number of a series. Names have the first ones, then come whole rounds of colours, one
    /// for each part.
    pub fn slot(&self, series: &Series) -> usize {
        let (name, part) = owner(series);
        let at = |list: &[String], one: &str| list.iter().position(|known| known == one);
        let round = self.names.len().div_ceil(COLOURS) * COLOURS;
        let rounds = part.and_then(|part| at(&self.parts, part)).map_or(0, |part| part + 1);
        at(&self.names, name).unwrap_or(0) + round * rounds
    }
}

fn add(list: &mut Vec<String>, one: &str) {
    if !list.iter().any(|known| known == one) {
        list.push(one.to_owned());
    }
}

/// Whose series it is, and which part of it.
fn owner(series: &Series) -> (&str, Option<&str>) {
    let name = series.curve_of.as_deref().unwrap_or(&series.name);
    name.split_once(", ").map_or((name, None), |(name, part)| (name, Some(part)))
}

/// A small drawing of how a series looks, for the legend.
pub fn swatch(slot: usize, bar: bool, curve: bool, marked: bool) -> String {
    let colour = slot % COLOURS;
    let mut svg = String::from("<svg class=\"swatch\" viewBox=\"0 0 72 28\" aria-hidden=\"true\">");
    if bar {
        let _ = write!(
            svg,
            "<rect x=\"18\" y=\"2\" width=\"36\" height=\"24\" fill=\"var(--s{colour})\"/>"
        );
    } else {
        let dash = if curve { CURVE_DASH } else { dash(slot) };
        let _ = write!(
            svg,
            "<line x1=\"0\" y1=\"14\" x2=\"72\" y2=\"14\" stroke=\"var(--s{colour})\" \
                 stroke-width=\"4\" stroke-dasharray=\"{dash}\"/>"
        );
    }
    if marked && !bar && !curve {
        let corners: Vec<String> =
            marker(slot, 9).iter().map(|(x, y)| format!("{},{}", x + 36, y + 14)).collect();
        let points = corners.join(" ");
        let _ = write!(
            svg,
            "<polygon points=\"{points}\" fill=\"var(--s{colour})\" stroke=\"var(--paper)\" stroke-width=\"2\"/>"
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::Kind;

    #[test]
    fn literal_colours_are_replaced_by_variables() {
        let svg =
            "<line stroke=\"#000102\"/><polygon fill=\"#000209\"/><text fill=\"#000500\">\"#0A\n";
        let want = "<line stroke=\"var(--s2)\" stroke-linejoin=\"round\" stroke-dasharray=\"5 6\"/>\
                    <polygon fill=\"var(--s1)\" stroke=\"var(--paper)\" stroke-width=\"2\"/>\
                    <text fill=\"var(--ink)\">\"#0A\n";
        assert_eq!(recolour(svg), want);
        assert_eq!(recolour("fill=\"#00FF00\" fill=\"#00\""), "fill=\"#00FF00\" fill=\"#00\"");
    }

    #[test]
    fn adjacent_series_differ_in_marker_and_dash() {
        for slot in 0..COLOURS {
            assert_ne!(marker(slot, 9), marker(slot + 1, 9));
            assert_ne!(dash(slot), dash(slot + 1));
            assert_ne!(dash(slot), dash(slot + COLOURS), "the same colour again");
        }
    }

    #[test]
    fn a_series_name_keeps_its_slot_across_plots() {
        let first = Plot::default().with(Series::new("a", vec![])).with(Series::new("b", vec![]));
        let second = Plot::default()
            .with(Series::curve("fit of b", "b", vec![]))
            .with(Series::new("c", vec![]));
        let slots = Slots::of(&[], [&first, &second].into_iter());
        assert_eq!([0, 1].map(|at| slots.slot(&second.series[at])), [1, 2]);
        assert_eq!(slots.slot(&first.series[0]), 0);
        let parts = Plot::default()
            .with(Series::new("b, median", vec![]))
            .with(Series::new("b, mean", vec![]))
            .with(Series::new("c, mean", vec![]));
        let slots = Slots::of(&[], [&first, &second, &parts].into_iter());
        let slots = [0, 1, 2].map(|at| slots.slot(&parts.series[at]));
        assert_eq!(slots.map(|slot| slot % COLOURS), [1, 1, 2], "the colour of the name");
        assert_ne!(dash(slots[0]), dash(slots[1]));
    }

    /// In a report whose first plot had bars "as it is", the first server was orange, and blue in
    /// all other reports.
    #[test]
    fn servers_have_the_first_colours() {
        let bars = Plot::new(Kind::Bar, "t", "target", "rate")
            .with(Series::new("as it is", vec![]))
            .with(Series::new("acknowledged at once", vec![]));
        let lines = Plot::default()
            .with(Series::new("sheafdb, p99", vec![]))
            .with(Series::new("redis-server", vec![]));
        let servers = ["redis-server", "not drawn", "sheafdb"];
        let slots = Slots::of(&servers, [&bars, &lines].into_iter());
        let colour = |series| slots.slot(series) % COLOURS;
        assert_eq!([0, 1].map(|at| colour(&lines.series[at])), [0, 1]);
        assert_eq!([0, 1].map(|at| colour(&bars.series[at])), [2, 3]);
    }
}
