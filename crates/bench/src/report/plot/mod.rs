//! Plots as SVG. `plotters` draws; colours are then made variables of the page.

mod axis;
mod bars;
mod canvas;
mod palette;

pub use axis::tick_label;
pub use canvas::{SIZES, Size};
pub use palette::{Slots, swatch};

use axis::Axis;
use bars::{draw_bars, names_in_rows};
use canvas::{
    Backend, Chart, Drawn, LABEL_GAP, LETTER_WIDTH, LINE, Layout, MARGIN, MARGINS, VERTICAL_TICKS,
    X_LABELS, draw_whisker, scale, stroke, text,
};
use palette::{Role, literal, marker, recolour};
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{EmptyElement, PathElement, Polygon, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::document::{Kind, Plot, Series};
use super::escape::escape;

const MARKER: i32 = 9;
/// A line of more points has a marker on some only: all would hide it.
const MARKED_MAX: usize = 40;
/// So many then.
const MARKS: usize = 8;

/// A plot as an SVG element, and what its axes show.
pub struct Drawing<'a> {
    /// The element.
    pub svg: String,
    /// What the vertical axis shows.
    pub vertical: &'a str,
    /// What the horizontal axis shows.
    pub horizontal: &'a str,
}

/// The plot drawn in one size; `None` if no point can be shown.
pub fn drawing<'a>(plot: &'a Plot, slots: &Slots, size: Size) -> Option<Drawing<'a>> {
    let layout = layout(plot, size)?;
    let (width, height) = (size.width, layout.height);
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, (width, height)).into_drawing_area();
        draw(&root, &layout, slots).expect("a string takes every drawing");
    }
    // The root's own attributes fix a size; the page's width decides instead.
    let body = drawing.split_once('>').map(|(_, rest)| rest).unwrap_or_default();
    let body = recolour(body).replace(" font-family=\"sans-serif\"", "");
    let title = escape(&plot.title);
    let class = if layout.is_in_rows { "rows" } else { "columns" };
    let svg = format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">{body}"
    );
    let (mut vertical, mut horizontal) = (plot.y_label.as_str(), plot.x_label.as_str());
    if layout.is_in_rows {
        (vertical, horizontal) = (horizontal, vertical);
    }
    Some(Drawing { svg, vertical, horizontal })
}

/// True if points of this series get markers.
pub fn is_marked(plot: &Plot, series: &Series) -> bool {
    plot.kind != Kind::Bar && series.curve_of.is_none()
}

/// The points that get markers: all of a short series, some of a long one, others of each series.
fn marked(points: &[(f64, f64)], slot: usize) -> Vec<(f64, f64)> {
    if points.len() <= MARKED_MAX {
        return points.to_vec();
    }
    let every = points.len() / MARKS;
    points.iter().skip(slot * every / 3 % every).step_by(every).copied().collect()
}

/// How a plot is drawn; `None` if no point can be shown.
fn layout(plot: &Plot, size: Size) -> Option<Layout> {
    let mut plot = plot.clone();
    let bars = plot.kind == Kind::Bar;
    let can = |v: f64, log: bool| v.is_finite() && (!log || v > 0.0);
    for series in &mut plot.series {
        let keep: Vec<bool> = series
            .points
            .iter()
            .map(|(x, y)| can(*x, plot.x_log && !bars) && can(*y, plot.y_log))
            .collect();
        series.keep(&keep);
    }
    let values = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        plot.series.iter().flat_map(|s| s.points.iter().map(of)).collect()
    };
    let (xs, mut ys) = (values(|p| p.0), values(|p| p.1));
    if xs.is_empty() {
        return None;
    }
    ys.extend(plot.series.iter().flat_map(|s| s.spread.iter().flat_map(|(l, h)| [*l, *h])));
    if bars {
        return Some(bars::layout(plot, xs, &ys, size));
    }
    let horizontal = Axis::over(&xs, scale(plot.x_log), false, size.ticks);
    let vertical = Axis::over(&ys, scale(plot.y_log), true, VERTICAL_TICKS);
    Some(Layout { plot, horizontal, vertical, height: size.height, is_in_rows: false })
}

fn draw<'a>(root: &DrawingArea<Backend<'a>, Shift>, layout: &Layout, slots: &Slots) -> Drawn<'a> {
    let Layout { plot, horizontal, vertical, is_in_rows, .. } = layout;
    let ink = |h, v| text(Role::Ink, Pos::new(h, v));
    let left = (vertical.label_chars() as f64 * LETTER_WIDTH + 34.0).max(80.0) as i32;
    // The crate's own labels have one line.
    let below = horizontal.names_in_lines();
    let beside = vertical.names_in_lines();
    let mut chart = ChartBuilder::on(root)
        .margin_top(MARGINS.0)
        .margin_right(MARGIN)
        .margin_bottom(MARGINS.1)
        .y_label_area_size(left)
        .x_label_area_size(X_LABELS + LINE * (horizontal.label_lines() - 1))
        .build_cartesian_2d(horizontal.clone(), vertical.clone())?;
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0)
        .bold_line_style(stroke(Role::Grid, 0, 2))
        .axis_style(stroke(Role::Axis, 0, 2))
        .x_label_style(ink(HPos::Center, VPos::Top))
        .y_label_style(ink(HPos::Right, VPos::Center));
    if *is_in_rows {
        mesh.disable_y_mesh();
    } else if plot.kind == Kind::Bar {
        mesh.disable_x_mesh();
    }
    let no_label = |_: &f64| String::new();
    if below.is_some() {
        mesh.x_label_formatter(&no_label);
    }
    if beside.is_some() {
        mesh.y_label_formatter(&no_label);
    }
    mesh.draw()?;
    for (at, name) in below.unwrap_or_default() {
        let (x, y) = chart.backend_coord(&(at, vertical.low()));
        for (line, number) in name.lines().zip(0..) {
            let place = (x, y + LABEL_GAP + LINE * number);
            root.draw(&Text::new(line, place, ink(HPos::Center, VPos::Top)))?;
        }
    }
    names_in_rows(root, &chart, &beside.unwrap_or_default(), horizontal.low())?;
    let bars = plot.series.len();
    for (at, series) in plot.series.iter().enumerate() {
        let slot = slots.slot(series);
        if plot.kind == Kind::Bar {
            draw_bars(&mut chart, series, slot, (at, bars), *is_in_rows)?;
        } else {
            draw_line(&mut chart, plot, series, slot)?;
        }
    }
    root.present()
}

fn draw_line<'b>(
    chart: &mut Chart<'_, 'b>,
    plot: &Plot,
    series: &Series,
    slot: usize,
) -> Drawn<'b> {
    let curve = series.curve_of.is_some();
    let style = if curve { stroke(Role::Curve, slot, 4) } else { stroke(Role::Line, slot, 4) };
    let path = match plot.kind {
        Kind::Step => stairs(&series.points),
        Kind::Line | Kind::Bar => series.points.clone(),
    };
    chart.draw_series([PathElement::new(path, style)])?;
    for ((x, _), (low, high)) in series.points.iter().zip(&series.spread) {
        draw_whisker(chart, *x, (*low, *high), slot, false)?;
    }
    if is_marked(plot, series) {
        let fill = literal(Role::Fill, slot).filled();
        let shape =
            |at: &(f64, f64)| EmptyElement::at(*at) + Polygon::new(marker(slot, MARKER), fill);
        chart.draw_series(marked(&series.points, slot).iter().map(shape))?;
    }
    Ok(())
}

/// A value holds until the next.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut path: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len());
    for (x, y) in points {
        if let Some((_, before)) = path.last().copied() {
            path.push((*x, before));
        }
        path.push((*x, *y));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(plot: &Plot) -> String {
        let slots = Slots::of(&[], [plot].into_iter());
        let svg = drawing(plot, &slots, SIZES[0]).expect("there are points").svg;
        let literal = svg.find("\"#").map(|at| &svg[at.saturating_sub(60)..at + 12]);
        assert_eq!(literal, None, "a colour that is no variable");
        svg
    }

    #[test]
    fn ticks_and_series_use_colour_variables() {
        let plot = Plot::new(Kind::Line, "Throughput <&>", "connections", "requests/s")
            .log(true, false)
            .with(Series::new("a", vec![(1.0, 10_000.0), (10.0, 70_000.0), (100.0, 90_000.0)]))
            .with(Series::new("b", vec![(1.0, 12_000.0), (100.0, 60_000.0)]));
        let svg = drawn(&plot);
        for part in [">\n10\n", "80k", "var(--s0)", "var(--s1)"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(svg.contains("aria-label=\"Throughput &lt;&amp;&gt;\""));
        assert_eq!(svg.matches("<polygon").count(), 5, "one marker a point");
    }

    #[test]
    fn points_outside_an_axis_are_omitted() {
        let plot = Plot::new(Kind::Line, "t", "x", "y")
            .log(true, true)
            .with(Series::new("a", vec![(0.0, 1.0), (1.0, 0.0), (2.0, f64::NAN), (3.0, 4.0)]));
        assert_eq!(drawn(&plot).matches("<polygon").count(), 1);
        let empty = Plot::new(Kind::Line, "t", "x", "y").with(Series::new("a", vec![]));
        assert!(drawing(&empty, &Slots::default(), SIZES[0]).is_none());
    }

    #[test]
    fn bars_are_drawn_in_groups() {
        let mut plot = Plot::new(Kind::Bar, "t", "events", "share")
            .with(Series::new("a", vec![(1.0, 0.7), (32.0, 0.3)]))
            .with(Series::new("b", vec![(2.0, 1.0)]));
        let text = drawn(&plot);
        assert_eq!(text.matches("<rect").count(), 3, "{text}");
        assert!(text.contains(">\n32\n"), "{text}");
        plot.categories = ["no", "one", "two<"].map(str::to_owned).to_vec();
        assert!(drawn(&plot).contains("two&lt;"));
    }

    #[test]
    fn stairs_keep_their_value_until_the_next_point() {
        assert_eq!(stairs(&[(1.0, 0.1), (2.0, 0.5)]), [(1.0, 0.1), (2.0, 0.1), (2.0, 0.5)]);
    }

    #[test]
    fn long_lines_have_a_bounded_number_of_markers() {
        let points = |n: u32| (1..=n).map(|i| (f64::from(i), 1.0)).collect::<Vec<_>>();
        assert_eq!(marked(&points(40), 3).len(), 40);
        assert!((MARKS - 1..=MARKS + 1).contains(&marked(&points(1000), 0).len()));
        assert_ne!(marked(&points(41), 0)[0], marked(&points(41), 1)[0]);
    }
}
