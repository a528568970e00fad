//! Which records count, and so where a file is cut. No I/O: it is handed annotations and commands.

use std::ops::ControlFlow;

use super::note::Note;
use super::point::{Point, time_text};

/// When a record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Not later than this, in milliseconds since 1970.
    Until(i64),
    /// In this second since 1970.
    Second(i64),
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Until(ms) => f.write_str(&time_text(ms)),
            Self::Second(unix_s) => {
                let text = time_text(unix_s.saturating_mul(1000));
                write!(f, "the second {}", text.replace(".000Z", "Z"))
            }
        }
    }
}

/// What is known of the last record that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// Its number.
    pub number: Option<u64>,
    /// When it was made.
    pub made: Option<Made>,
}

/// Follows the records of the files of a chain, one file after the other.
#[derive(Clone, Debug)]
pub struct Cut {
    point: Point,
    /// The number of the next record.
    next: Option<u64>,
    made: Option<Made>,
    /// The last record that counts; the base's before the first one.
    pub last: Last,
    /// Up to here this file counts.
    pub end: u64,
    /// Records of this file that count.
    pub records: u64,
    /// A time is asked for, and a record was met before any annotation: nobody knows when it was
    /// made.
    pub is_untimed: bool,
    /// The commands of this file hold a base, and are no records.
    is_base: bool,
}

/// Whether the records behind this place count, too.
type Flow = ControlFlow<()>;

impl Cut {
    /// Of the records behind a base, whose last record this is.
    pub fn new(point: Point, base: Last) -> Self {
        let next = base.number.and_then(|number| number.checked_add(1));
        Self {
            point,
            next,
            made: None,
            last: base,
            end: 0,
            records: 0,
            is_untimed: false,
            is_base: false,
        }
    }

    /// Begins a file, whose commands begin there.
    pub fn begin_file(&mut self, at: u64) {
        self.end = at;
        self.records = 0;
        self.is_base = false;
    }

    /// The file is a base which says what it holds: all of it counts. `at` is behind that line.
    pub fn begin_base(&mut self, at: u64) {
        self.end = at;
        self.is_base = true;
    }

    /// Takes an annotation, which may be inside of a transaction.
    ///
    /// # Errors
    /// It cannot be what it seems to be.
    pub fn note(&mut self, note: Note, is_inside: bool) -> Result<Flow, String> {
        let (made, counts) = match note {
            Note::Other | Note::Base(..) => return Ok(Flow::Continue(())),
            Note::Wrong => return Err("an annotation which cannot be read".to_owned()),
            Note::Number(..) if is_inside => {
                return Err("a number inside of a transaction".to_owned());
            }
            Note::Number(number, ms) => {
                if let Some(next) = self.next.filter(|&next| number < next)
                    && matches!(self.point, Point::Number(_))
                {
                    let last = next - 1;
                    return Err(format!("the numbers go back from {last} to {number}"));
                }
                self.next = Some(number);
                let is_reached = matches!(self.point, Point::Number(limit) if number > limit);
                (Made::Until(ms), !is_reached && self.point.takes_ms(ms))
            }
            Note::Second(unix_s) => (Made::Second(unix_s), self.point.takes_second(unix_s)),
        };
        // What came before the first annotation was made before it.
        self.is_untimed = false;
        if !counts {
            return Ok(Flow::Break(()));
        }
        self.made = Some(made);
        Ok(Flow::Continue(()))
    }

    /// Takes a command which ends there; `is_inside`: behind it a transaction is open.
    pub fn command(&mut self, is_select: bool, is_inside: bool, end: u64) -> Flow {
        if is_select || is_inside {
            return Flow::Continue(());
        }
        if self.is_base {
            self.end = end;
            return Flow::Continue(());
        }
        let limit = if let Point::Number(limit) = self.point { Some(limit) } else { None };
        let is_beyond = |number: u64| limit.is_some_and(|limit| number > limit);
        if self.next.is_some_and(is_beyond) {
            return Flow::Break(());
        }
        self.end = end;
        self.records += 1;
        self.is_untimed |= limit.is_none() && self.made.is_none();
        self.last = Last { number: self.next, made: self.made };
        self.next = self.next.and_then(|number| number.checked_add(1));
        let is_last = limit.is_some() && self.last.number == limit;
        if is_last { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOES_ON: Flow = Flow::Continue(());
    const ENDS: Flow = Flow::Break(());

    fn after(point: Point, number: u64) -> Cut {
        Cut::new(point, Last { number: Some(number), made: None })
    }

    #[test]
    fn a_number_ends_right_behind_its_record() {
        let mut cut = after(Point::Number(6), 4);
        assert_eq!(cut.note(Note::Number(5, 100), false), Ok(GOES_ON));
        assert_eq!(cut.command(true, false, 10), GOES_ON);
        assert_eq!(cut.end, 0, "a SELECT is no record");
        assert_eq!(cut.command(false, false, 20), GOES_ON);
        assert_eq!(cut.command(false, true, 30), GOES_ON);
        assert_eq!(cut.command(false, true, 40), GOES_ON);
        assert_eq!((cut.end, cut.last.number), (20, Some(5)));
        assert_eq!(cut.command(false, false, 50), ENDS);
        assert_eq!((cut.end, cut.last.number, cut.records), (50, Some(6), 2));
    }

    /// Numbers without a command are skipped by an annotation.
    #[test]
    fn a_number_without_a_command_ends_before_the_next_one() {
        let mut cut = after(Point::Number(8), 4);
        assert_eq!(cut.command(false, false, 20), GOES_ON);
        assert_eq!(cut.note(Note::Number(9, 100), false), Ok(ENDS));
        assert_eq!((cut.end, cut.last.number), (20, Some(5)));
    }

    #[test]
    fn the_number_of_the_base_takes_no_record() {
        let mut cut = after(Point::Number(4), 4);
        assert_eq!(cut.command(false, false, 20), ENDS);
        assert_eq!((cut.end, cut.last.number), (0, Some(4)));
    }

    #[test]
    fn whole_groups_count_up_to_a_time() {
        let mut cut = after(Point::Time(200), 4);
        assert_eq!(cut.note(Note::Number(5, 200), false), Ok(GOES_ON));
        assert_eq!(cut.command(false, false, 20), GOES_ON);
        assert_eq!(cut.command(false, false, 30), GOES_ON);
        assert_eq!(cut.note(Note::Number(7, 201), false), Ok(ENDS));
        let last = Last { number: Some(6), made: Some(Made::Until(200)) };
        assert_eq!((cut.end, cut.last), (30, last));
    }

    /// redis-server may begin a second within a transaction.
    #[test]
    fn a_later_second_inside_of_a_transaction_ends_before_it() {
        let mut cut = Cut::new(Point::Time(5_999), Last::default());
        assert_eq!(cut.note(Note::Second(5), false), Ok(GOES_ON));
        assert_eq!(cut.command(false, false, 20), GOES_ON);
        assert_eq!(cut.command(false, true, 30), GOES_ON);
        assert_eq!(cut.note(Note::Second(6), true), Ok(ENDS));
        assert_eq!((cut.end, cut.last.made), (20, Some(Made::Second(5))));
    }

    #[test]
    fn what_stands_before_the_first_annotation_was_made_before_it() {
        let mut cut = Cut::new(Point::Time(5_000), Last::default());
        assert_eq!(cut.command(false, false, 20), GOES_ON);
        assert!(cut.is_untimed);
        assert_eq!(cut.note(Note::Second(7), false), Ok(ENDS));
        assert!(!cut.is_untimed && cut.end == 20);
    }

    #[test]
    fn annotations_which_cannot_be_are_errors() {
        let mut cut = after(Point::Number(9), 4);
        assert!(cut.note(Note::Wrong, false).is_err());
        assert!(cut.note(Note::Number(7, 1), true).is_err());
        assert!(cut.note(Note::Number(4, 1), false).is_err());
        assert_eq!(cut.note(Note::Number(u64::MAX, 1), false), Ok(ENDS));
        assert_eq!(after(Point::Time(9), 4).note(Note::Number(4, 1), false), Ok(GOES_ON));
        let mut cut = after(Point::Number(u64::MAX), u64::MAX - 1);
        assert_eq!(cut.command(false, false, 9), ENDS);
        assert_eq!(cut.next, None);
    }
}
