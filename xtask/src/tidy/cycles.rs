//! Import cycles: files of one crate which import each other, directly or through others. To
//! understand one of them a reader must know all, so their number may not grow.

use std::collections::{BTreeMap, BTreeSet};

use super::counts::Found;
use super::tree::{Tree, production_lines};

/// The crates which are checked, and the name of their count.
const CRATES: &[(&str, &str)] = &[
    ("server", "files in import cycles of server"),
    ("command", "files in import cycles of command"),
    ("value", "files in import cycles of value"),
    ("bench", "files in import cycles of bench"),
];

/// Collects the files which are part of a cycle.
pub fn count(tree: &Tree, found: &mut Found) {
    for (name, kind) in CRATES {
        let places = found.kind(kind);
        let imports = imports(tree, &format!("crates/{name}/src/"));
        for (file, cycle) in cycles(&imports) {
            places.push(format!("{file}: with {}", cycle.join(", ")));
        }
    }
}

/// The path of a module from the root of its crate.
type Module = Vec<String>;

/// What each file imports of the same crate.
fn imports<'a>(tree: &'a Tree, folder: &str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let files: BTreeMap<Module, &str> = tree
        .rust()
        .filter_map(|(path, _)| Some((module(path.strip_prefix(folder)?), path)))
        .collect();
    let of = |(own, path): (&Module, &&'a str)| {
        let text = tree.file(path).expect("it was found there");
        let named = paths(path, text).into_iter().filter_map(|named| {
            let wanted = absolute(own, &named, &files)?;
            // The deepest module on the path defines what it names.
            let file = (0..=wanted.len()).rev().find_map(|end| files.get(&wanted[..end]))?;
            (file != path).then_some(*file)
        });
        (*path, named.collect())
    };
    files.iter().map(of).collect()
}

/// The module that a file holds.
fn module(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main" | "mod") {
        return Module::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// From the crate's root, if the path leads into the crate.
fn absolute(own: &Module, named: &str, files: &BTreeMap<Module, &str>) -> Option<Module> {
    let mut words = named.split("::").peekable();
    let mut at = match *words.peek()? {
        "crate" => Module::new(),
        "self" | "super" => own.clone(),
        first => {
            // A child of this module.
            let child = [&own[..], &[first.to_owned()]].concat();
            if !files.contains_key(&child) {
                return None;
            }
            own.clone()
        }
    };
    for word in words {
        match word {
            "crate" | "self" => {}
            "super" => {
                at.pop();
            }
            name => at.push(name.to_owned()),
        }
    }
    Some(at)
}

/// The paths which production code imports, and paths in code which start with `crate` or `super`.
fn paths(path: &str, text: &str) -> Vec<String> {
    let (mut found, mut declaration) = (Vec::new(), None::<String>);
    for (_, line) in production_lines(path, text) {
        let line = line.trim();
        let opened = ["use ", "pub use "].iter().find_map(|word| line.strip_prefix(word));
        let opened = opened.or_else(|| Some(line.strip_prefix("pub(")?.split_once(") use ")?.1));
        match (&mut declaration, opened) {
            (Some(text), _) => text.push_str(line),
            (None, Some(rest)) => declaration = Some(rest.to_owned()),
            (None, None) => found.extend(written_out(line)),
        }
        if declaration.as_ref().is_some_and(|text| text.ends_with(';')) {
            let text = declaration.take().expect("it was looked at");
            expand("", text.trim_end_matches(';'), &mut found);
        }
    }
    found
}

/// The paths in `a::{b, c::{d, e}}`, each with the prefix `before`.
fn expand(before: &str, text: &str, found: &mut Vec<String>) {
    let Some((head, rest)) = text.split_once('{') else {
        let path = text.split(" as ").next().unwrap_or_default();
        found.push(format!("{before}{}", path.trim()));
        return;
    };
    let before = format!("{before}{}", head.trim());
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inside[from..at].trim().is_empty() {
                    expand(&before, inside[from..at].trim(), found);
                }
                from = (at + 1).min(inside.len());
            }
            _ => {}
        }
    }
}

/// `crate::a::B` and `super::a` in the middle of code.
fn written_out(line: &str) -> impl Iterator<Item = String> {
    ["crate::", "super::"].into_iter().flat_map(move |word| {
        line.match_indices(word).filter_map(move |(at, _)| {
            let inside = line[..at].chars().next_back();
            if inside.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                return None;
            }
            let rest = &line[at..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            Some(rest[..end.unwrap_or(rest.len())].trim_end_matches(':').to_owned())
        })
    })
}

/// Each file that can be reached from itself, with the others of its cycle.
fn cycles<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<(&'a str, Vec<&'a str>)> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|from| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![*from]);
            while let Some(file) = next.pop() {
                next.extend(imports[file].iter().filter(|file| reached.insert(**file)));
            }
            (*from, reached)
        })
        .collect();
    let cycle = |(file, reached_here): (&&'a str, &BTreeSet<&'a str>)| {
        let back = |other: &&&'a str| *other != file && reached[*other].contains(*file);
        let with: Vec<&str> = reached_here.iter().filter(back).copied().collect();
        (!with.is_empty()).then_some((*file, with))
    };
    reached.iter().filter_map(cycle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_cycles(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Found::default();
        let place = |name: &str| format!("crates/server/src/{name}.rs");
        let files: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (place(name), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        count(&Tree::of(&files), &mut found);
        let name =
            |place: &String| Some(place.strip_prefix("files in import cycles of server: ")?.into());
        let text = |text: String| text.replace("crates/server/src/", "").replace(".rs", "");
        found.places().filter_map(|place| name(&place).map(text)).collect()
    }

    #[test]
    fn mutual_imports_are_a_cycle() {
        let found = in_cycles(&[
            ("lib", "mod a; mod b;"),
            ("a", "use crate::b::B;"),
            ("b", "use std::io;\npub(crate) use super::{\n    a::{A, C},\n};"),
            ("c", "use crate::a::A;"),
        ]);
        assert_eq!(found, ["a: with b", "b: with a"]);
    }

    #[test]
    fn long_cycles_are_found() {
        let found = in_cycles(&[
            ("a", "fn f() { crate::b::g(); }"),
            ("b/mod", "use c::C;"),
            ("b/c", "use super::super::a;"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        let broken = in_cycles(&[
            ("a", "fn f() { crate::b::g(); }"),
            ("b/mod", "use c::C;"),
            ("b/c", "use std::super_a;"),
        ]);
        assert!(broken.is_empty(), "{broken:?}");
    }

    #[test]
    fn imports_of_tests_are_ignored() {
        let text = "use crate::b::B;\n#[cfg(test)]\nmod tests { use super::*; }\n";
        assert!(in_cycles(&[("a", text), ("b", "fn f() {}\n")]).is_empty());
        let found = in_cycles(&[("a", "use crate::b::B;"), ("b/tests", "use crate::a::A;")]);
        assert!(found.is_empty(), "{found:?}");
    }
}
