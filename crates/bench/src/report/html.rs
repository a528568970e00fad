//! The page: one file that opens offline. Its elements are closed as XML wants them, so that a
//! strict parser can check it; its policy lets it load nothing and run nothing.

use std::fmt::Write as _;

use super::csv::csv;
use super::document::{Document, Kind, Plot, Section, Series, Table};
use super::escape::{escape, percent, slug};
use super::plot::{self, Slots};
use super::table;
use crate::analysis::findings::{Blame, Entry, entry};
use crate::result::{Finding, FindingKind, Machine};

const STYLE: &str = include_str!("page.css");
/// Nothing from anywhere but the style in the page itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// More findings of a section that nothing stands out are folded.
const NOTHING_MAX: usize = 2;

/// The document as a page.
pub fn html(document: &Document, machine: &Machine) -> String {
    let sections = || document.sections.iter();
    let servers: Vec<&str> = sections().flat_map(Section::targets).collect();
    let slots = Slots::of(&servers, sections().flat_map(|section| &section.plots));
    let title = escape(&document.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n\
         <h1>{title}</h1>\n"
    );
    for line in &document.intro {
        let _ = writeln!(page, "<p>{}</p>", escape(line));
    }
    page.push_str("</header>\n");
    page.push_str(&summary(document));
    for (at, section) in document.sections.iter().enumerate() {
        page.push_str(&section_html(section, at, &slots));
    }
    page + &table::html(&machine_table(machine)) + "</main>\n</body>\n</html>\n"
}

fn machine_table(machine: &Machine) -> Table {
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let memory = format!("{:.1} GiB", machine.memory_bytes as f64 / (1_u64 << 30) as f64);
    let rows = [
        ("CPU", known(&machine.cpu)),
        ("cores", machine.cores.to_string()),
        ("memory", memory),
        ("kernel", known(&machine.kernel)),
        ("virtualization", known(&machine.virtualization)),
        ("clock source", known(&machine.clock_source)),
    ];
    Table {
        title: "The machine".to_owned(),
        columns: rows.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: vec![rows.into_iter().map(|(_, value)| value).collect()],
    }
}

fn anchor(section: &Section, at: usize) -> String {
    format!("{}-{}", slug(&section.title), at + 1)
}

/// All findings about servers at a glance, with links to their sections; without findings the
/// sections alone.
fn summary(document: &Document) -> String {
    let mut text = String::from("<nav>\n<h2>What was found</h2>\n<ul class=\"summary\">\n");
    for (at, section) in document.sections.iter().enumerate() {
        let (title, anchor) = (escape(&section.title), anchor(section, at));
        let _ = write!(text, "<li><a href=\"#{anchor}\">{title}</a>");
        let is_shown = |finding: &&Finding| {
            finding.kind != FindingKind::None && !section.is_appendix(&finding.target)
        };
        let shown: Vec<&Finding> = section.findings.iter().filter(is_shown).collect();
        if shown.is_empty() && !section.findings.is_empty() {
            text.push_str(" <span class=\"badge good\">nothing stands out</span>");
        }
        for finding in shown {
            let entry = entry(finding.kind);
            let _ = write!(
                text,
                " <span class=\"badge {}\">{}: {}</span>",
                class(entry),
                escape(&finding.target),
                entry.name
            );
        }
        text.push_str("</li>\n");
    }
    text + "</ul>\n</nav>\n"
}

fn class(entry: &Entry) -> &'static str {
    match (entry.kind, entry.blame) {
        (FindingKind::None, _) => "good",
        (_, Blame::Server) => "bad",
        (_, Blame::Client) => "warn",
        (_, Blame::Nobody) => "note",
    }
}

fn section_html(section: &Section, at: usize, slots: &Slots) -> String {
    let (title, anchor) = (escape(&section.title), anchor(section, at));
    let mut text = format!("<section id=\"{anchor}\">\n<h2>{title}</h2>\n");
    for sentence in section.answer() {
        let _ = writeln!(text, "<p class=\"answer\">{}</p>", escape(&sentence));
    }
    let paragraph = |text: &str| format!("<p>{}</p>\n", escape(text));
    let mut models: String = section.answers_about_models().map(|one| paragraph(&one)).collect();
    for (number, plot) in section.plots.iter().enumerate() {
        let file = format!("{anchor}-{}-{}", number + 1, slug(&plot.title));
        let servers = plot.clone().without(|target| section.is_appendix(target));
        let is_empty = servers.series.iter().all(|series| series.points.is_empty());
        if servers == *plot || !is_empty {
            text.push_str(&figure_html(&servers, slots, &format!("{file}.csv")));
        }
        if servers != *plot {
            models.push_str(&figure_html(plot, slots, &format!("{file}-with-models.csv")));
        }
    }
    let mut nothing = String::new();
    let is_nothing = |finding: &&Finding| {
        finding.kind == FindingKind::None && !section.is_appendix(&finding.target)
    };
    let is_folded = section.findings.iter().filter(is_nothing).count() > NOTHING_MAX;
    for finding in &section.findings {
        let place = match finding {
            finding if section.is_appendix(&finding.target) => &mut models,
            finding if is_folded && is_nothing(&finding) => &mut nothing,
            _ => &mut text,
        };
        place.push_str(&finding_html(finding));
    }
    text.push_str(&folded("Where nothing stands out", &nothing));
    for table in &section.tables {
        let (servers, others) = table.parted(|target| section.is_appendix(target));
        if others.rows.is_empty() || !servers.rows.is_empty() {
            text.push_str(&table::html(&servers));
        }
        if !others.rows.is_empty() {
            models.push_str(&table::html(&others));
        }
    }
    let prose: String = section.prose.iter().map(|one| paragraph(one)).collect();
    text + &folded("How it was measured", &prose)
        + &folded("Models and references", &models)
        + "</section>\n"
}

/// A part that a reader opens if it is wanted.
fn folded(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<details class=\"appendix\"><summary>{title}</summary>\n{content}</details>\n")
}

fn finding_html(finding: &Finding) -> String {
    let entry = entry(finding.kind);
    let list = |class: &str, sentences: &[String]| -> String {
        if sentences.is_empty() {
            return String::new();
        }
        let items: Vec<String> =
            sentences.iter().map(|s| format!("<li>{}</li>", escape(s))).collect();
        format!("<ul class=\"{class}\">{}</ul>\n", items.join(""))
    };
    let name = match finding.kind {
        FindingKind::None => String::new(),
        _ => format!(" <code>{}</code>", entry.name),
    };
    let mut text = format!(
        "<article class=\"finding {}\">\n<h3>{}: {}{name}</h3>\n{}",
        class(entry),
        escape(&finding.target),
        entry.title,
        list("evidence", &finding.evidence)
    );
    if finding.kind != FindingKind::None {
        let _ = writeln!(
            text,
            "<p class=\"advice\"><b>Usual cause.</b> {} <b>What to do.</b> {}</p>",
            code(entry.cause),
            code(entry.remedy)
        );
    }
    text.push_str(&list("caveats", &finding.caveats));
    text + "</article>\n"
}

/// Text of the list, where names stand between backticks.
fn code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let shown = |(at, part)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(shown).collect()
}

fn figure_html(plot: &Plot, slots: &Slots, file: &str) -> String {
    let mut text = format!("<figure>\n<figcaption>{}</figcaption>\n", escape(&plot.title));
    if plot.series.len() > 1 || plot.series.iter().any(|series| series.curve_of.is_some()) {
        text.push_str(&legend(plot, slots));
    }
    let drawings = plot::SIZES.map(|size| drawing_html(plot, slots, size));
    match drawings.into_iter().collect::<Option<String>>() {
        Some(drawings) => text.push_str(&drawings),
        None => text.push_str("<p class=\"empty\">No figures were measured for this plot.</p>\n"),
    }
    text.push_str("<div class=\"data\">");
    let link = percent(&csv(plot));
    let _ =
        write!(text, "<a download=\"{file}\" href=\"data:text/csv;charset=utf-8,{link}\">CSV</a>");
    if let Some(behind) = table::behind(plot) {
        let table = table::html(&behind);
        let _ = write!(text, "\n<details><summary>Figures</summary>\n{table}</details>");
    }
    text + "</div>\n</figure>\n"
}

/// A drawing between the names of its axes. These are text of the page, because they may need more
/// than one line.
fn drawing_html(plot: &Plot, slots: &Slots, size: plot::Size) -> Option<String> {
    let drawing = plot::drawing(plot, slots, size)?;
    let [vertical, horizontal] = [drawing.vertical, drawing.horizontal].map(escape);
    Some(format!(
        "<div class=\"{}\">\n<p class=\"axis\">{vertical}</p>\n{}\n\
         <p class=\"axis x\">{horizontal}</p>\n</div>\n",
        size.class, drawing.svg
    ))
}

fn legend(plot: &Plot, slots: &Slots) -> String {
    let bar = plot.kind == Kind::Bar;
    let item = |series: &Series| {
        let curve = series.curve_of.is_some();
        let marked = plot::is_marked(plot, series);
        let swatch = plot::swatch(slots.slot(series), bar, curve, marked);
        format!("<li>{swatch}{}</li>", escape(&series.name))
    };
    let items: Vec<String> = plot.series.iter().map(item).collect();
    format!("<ul class=\"legend\">{}</ul>\n", items.join("\n"))
}
