//! The report in a browser and in a strict parser. The sample is kept in the target folder's `tmp`.

mod browser;
mod sample;

use std::path::{Path, PathBuf};

use bench::report::{Document, html};
use browser::{Network, screenshot};

/// Plots of the sample whose sections show servers and models.
const WITH_MODELS: usize = 7;

/// The sample's page.
fn page() -> String {
    html(&sample::document(), &sample::machine())
}

fn parse(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).expect("the page is well-formed")
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the target folder can be written");
    path
}

#[test]
fn the_page_is_well_formed_and_complete() {
    let page = page();
    let tree = parse(&page);
    let count = |name: &str| tree.descendants().filter(|n| n.has_tag_name(name)).count();
    let document = sample::document();
    let plots: usize = document.sections.iter().map(|s| s.plots.len()).sum();
    let findings: usize = document.sections.iter().map(|s| s.findings.len()).sum();
    // A plot with models appears twice: with the servers alone, and with the models in the
    // appendix.
    let figures = plots + WITH_MODELS;
    assert_eq!((count("section"), count("figure"), count("article")), (5, figures, findings));
    let classes =
        |class: &str| tree.descendants().filter(|n| n.attribute("class") == Some(class)).count();
    assert_eq!(classes("plot"), figures - 1, "one plot has no figures and says so");
    assert_eq!(classes("plot narrow"), figures - 1);
    assert_eq!(classes("empty"), 1);
    let text: String = tree.descendants().filter_map(|n| n.text()).collect();
    for part in ["sequential", "retrograde", "nagle_stall", "poll_per_request", "wakeup_bound"] {
        assert!(text.contains(part), "{part}");
    }
    for plot in document.sections.iter().flat_map(|s| &s.plots).filter(|p| !p.series.is_empty()) {
        assert!(text.contains(&plot.x_label) && text.contains(&plot.y_label), "{}", plot.title);
    }
    for finding in document.sections.iter().flat_map(|s| &s.findings) {
        assert!(finding.evidence.iter().chain(&finding.caveats).all(|s| text.contains(s)));
    }
}

#[test]
fn the_page_contains_no_script_and_loads_nothing() {
    let page = page();
    let tree = parse(&page);
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        let loads =
            ["script", "link", "img", "iframe", "object", "embed", "audio", "video", "base", "use"];
        assert!(!loads.contains(&name), "<{name}>");
        for attribute in node.attributes() {
            let (key, value) = (attribute.name(), attribute.value());
            assert!(!key.starts_with("on"), "{key}");
            assert!(!key.contains("src"), "{key}");
            if key == "href" {
                assert!(value.starts_with('#') || value.starts_with("data:text/csv"), "{value}");
            }
            assert!(!value.contains("url("), "{value}");
        }
    }
    let style: String =
        tree.descendants().filter(|n| n.has_tag_name("style")).filter_map(|n| n.text()).collect();
    assert!(!style.contains("url(") && !style.contains("@import"), "the style loads something");
}

#[test]
fn links_point_to_sections_and_every_plot_is_available_as_csv() {
    let page = page();
    let tree = parse(&page);
    let ids: Vec<&str> = tree.descendants().filter_map(|n| n.attribute("id")).collect();
    let mut files = Vec::new();
    for link in tree.descendants().filter(|n| n.has_tag_name("a")) {
        let target = link.attribute("href").expect("a link leads somewhere");
        match target.strip_prefix('#') {
            Some(id) => assert!(ids.contains(&id), "{id}"),
            None => files.push(link.attribute("download").expect("a file has a name")),
        }
    }
    let plots: usize = sample::document().sections.iter().map(|s| s.plots.len()).sum();
    let (links, figures) = (files.len(), plots + WITH_MODELS);
    files.sort_unstable();
    files.dedup();
    assert_eq!((links, files.len()), (figures, figures), "each file its own name: {files:?}");
}

#[test]
fn an_empty_document_is_rendered() {
    let page = html(&Document::default(), &bench::result::Machine::default());
    assert!(page.contains("unknown"));
    parse(&page);
}

/// On a telephone only some of the 14 groups of the plot of CPU per message had a name.
#[test]
fn every_group_of_bars_is_named_for_every_screen() {
    let page = page();
    let tree = parse(&page);
    let is_cost = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("aria-label") == Some("Server CPU per message")
    };
    let drawings: Vec<_> = tree.descendants().filter(is_cost).collect();
    assert_eq!(drawings.len(), 2, "one for each screen");
    for drawing in drawings {
        let texts = drawing.descendants().filter(|n| n.has_tag_name("text"));
        let words: Vec<&str> =
            texts.filter_map(|n| n.text()).flat_map(str::split_whitespace).collect();
        let words = format!(" {} ", words.join(" "));
        for group in sample::GROUPS {
            assert!(words.contains(&format!(" {group} ")), "{group}: {words}");
        }
    }
}

/// The plot of latencies of `pipelining` drew the first server in the second colour, because the
/// bars in front of it had the first ones.
#[test]
fn a_server_has_one_colour_in_all_reports() {
    let document = sample::document();
    for only in 0..=document.sections.len() {
        let mut document = document.clone();
        if only < document.sections.len() {
            document.sections = vec![document.sections.swap_remove(only)];
        }
        let page = html(&document, &sample::machine());
        let tree = parse(&page);
        for item in tree.descendants().filter(|n| n.has_tag_name("li")) {
            let swatch = item.children().find(|n| n.attribute("class") == Some("swatch"));
            let (Some(swatch), Some(name)) = (swatch, item.last_child().and_then(|n| n.text()))
            else {
                continue;
            };
            let colour = swatch.first_element_child().expect("a line or a bar");
            let colour = colour.attribute("stroke").or(colour.attribute("fill"));
            match name {
                "sheafdb" => assert_eq!(colour, Some("var(--s0)"), "section {only}"),
                "redis-server" => assert_eq!(colour, Some("var(--s1)"), "section {only}"),
                "as it is" => assert_ne!(colour, Some("var(--s0)"), "section {only}"),
                _ => {}
            }
        }
    }
}

/// Width, height and pixels as RGB.
fn pixels(picture: &Path) -> (u32, u32, Vec<[u8; 3]>) {
    let file = std::io::BufReader::new(std::fs::File::open(picture).expect("it was written"));
    let mut reader = png::Decoder::new(file).read_info().expect("a picture");
    let mut bytes = vec![0; reader.output_buffer_size().expect("it fits")];
    let info = reader.next_frame(&mut bytes).expect("a whole picture");
    let step = info.color_type.samples();
    let pixels = bytes[..info.buffer_size()].chunks(step).map(|p| [p[0], p[1], p[2]]).collect();
    (info.width, info.height, pixels)
}

/// The number of pixels with exactly this colour, written `#rrggbb`.
fn painted(pixels: &[[u8; 3]], colour: &str) -> usize {
    let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour");
    let wanted = [part(1), part(3), part(5)];
    pixels.iter().filter(|pixel| **pixel == wanted).count()
}

/// Paper, ink and the colours of the first three series, as in `page.css`.
const LIGHT: [&str; 5] = ["#ffffff", "#1d2026", "#0072b2", "#d55e00", "#008a66"];
const DARK: [&str; 5] = ["#15181d", "#e4e7eb", "#4aa8e8", "#ff8b3d", "#2fc79c"];

#[test]
fn a_browser_renders_both_colour_schemes_without_network_requests() {
    let network = Network::start();
    let path = write("sample.html", &page());
    let (light, dark) = std::thread::scope(|scope| {
        let dark = scope.spawn(|| screenshot(&path, true, (1000, 8400), &network));
        (screenshot(&path, false, (1000, 8400), &network), dark.join().expect("it was taken"))
    });
    for (picture, shown, hidden) in [(light, LIGHT, DARK), (dark, DARK, LIGHT)] {
        let (width, height, pixels) = pixels(&picture);
        assert_eq!((width, height), (1000, 8400));
        let paper = painted(&pixels, shown[0]);
        assert!(paper * 2 > pixels.len() && paper * 50 < pixels.len() * 49, "{paper} of paper");
        for colour in &shown[1..] {
            assert!(painted(&pixels, colour) > 500, "{colour} is missing in {}", picture.display());
        }
        assert!(painted(&pixels, hidden[0]) < pixels.len() / 100, "the other scheme shows");
    }
    assert_eq!(network.asked(), Vec::<String>::new());
}

/// Checks the proxy used above: the request of a page which loads a part is recorded.
#[test]
fn a_network_request_of_a_page_is_recorded() {
    let network = Network::start();
    let text = "<html><body><img src=\"http://example.invalid/x.png\"/>\
                <img src=\"https://fonts.googleapis.com/x.png\"/></body></html>";
    screenshot(&write("asks.html", text), false, (1000, 300), &network);
    let asked = network.asked();
    for part in ["GET http://example.invalid/x.png", "CONNECT fonts.googleapis.com:443"] {
        assert!(asked.iter().any(|line| line.contains(part)), "{asked:?}");
    }
}
