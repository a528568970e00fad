//! Values of options: ranges, ratios, patterns of keys.

use crate::load::Pattern;

const ZIPF_DEFAULT: f64 = 0.99;

/// The keys of SET and of GET.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyPattern {
    /// Those of SET.
    pub set: Pattern,
    /// Those of GET.
    pub get: Pattern,
}

/// `10-100`, or `10`.
pub fn range(text: &str) -> Result<(usize, usize), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok((low, high)),
        _ => Err("a range is written as in 10-100".to_owned()),
    }
}

/// `1:10`.
pub fn ratio(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once(':').map(|(a, b)| (a.parse::<u32>(), b.parse::<u32>()));
    match pair {
        Some((Ok(sets), Ok(gets))) if sets > 0 || gets > 0 => Ok((sets, gets)),
        _ => Err("a ratio is written as in 1:10".to_owned()),
    }
}

/// `R:Z` and the like, of the letters R, Z, G, S and P.
pub fn key_pattern(text: &str) -> Result<KeyPattern, String> {
    let one = |letter: &str| match letter {
        "R" => Some(Pattern::Uniform),
        "Z" => Some(Pattern::Zipf { exponent: ZIPF_DEFAULT }),
        "G" => Some(Pattern::Gaussian),
        "S" => Some(Pattern::Sequential),
        "P" => Some(Pattern::Parallel),
        _ => None,
    };
    text.split_once(':')
        .and_then(|(set, get)| Some(KeyPattern { set: one(set)?, get: one(get)? }))
        .ok_or_else(|| "a key pattern is two of R, Z, G, S and P, as in R:R".to_owned())
}

/// `uniform`, `zipf:0.99`, `hot-set:0.2,0.8` ...
pub fn pattern(text: &str) -> Result<Pattern, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
    let numbers: Vec<f64> = value
        .map(|value| value.split(',').map(str::parse::<f64>).collect::<Result<_, _>>())
        .transpose()
        .map_err(|_| format!("'{text}': what stands behind the colon are no numbers"))?
        .unwrap_or_default();
    match (name, &numbers[..]) {
        ("uniform", []) => Ok(Pattern::Uniform),
        ("zipf", []) => Ok(Pattern::Zipf { exponent: ZIPF_DEFAULT }),
        ("zipf", &[exponent]) => Ok(Pattern::Zipf { exponent }),
        ("hot-set", []) => Ok(Pattern::HotSet { keys: 0.2, requests: 0.8 }),
        ("hot-set", &[keys, requests]) => Ok(Pattern::HotSet { keys, requests }),
        ("gaussian", []) => Ok(Pattern::Gaussian),
        ("sequential", []) => Ok(Pattern::Sequential),
        ("parallel", []) => Ok(Pattern::Parallel),
        _ => {
            Err("one of uniform, zipf[:EXPONENT], hot-set[:KEYS,REQUESTS], gaussian, sequential, \
                  parallel"
                .to_owned())
        }
    }
}
