//! What all drawings share: sizes, the layout of a plot, styles, and whiskers.

use plotters::backend::SVGBackend;
use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::element::{EmptyElement, PathElement};
use plotters::style::text_anchor::Pos;
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};

use super::axis::{Axis, Scale};
use super::palette::{Role, literal};
use crate::report::document::Plot;

/// A drawing for a kind of screen, in units of about half a pixel each, because the crate places
/// everything at whole ones.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The class of the drawing, by which the page shows it or does not.
    pub class: &'static str,
    /// Units.
    pub width: u32,
    /// Units; bars in rows have a height of their own.
    pub height: u32,
    /// About so many ticks on the x axis.
    pub ticks: usize,
}

/// Each plot is drawn in both sizes, so that labels can be read on a telephone too.
pub const SIZES: [Size; 2] = [
    Size { class: "plot", width: 1600, height: 690, ticks: 9 },
    Size { class: "plot narrow", width: 800, height: 570, ticks: 4 },
];

/// Height of the letters of labels.
const LETTER: f64 = 25.0;
/// Their mean width.
pub const LETTER_WIDTH: f64 = 0.58 * LETTER;
/// The crate divides sizes by this before it writes them.
const FONT_FACTOR: f64 = 1.24;
/// From one line of a label to the next.
pub const LINE: i32 = 29;
/// From the axis to the first line of a label.
pub const LABEL_GAP: i32 = 14;
/// Room below the x axis besides further lines of its labels.
pub const X_LABELS: i32 = 56;
/// About so many ticks on the y axis.
pub const VERTICAL_TICKS: usize = 6;
/// Space to the right of the axes.
pub const MARGIN: i32 = 44;
/// Space above and below everything.
pub const MARGINS: (u32, u32) = (16, 4);

/// What plots are drawn on.
pub type Backend<'a> = SVGBackend<'a>;
/// A plot with its axes.
pub type Chart<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Axis, Axis>>;
/// Whether it was drawn.
pub type Drawn<'a> = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// What is drawn in one size.
pub struct Layout {
    /// The plot with only points that its axes can show, bars moved into their groups.
    pub plot: Plot,
    /// Values of x, or those of bars in rows.
    pub horizontal: Axis,
    /// Values of y, or the groups in rows.
    pub vertical: Axis,
    /// Height of the drawing, units.
    pub height: u32,
    /// Bars only: the groups stand one below the other, and values lie on the horizontal axis.
    pub is_in_rows: bool,
}

/// The scale of an axis.
pub fn scale(log: bool) -> Scale {
    if log { Scale::Log } else { Scale::Linear }
}

/// The style of a label.
pub fn text(role: Role, anchor: Pos) -> TextStyle<'static> {
    let font = ("sans-serif", LETTER * FONT_FACTOR).into_font();
    font.color(&literal(role, 0)).pos(anchor)
}

/// The style of a line.
pub fn stroke(role: Role, slot: usize, width: u32) -> ShapeStyle {
    literal(role, slot).stroke_width(width)
}

/// Draws the spread of the point at `place`, from `low` to `high`.
pub fn draw_whisker<'b>(
    chart: &mut Chart<'_, 'b>,
    place: f64,
    (low, high): (f64, f64),
    slot: usize,
    is_in_rows: bool,
) -> Drawn<'b> {
    let coord = chart.as_coord_spec();
    let axis = if is_in_rows { coord.x_spec() } else { coord.y_spec() };
    if !(axis.shows(low) && axis.shows(high)) || low >= high {
        return Ok(());
    }
    let style = stroke(Role::Whisker, slot, 2);
    let at = |value: f64| if is_in_rows { (value, place) } else { (place, value) };
    let ends = if is_in_rows { [(0, -7), (0, 7)] } else { [(-7, 0), (7, 0)] };
    let cap = |value: f64| EmptyElement::at(at(value)) + PathElement::new(ends, style);
    chart.draw_series([PathElement::new([at(low), at(high)], style)])?;
    chart.draw_series([cap(low), cap(high)])?;
    Ok(())
}
