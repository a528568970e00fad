//! Bars in groups. The groups stand side by side if their names have room below them, else one
//! below the other.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Axis, tick_label};
use super::canvas::{
    Backend, Chart, Drawn, LABEL_GAP, LETTER_WIDTH, LINE, Layout, MARGINS, Size, VERTICAL_TICKS,
    X_LABELS, draw_whisker, scale, text,
};
use super::palette::{Role, literal};
use crate::report::document::{Plot, Series};
use crate::report::escape::plain;

/// Share of a group's width that bars fill.
const BARS: f64 = 0.8;
/// Share of the drawing's width that names below the groups can use.
const NAMES: f64 = 0.85;
/// Letters of a line of a name beside its row.
const ROW_CHARS: usize = 22;
/// Height of a bar in a row.
const ROW_BAR: u32 = 8;
/// Space between the names of two rows.
const ROW_GAP: u32 = 12;

/// How a plot of bars is drawn: `xs` are the x of all its points, `values` what its axis has to
/// show. Numbers the groups: x becomes 0, 1, 2 ...
pub fn layout(mut plot: Plot, mut xs: Vec<f64>, values: &[f64], size: Size) -> Layout {
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let name = |x: &f64| plot.categories.get(*x as usize).map(|name| plain(name));
    let names: Vec<String> = xs.iter().map(|x| name(x).unwrap_or_else(|| tick_label(*x))).collect();
    for point in plot.series.iter_mut().flat_map(|s| &mut s.points) {
        point.0 = xs.iter().position(|x| x.total_cmp(&point.0).is_eq()).unwrap_or(0) as f64;
    }
    let axis = |count| Axis::over(values, scale(plot.y_log), true, count);
    let chars = (NAMES * f64::from(size.width) / names.len() as f64 / LETTER_WIDTH) as usize;
    let has_room =
        names.iter().flat_map(|name| name.split(' ')).all(|w| w.chars().count() <= chars);
    let figures = plot.categories.is_empty();
    if figures || has_room {
        let groups = if figures { Axis::figures } else { Axis::groups };
        let (horizontal, vertical) = (groups(&names, chars), axis(VERTICAL_TICKS));
        return Layout { plot, horizontal, vertical, height: size.height, is_in_rows: false };
    }
    let vertical = Axis::groups(&names, ROW_CHARS).downward();
    let bars = f64::from(ROW_BAR) * plot.series.len() as f64 / BARS;
    let row = (bars as u32).max(LINE as u32 * vertical.label_lines() as u32 + ROW_GAP);
    let height = MARGINS.0 + MARGINS.1 + X_LABELS as u32 + row * names.len() as u32;
    let horizontal = axis(size.ticks);
    Layout { plot, horizontal, vertical, height, is_in_rows: true }
}

/// Draws the names of rows beside the vertical axis, each line of a name below the one before.
pub fn names_in_rows<'b>(
    root: &DrawingArea<Backend<'b>, Shift>,
    chart: &Chart<'_, 'b>,
    names: &[(f64, String)],
    axis_at: f64,
) -> Drawn<'b> {
    let style = text(Role::Ink, Pos::new(HPos::Right, VPos::Center));
    for (at, name) in names {
        let (x, y) = chart.backend_coord(&(axis_at, *at));
        let first = y - LINE * (name.lines().count() as i32 - 1) / 2;
        for (line, number) in name.lines().zip(0..) {
            root.draw(&Text::new(line, (x - LABEL_GAP, first + LINE * number), style.clone()))?;
        }
    }
    Ok(())
}

/// Draws series number `at` of `of`.
pub fn draw_bars<'b>(
    chart: &mut Chart<'_, 'b>,
    series: &Series,
    slot: usize,
    (at, of): (usize, usize),
    is_in_rows: bool,
) -> Drawn<'b> {
    let coord = chart.as_coord_spec();
    let values = if is_in_rows { coord.x_spec() } else { coord.y_spec() };
    let floor = values.low().max(0.0);
    let width = BARS / of as f64;
    let left = (1.0 - BARS) / 2.0 + at as f64 * width;
    let fill = literal(Role::Bar, slot).filled();
    let corner = |x: f64, y: f64| if is_in_rows { (y, x) } else { (x, y) };
    let corners = |(x, y): &(f64, f64)| [corner(x + left, *y), corner(x + left + width, floor)];
    chart.draw_series(series.points.iter().map(|p| Rectangle::new(corners(p), fill)))?;
    for ((x, _), spread) in series.points.iter().zip(&series.spread) {
        draw_whisker(chart, x + left + width / 2.0, *spread, slot, is_in_rows)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Kind;
    use crate::report::plot::{SIZES, Slots, drawing};

    /// Letters, and the box of each text in a drawing: left, top, right, bottom.
    fn texts(svg: &str) -> Vec<(String, [f64; 4])> {
        let tree = roxmltree::Document::parse(svg).expect("the drawing is well-formed");
        let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
        texts
            .filter_map(|node| {
                // An empty text stands for a label which is drawn elsewhere.
                let letters =
                    node.text().map(str::trim).filter(|text| !text.is_empty())?.to_owned();
                let number =
                    |name| node.attribute(name).and_then(|n| n.parse().ok()).unwrap_or(0.0);
                let (x, y): (f64, f64) = (number("x"), number("y"));
                let width = LETTER_WIDTH * letters.chars().count() as f64;
                let left = match node.attribute("text-anchor") {
                    Some("end") => x - width,
                    Some("middle") => x - width / 2.0,
                    _ => x,
                };
                Some((letters, [left, y, left + width, y + 20.0]))
            })
            .collect()
    }

    fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
        a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
    }

    /// The plot of CPU per message named only some of its 14 groups on a telephone.
    #[test]
    fn every_group_is_named_in_every_size() {
        let all = [
            "base",
            "c=2",
            "c=16",
            "1036 B",
            "b=1",
            "Nagle",
            "b=1 Nagle",
            "looks Nagle",
            "c=2 looks Nagle",
            "c=16 looks Nagle",
            "64 KiB",
            "waits",
            "c=2 waits",
            "c=16 waits",
            "model:flush-per-reply",
            "valkey-server",
            "the same with busy polling on both sides",
        ];
        for count in 1..=all.len() {
            let mut plot = Plot::new(Kind::Bar, "t", "group", "microseconds");
            plot.categories = all[..count].iter().map(|&name| name.to_owned()).collect();
            for series in ["a", "b", "c"] {
                let points = (0..count).map(|at| (at as f64, 0.1 + at as f64)).collect();
                plot = plot.with(Series::new(series, points));
            }
            for size in SIZES {
                let drawn = drawing(&plot, &Slots::default(), size).expect("there are points");
                let texts = texts(&drawn.svg);
                let joined: Vec<&str> = texts.iter().map(|(letters, _)| letters.as_str()).collect();
                let joined = format!(" {} ", joined.join(" "));
                for name in &all[..count] {
                    assert!(joined.contains(&format!(" {name} ")), "{name} of {count}: {joined}");
                }
                for (at, (letters, place)) in texts.iter().enumerate() {
                    let inside = place[0] >= 0.0 && place[2] <= f64::from(size.width);
                    assert!(inside, "{letters} of {count} at {place:?}");
                    let other = texts[..at].iter().find(|(_, other)| overlap(place, other));
                    assert_eq!(other, None, "behind {letters} of {count} at {place:?}");
                }
            }
        }
    }

    /// Attributes of the bars in a drawing.
    fn bars(svg: &str, names: [&str; 2]) -> Vec<[f64; 2]> {
        let tree = roxmltree::Document::parse(svg).expect("the drawing is well-formed");
        let bars = tree.descendants().filter(|node| node.has_tag_name("rect"));
        let number = |node: roxmltree::Node<'_, '_>, name| {
            node.attribute(name).and_then(|n| n.parse().ok()).expect("a number")
        };
        bars.map(|node| names.map(|name| number(node, name))).collect()
    }

    #[test]
    fn long_names_have_rows_with_bars_to_the_right() {
        let mut plot = Plot::new(Kind::Bar, "t", "group", "microseconds");
        plot.categories = ["short", "other"].map(str::to_owned).to_vec();
        let spread = vec![(0.5, 2.0), (3.0, 5.0)];
        let series = Series::new("a", vec![(0.0, 1.0), (1.0, 4.0)]);
        plot = plot.with(Series { spread, ..series });
        let drawn = |plot: &Plot| {
            let drawn = drawing(plot, &Slots::default(), SIZES[1]).expect("there are points");
            (drawn.svg, drawn.vertical.to_owned(), drawn.horizontal.to_owned())
        };
        let (svg, vertical, horizontal) = drawn(&plot);
        let [low, high] = bars(&svg, ["x", "height"])[..] else { panic!("two bars") };
        assert!(low[0] < high[0] && (high[1] / low[1] - 4.0).abs() < 0.1, "{low:?} {high:?}");
        assert_eq!((vertical.as_str(), horizontal.as_str()), ("microseconds", "group"));
        plot.categories = vec!["a-name-longer-than-its-column".to_owned(), "other".to_owned()];
        let (svg, vertical, horizontal) = drawn(&plot);
        let [low, high] = bars(&svg, ["y", "width"])[..] else { panic!("two bars") };
        assert!(low[0] < high[0] && (high[1] / low[1] - 4.0).abs() < 0.1, "{low:?} {high:?}");
        assert_eq!((vertical.as_str(), horizontal.as_str()), ("group", "microseconds"));
        let shown: Vec<String> = texts(&svg).into_iter().map(|(letters, _)| letters).collect();
        assert!(shown.contains(&"a-name-longer-than-it…".to_owned()), "{shown:?}");
    }
}
