//! The parts of a report: sections, plots and tables, before they take a form.

use crate::analysis::findings::entry;
use crate::result::{Finding, FindingKind};

/// A whole report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Headline.
    pub title: String,
    /// What ran: command, date, versions; a line each.
    pub intro: Vec<String>,
    /// One per experiment or part of one.
    pub sections: Vec<Section>,
}

/// One experiment or a part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Headline.
    pub title: String,
    /// What an experiment adds to the answer about a server, after the server's name.
    pub answers: Vec<(String, String)>,
    /// How it was measured, and what else is to be known; shown last.
    pub prose: Vec<String>,
    /// Plots, in order.
    pub plots: Vec<Plot>,
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// The table in the measuring process, which shows the limit of the load generator.
pub const IN_PROCESS: &str = "in-process table";

/// Models and the table in this process are there to be compared with: what concerns them stands
/// in an appendix.
fn is_model(target: &str) -> bool {
    target.contains("model:") || target.starts_with(IN_PROCESS)
}

impl Section {
    /// The answer: a sentence for each server; for models only where there is nothing else.
    pub fn answer(&self) -> Vec<String> {
        let names = self.targets().into_iter().filter(|name| !self.is_appendix(name));
        names.map(|name| self.answer_about(name)).collect()
    }

    /// The servers and models which the section is about, each once.
    pub fn targets(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let found = self.findings.iter().map(|finding| self.server(&finding.target));
        for name in found.chain(self.answers.iter().map(|(name, _)| name.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What an experiment adds about models, for the appendix.
    pub fn answers_about_models(&self) -> impl Iterator<Item = String> {
        let models = self.answers.iter().filter(|(name, _)| self.is_appendix(name));
        models.map(|(name, text)| format!("{name}: {text}"))
    }

    /// True of a model where servers were measured too.
    pub fn is_appendix(&self, target: &str) -> bool {
        let found = self.findings.iter().map(|finding| &finding.target);
        let mut all = found.chain(self.answers.iter().map(|(name, _)| name));
        is_model(target) && all.any(|name| !is_model(name))
    }

    fn answer_about(&self, name: &str) -> String {
        let mut kinds: Vec<FindingKind> = Vec::new();
        for finding in self.findings.iter().filter(|one| self.server(&one.target) == name) {
            if !kinds.contains(&finding.kind) {
                kinds.push(finding.kind);
            }
        }
        if kinds.len() > 1 {
            kinds.retain(|kind| *kind != FindingKind::None);
        }
        let titles: Vec<&str> = kinds.iter().map(|kind| entry(*kind).title).collect();
        let found = (!titles.is_empty()).then(|| format!(" {}.", titles.join("; ")));
        let own =
            self.answers.iter().find(|(of, _)| of == name).map(|(_, text)| format!(" {text}"));
        format!("{name}:{}{}", found.unwrap_or_default(), own.unwrap_or_default())
    }

    /// The server that a finding is about: its target, or what stands before the comma there.
    fn server<'a>(&'a self, target: &'a str) -> &'a str {
        let mut names = self.answers.iter().map(|(name, _)| name.as_str());
        let is_part = |rest: &str| rest.starts_with(", ");
        names.find(|name| target.strip_prefix(name).is_some_and(is_part)).unwrap_or(target)
    }
}

/// A table; cells are text, those that read as figures are set to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Headline.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows; missing cells are empty.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table: its name, and its cell in the row of an item.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

impl Table {
    /// A table of rows that are there already.
    pub fn new(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows }
    }

    /// A table with a row for each item.
    pub fn of<T>(
        title: &str,
        items: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T>],
    ) -> Self {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let row = |item: T| columns.iter().map(|(_, cell)| cell(&item)).collect();
        Self::new(title, &names, items.into_iter().map(row).collect())
    }

    /// The table of servers, and that of what belongs to the appendix: rows by target, columns
    /// by their name. The first column, which says what a row is about, stands in both.
    pub fn parted(&self, is_appendix: impl Fn(&str) -> bool) -> (Self, Self) {
        let is_target = |name: &String| name == "target" || name == "listener";
        let target = self.columns.iter().position(is_target);
        let is_model = |row: &Vec<String>| {
            target.and_then(|at| row.get(at)).is_some_and(|target| is_appendix(target))
        };
        let (models, servers): (Vec<_>, Vec<_>) = self.rows.iter().cloned().partition(is_model);
        if !self.columns.iter().any(|name| is_appendix(name)) {
            return (Self { rows: servers, ..self.clone() }, Self { rows: models, ..self.clone() });
        }
        let keep = |is_kept: &dyn Fn(usize, &str) -> bool| {
            let kept = |(at, _): &(usize, &String)| is_kept(*at, &self.columns[*at]);
            let cells = |row: &Vec<String>| {
                row.iter().enumerate().filter(kept).map(|(_, cell)| cell.clone()).collect()
            };
            let rows = self.rows.iter().map(cells).collect();
            Self { title: self.title.clone(), columns: cells(&self.columns), rows }
        };
        (keep(&|_, name| !is_appendix(name)), keep(&|at, name| at == 0 || is_appendix(name)))
    }
}

/// How the points of a plot are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Straight lines between points.
    #[default]
    Line,
    /// A value holds until the next point: distributions.
    Step,
    /// Bars side by side, one group per x: histograms and categories.
    Bar,
}

/// A plot. Points that an axis cannot show (not finite, not positive on a logarithmic one) are left
/// out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Headline.
    pub title: String,
    /// What the x axis shows, with its unit.
    pub x_label: String,
    /// What the y axis shows, with its unit.
    pub y_label: String,
    /// Logarithmic x axis; not used by bars, whose groups stand side by side.
    pub x_log: bool,
    /// Logarithmic y axis.
    pub y_log: bool,
    /// What is drawn; the same name has the same colour in the whole document.
    pub series: Vec<Series>,
    /// How.
    pub kind: Kind,
    /// Bars only: names of the groups, which then have x = 0, 1, 2 ...
    pub categories: Vec<String>,
}

/// One line, or one colour of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
    /// Lowest and highest repetition of each point; empty if there is nothing to show.
    pub spread: Vec<(f64, f64)>,
    /// A computed curve, drawn thin and without markers in the colour of the series of this name.
    pub curve_of: Option<String>,
}

impl Plot {
    /// An empty plot of a kind.
    pub fn new(kind: Kind, title: &str, x_label: &str, y_label: &str) -> Self {
        let [title, x_label, y_label] = [title, x_label, y_label].map(str::to_owned);
        Self { title, x_label, y_label, kind, ..Self::default() }
    }

    /// The same with logarithmic axes where asked.
    #[must_use]
    pub fn log(mut self, x: bool, y: bool) -> Self {
        (self.x_log, self.y_log) = (x, y);
        self
    }

    /// The same without the series and the groups of bars that belong to the appendix.
    #[must_use]
    pub fn without(mut self, is_appendix: impl Fn(&str) -> bool) -> Self {
        self.series.retain(|series| !is_appendix(&series.name));
        let categories = &self.categories;
        let is_left = |x: f64| !categories.get(x as usize).is_some_and(|name| is_appendix(name));
        self.series.retain_mut(|series| {
            let is_kept: Vec<bool> = series.points.iter().map(|(x, _)| is_left(*x)).collect();
            series.keep(&is_kept);
            is_kept.is_empty() || is_kept.contains(&true)
        });
        self
    }

    /// The same with one more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }
}

impl Series {
    /// A series of points.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, ..Self::default() }
    }

    /// Keeps the points, with their spread, where `is_kept` is true.
    pub fn keep(&mut self, is_kept: &[bool]) {
        let mut kept = is_kept.iter();
        self.points.retain(|_| *kept.next().unwrap_or(&false));
        let mut kept = is_kept.iter();
        self.spread.retain(|_| *kept.next().unwrap_or(&false));
    }

    /// A series of repeated points: the median of each x with the lowest and highest around it.
    pub fn repeated(name: &str, levels: &[(f64, Vec<f64>)]) -> Self {
        let mut series = Self::new(name, Vec::new());
        for (x, values) in levels {
            if let Some(spread) = crate::analysis::spread::Spread::of(values) {
                series.points.push((*x, spread.median));
                series.spread.push((spread.min, spread.max));
            }
        }
        series
    }

    /// A computed curve that belongs to the series `of`.
    pub fn curve(name: &str, of: &str, points: Vec<(f64, f64)>) -> Self {
        Self { curve_of: Some(of.to_owned()), ..Self::new(name, points) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(target: &str, kind: FindingKind) -> Finding {
        let (target, experiment) = (target.to_owned(), String::new());
        Finding { kind, experiment, target, evidence: vec![], caveats: vec![] }
    }

    #[test]
    fn the_summary_covers_servers_and_models_are_in_an_appendix() {
        let own = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let mut section = Section {
            answers: vec![
                own("s", "Sync wins."),
                own("model:m", "It is slow."),
                own(IN_PROCESS, "It is fast."),
            ],
            findings: vec![
                finding("s, sync", FindingKind::None),
                finding("s, async", FindingKind::EagerReads),
                finding("model:m", FindingKind::Sequential),
            ],
            ..Section::default()
        };
        assert_eq!(section.answer(), ["s: Small writes are answered too eagerly. Sync wins."]);
        assert_eq!(
            section.answers_about_models().collect::<Vec<_>>(),
            ["model:m: It is slow.", "in-process table: It is fast."]
        );
        section.answers.pop();
        let names = ["model:m", "s"];
        let table = Table::of("t", names, &[("target", &|name| (*name).to_owned())]);
        let (servers, models) = table.parted(|target| section.is_appendix(target));
        assert_eq!(
            (servers.rows, models.rows),
            (vec![vec!["s".to_owned()]], vec![vec!["model:m".to_owned()]])
        );
        let wide = Table::new(
            "t",
            &["n", "s", "model:m"],
            vec![["1", "2", "3"].map(str::to_owned).to_vec()],
        );
        let (servers, models) = wide.parted(|target| section.is_appendix(target));
        assert_eq!(
            (servers.rows[0].join(" "), models.rows[0].join(" ")),
            ("1 2".into(), "1 3".into())
        );
        let mut bars = Plot::new(Kind::Bar, "t", "target", "y")
            .with(Series::new("all", vec![(0.0, 1.0), (1.0, 2.0)]))
            .with(Series::new("of model:m", vec![(1.0, 3.0)]))
            .with(Series::new("of the first", vec![(0.0, 3.0)]));
        bars.categories = names.map(str::to_owned).to_vec();
        let bars = bars.without(|target| section.is_appendix(target));
        assert_eq!(bars.series, [Series::new("all", vec![(1.0, 2.0)])]);
        // If only models were measured, the summary covers them.
        section.findings.drain(..2);
        section.answers.remove(0);
        assert_eq!(section.answer(), ["model:m: One connection at a time. It is slow."]);
        assert_eq!(section.answers_about_models().count(), 0);
    }
}
