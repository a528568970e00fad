//! `LOLWUT`: a sheaf of stalks, bound in the middle, drawn in dots of braille; no two alike.

use std::fmt::Write;

use base::num::parse_i64;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::is;
use crate::version::REDIS_VERSION;

/// Smallest, default and largest number of columns of text.
const COLUMNS: [i64; 3] = [4, 44, 200];
/// Of rows of text.
const ROWS: [i64; 3] = [3, 14, 100];
/// Of stalks.
const STALKS: [i64; 3] = [1, 24, 200];
/// Where the band is, from the top, and how wide the sheaf is there.
const WAIST: f64 = 0.6;
const WAIST_WIDTH: f64 = 0.14;
/// Dots of one braille character: two columns of four. Unicode numbers them in this order.
const DOTS: [[u8; 4]; 2] = [[0, 1, 2, 6], [3, 4, 5, 7]];
const BRAILLE: u32 = 0x2800;

/// A drawing of dots.
struct Canvas {
    width: usize,
    height: usize,
    dots: Vec<bool>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Self {
        let (width, height) = (columns * 2, rows * 4);
        Canvas { width, height, dots: vec![false; width * height] }
    }

    fn dot(&mut self, x: f64, y: usize) {
        let x = x.round().clamp(0.0, (self.width - 1) as f64) as usize;
        self.dots[y * self.width + x] = true;
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for top in (0..self.height).step_by(4) {
            for left in (0..self.width).step_by(2) {
                let mut bits = 0;
                for (dx, column) in DOTS.iter().enumerate() {
                    for (dy, bit) in column.iter().enumerate() {
                        let set = self.dots[(top + dy) * self.width + left + dx];
                        bits |= u32::from(set) << bit;
                    }
                }
                text.extend(char::from_u32(BRAILLE + bits));
            }
            text.push('\n');
        }
        text
    }
}

/// The sheaf: every stalk goes from its foot through the band to its ear, which bends outwards.
fn sheaf(columns: usize, rows: usize, stalks: usize, mut draw: impl FnMut() -> u64) -> String {
    let mut canvas = Canvas::new(columns, rows);
    let mut fraction = || (draw() >> 11) as f64 / (1u64 << 53) as f64;
    let (width, height) = (canvas.width as f64, canvas.height);
    let waist = (height as f64 * WAIST) as usize;
    for stalk in 0..stalks {
        // From -0.5 on the left to 0.5 on the right.
        let place = if stalks == 1 { 0.0 } else { stalk as f64 / (stalks - 1) as f64 - 0.5 };
        let bend = place * (0.8 + 0.2 * fraction());
        let foot = place * (0.45 + 0.1 * fraction());
        let ear = (height as f64 * 0.25 * fraction()) as usize;
        for y in ear..height {
            let x = if y < waist {
                let up = (waist - y) as f64 / waist as f64;
                place * WAIST_WIDTH * (1.0 - up) + bend * up * up
            } else {
                let down = (y - waist) as f64 / (height - waist) as f64;
                place * WAIST_WIDTH * (1.0 - down) + foot * down
            };
            let x = width * (0.5 + x);
            canvas.dot(x, y);
            // Grains: the ear is thicker than the stalk.
            if y < ear + height / 8 && y.is_multiple_of(2) {
                canvas.dot(x - 1.0, y);
                canvas.dot(x + 1.0, y);
            }
        }
    }
    for y in [waist.saturating_sub(1), waist] {
        let half = (width * WAIST_WIDTH * 0.6) as i64 + 1;
        for dx in -half..=half {
            canvas.dot(width * 0.5 + dx as f64, y);
        }
    }
    canvas.text()
}

/// `LOLWUT [VERSION version [columns [rows [stalks]]]]`. There is one drawing, whatever the
/// version.
pub fn lolwut(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let mut numbers = [COLUMNS[1], ROWS[1], STALKS[1]];
    if ctx.args.len() >= 3 && is(ctx.arg(1), "VERSION") {
        parse_i64(ctx.arg(2)).ok_or(Error::NotInteger)?;
        let limits = [COLUMNS, ROWS, STALKS];
        for (at, (number, [min, _, max])) in numbers.iter_mut().zip(limits).enumerate() {
            if let Some(text) = ctx.args.try_get(3 + at) {
                *number = parse_i64(text).ok_or(Error::NotInteger)?.clamp(min, max);
            }
        }
    }
    let [columns, rows, stalks] = numbers.map(|n| n as usize);
    let mut text = sheaf(columns, rows, stalks, || ctx.tally.draw());
    text.push_str(concat!("\nA sheaf, bound. SheafDB ver. ", env!("CARGO_PKG_VERSION")));
    let _ = writeln!(text, ", Redis ver. {REDIS_VERSION}");
    ctx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(Done::Replied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    #[test]
    fn a_sheaf_has_the_requested_size_and_a_band() {
        for (columns, rows, stalks) in [(4, 3, 1), (44, 14, 24), (200, 100, 200)] {
            let mut prng = Prng::new(7);
            let text = sheaf(columns, rows, stalks, || prng.draw());
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), rows);
            assert!(lines.iter().all(|line| line.chars().count() == columns));
            let full = text.chars().filter(|c| *c != '\u{2800}').count();
            assert!(full >= rows, "something is drawn");
            let mut other = Prng::new(8);
            let again = sheaf(columns, rows, stalks, || other.draw());
            assert!(stalks == 1 || again != text, "no two are alike");
        }
    }
}
