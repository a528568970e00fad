//! Protocol 2's adaptive acknowledgements beside the two that it chooses between: is choosing by
//! itself never much worse than knowing?

use std::fmt::Display;

use ingest::v2::Acking;

use super::options::{Plan, TEXTS};
use super::point::{Point, Way};
use super::rows::{Row, doubt, find};
use crate::analysis::figure::count;
use crate::report::{Kind, Plot, Series, Table};

/// Adaptive has at least this share of the messages per second of the better of the other two.
const SHARE_MIN: f64 = 0.9;

/// The three at one point.
#[derive(Clone, Debug, PartialEq)]
struct Compared {
    label: String,
    adaptive: f64,
    synchronous: f64,
    batched: f64,
}

impl Compared {
    /// Adaptive's share of the better one.
    fn share(&self) -> f64 {
        self.adaptive / self.synchronous.max(self.batched)
    }

    fn holds(&self) -> bool {
        self.share() >= SHARE_MIN
    }
}

/// Sentences and a table about one server; nothing if it was not sent protocol 2.
pub fn check(name: &str, rows: &[Row]) -> (Vec<String>, Option<Table>) {
    let compared = compare(name, rows);
    let Some(head) = summary(name, &compared) else { return (Vec::new(), None) };
    let own = rows.iter().filter(|row| row.subject == name && matches!(row.way, Way::Two(_)));
    let doubt = doubt(own, &format!("a share just below {SHARE_MIN}"));
    ([head].into_iter().chain(doubt).collect(), Some(table(name, &compared)))
}

fn compare(name: &str, rows: &[Row]) -> Vec<Compared> {
    let of = |label: &str, acking| find(rows, label, name, Way::Two(acking))?.throughput();
    let adaptive = rows.iter().filter(|row| row.is_of(name, Way::Two(Acking::Adaptive)));
    let compared = adaptive.filter_map(|row| {
        Some(Compared {
            label: row.label.clone(),
            adaptive: row.throughput()?,
            synchronous: of(&row.label, Acking::Synchronous)?,
            batched: of(&row.label, Acking::Batched)?,
        })
    });
    compared.collect()
}

fn summary(name: &str, compared: &[Compared]) -> Option<String> {
    let worst = compared.iter().min_by(|a, b| a.share().total_cmp(&b.share()))?;
    let missed = compared.iter().filter(|one| !one.holds()).count();
    let values: [(&str, &dyn Display); 5] = [
        ("name", &name),
        ("missed", &missed),
        ("all", &compared.len()),
        ("share", &format!("{:.2}", worst.share())),
        ("label", &worst.label),
    ];
    Some(TEXTS.sentence(if missed == 0 { "adaptive holds" } else { "adaptive misses" }, &values))
}

fn table(name: &str, compared: &[Compared]) -> Table {
    Table::of(
        &format!("{name}: adaptive beside the better of the other two"),
        compared,
        &[
            ("sent", &|one| one.label.clone()),
            ("adaptive/s", &|one| count(one.adaptive)),
            ("synchronous/s", &|one| count(one.synchronous)),
            ("batched/s", &|one| count(one.batched)),
            ("adaptive of the better", &|one| format!("{:.2}", one.share())),
            ("at least 0.9", &|one| if one.holds() { "holds" } else { "missed" }.to_owned()),
        ],
    )
}

/// The three side by side, for clients that wait and clients that do not.
pub fn plot(rows: &[Row], plan: &Plan) -> Option<Plot> {
    let base = plan.points[0];
    let shown = |point: &&Point| Point { clients: base.clients, waits: false, ..**point } == base;
    let points: Vec<&Point> = plan.points.iter().filter(shown).collect();
    let title = "Protocol 2: messages per second";
    let x = "clients (c), and whether a write waits for the acknowledgement of the one before";
    let mut plot = Plot::new(Kind::Bar, title, x, "messages/s").log(false, true);
    let category =
        |point: &&Point| format!("c={}{}", point.clients, if point.waits { " waits" } else { "" });
    plot.categories = points.iter().map(category).collect();
    let mut names: Vec<(&str, Way)> = Vec::new();
    for row in rows.iter().filter(|r| matches!(r.way, Way::Two(_) | Way::EachRead)) {
        if !names.contains(&(&row.subject, row.way)) {
            names.push((&row.subject, row.way));
        }
    }
    for (subject, way) in &names {
        let own = rows.iter().filter(|row| row.is_of(subject, *way));
        let at = |row: &Row| {
            let x = points.iter().position(|point| Some(**point) == row.point)?;
            Some((x as f64, row.throughput()?))
        };
        let mut bars: Vec<_> = own.filter_map(at).collect();
        bars.sort_by(|a, b| a.0.total_cmp(&b.0));
        plot = plot.with(Series::new(&format!("{subject}: {}", way.name()), bars));
    }
    names.iter().any(|(_, way)| matches!(way, Way::Two(_))).then_some(plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(label: &str, adaptive: f64, synchronous: f64, batched: f64) -> Compared {
        Compared { label: label.to_owned(), adaptive, synchronous, batched }
    }

    #[test]
    fn adaptive_is_compared_with_the_better_strategy_at_each_point() {
        let good = [compared("a", 95.0, 100.0, 10.0), compared("b", 91.0, 1.0, 100.0)];
        let text = summary("s", &good).expect("there are points");
        assert!(text.starts_with("s: adaptive holds at all 2 points"), "{text:?}");
        assert!(text.ends_with("(worst 0.91: b)."), "{text:?}");
        let bad = [good[0].clone(), compared("c", 89.0, 1.0, 100.0)];
        let text = summary("s", &bad).expect("there are points");
        assert!(text.starts_with("s: adaptive misses at 1 of 2 points"), "{text:?}");
        let rows = table("s", &bad).rows;
        assert_eq!([&rows[0][5], &rows[1][5]], ["holds", "missed"]);
    }

    #[test]
    fn targets_without_protocol_2_are_not_reported() {
        let (sentences, table) = check("s", &[]);
        assert!(sentences.is_empty() && table.is_none() && summary("s", &[]).is_none());
    }
}
