//! The commands of each family, as templates for the generator.

pub mod bitmap;
pub mod database;
pub mod generic;
pub mod hyperloglog;
pub mod string;
pub mod transactions;

use super::generate::{Args, Dice};

/// A template and how often it is taken, relative to the others of its family.
type Template = (usize, &'static str);

/// One command by weight. `A|B` inside a template takes one of the alternatives; `[X Y]` is there
/// half of the time; `{X}` repeats one to three times.
fn draw(dice: &mut Dice, templates: &[Template]) -> Args {
    let total: usize = templates.iter().map(|(weight, _)| weight).sum();
    let mut at = dice.rng.below(total);
    let template = templates
        .iter()
        .find(|(weight, _)| {
            let hit = at < *weight;
            at = at.saturating_sub(*weight);
            hit
        })
        .map(|(_, template)| *template)
        .expect("the draw is below the sum of the weights");
    let text = expand(dice, template);
    dice.words(&text)
}

fn expand(dice: &mut Dice, template: &str) -> String {
    let mut out = Vec::new();
    let mut rest = template.trim_start();
    while !rest.is_empty() {
        let (open, close) = match rest.as_bytes()[0] {
            b'[' => ('[', ']'),
            b'{' => ('{', '}'),
            _ => (' ', ' '),
        };
        if open == ' ' {
            let end = rest.find(' ').unwrap_or(rest.len());
            let choices: Vec<&str> = rest[..end].split('|').collect();
            out.push(dice.rng.pick(&choices).replace('+', " "));
            rest = rest[end..].trim_start();
            continue;
        }
        let end = rest.find(close).expect("templates are balanced");
        let inner = &rest[1..end];
        let times = if open == '{' { 1 + dice.rng.below(3) } else { dice.rng.below(2) };
        for _ in 0..times {
            out.push(expand(dice, inner));
        }
        rest = rest[end + 1..].trim_start();
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn templates_expand() {
        let mut dice = Dice::new(Rng::new(1));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            seen.insert(expand(&mut dice, "SET a [NX|EX+5] {b}"));
        }
        for wanted in ["SET a b", "SET a NX b", "SET a EX 5 b b b"] {
            assert!(seen.contains(wanted), "{wanted} in {seen:?}");
        }
        assert_eq!(seen.len(), 9);
    }
}
