//! A load made ready to run: commands encoded, distributions set up, decisions taken.

use super::error::Error;
use super::meaning::Meaning;
use super::sampler::Sampler;
use super::spec::{Command, Nil, Populate, Spec};
use super::template::{Data, Template, Token, tokens};

/// One command of the mix.
#[derive(Debug)]
pub struct Prepared {
    /// Its bytes.
    pub template: Template,
    /// Its keys.
    pub sampler: Sampler,
    /// What it must answer.
    pub meaning: Meaning,
    /// Nil is a failure.
    pub nil_fails: bool,
}

/// A load, ready.
#[derive(Debug)]
pub struct Plan {
    /// What was asked for.
    pub spec: Spec,
    /// Its commands.
    pub commands: Vec<Prepared>,
    /// The order in which a connection takes them, over and over.
    pub cycle: Vec<u16>,
    /// Replies must be judged one by one.
    pub checked: bool,
    /// If they need not: nil is a failure for all commands.
    pub nil_fails: bool,
    /// How many keys there are.
    pub keys: u64,
    /// Keys are written before the load begins.
    pub populate: bool,
}

impl Plan {
    /// Makes a load ready, or says why it cannot be.
    pub fn new(spec: &Spec) -> Result<Self, Error> {
        spec.check()?;
        let commands: Vec<Prepared> = spec.commands.iter().map(|one| prepared(spec, one)).collect();
        if spec.verify
            && let Some(at) = commands.iter().position(|one| one.meaning == Meaning::Other)
        {
            return Err(Error::Options(format!(
                "it is not known what '{}' must answer, so it cannot be verified",
                shown(&spec.commands[at])
            )));
        }
        let reads = commands.iter().any(|one| one.meaning.reads());
        if spec.misses > 0.0 && !reads {
            return Err(Error::Options("no command reads keys, so none can miss".to_owned()));
        }
        let populate = match spec.populate {
            Populate::Yes => true,
            Populate::No => false,
            Populate::Auto => reads && spec.nil != Nil::Allowed && spec.misses < 1.0,
        };
        let nil_fails = commands[0].nil_fails;
        let mixed = commands.iter().any(|one| one.nil_fails != nil_fails);
        let weights: Vec<u32> = spec.commands.iter().map(|one| one.weight).collect();
        Ok(Self {
            cycle: cycle(&weights),
            checked: spec.verify || spec.misses > 0.0 || mixed,
            nil_fails,
            keys: spec.keys.count(),
            spec: spec.clone(),
            populate,
            commands,
        })
    }
}

fn prepared(spec: &Spec, command: &Command) -> Prepared {
    let prefix = &spec.keys.prefix;
    let args: Vec<Vec<Token>> = command.args.iter().map(|arg| tokens(arg, prefix)).collect();
    let data = match spec.data {
        (low, high) if low != high => Data::Drawn,
        (len, _) if spec.verify => Data::Filled(len),
        (len, _) => Data::Constant(len),
    };
    let meaning = Meaning::of(&args);
    Prepared {
        template: if command.inline {
            Template::inline(&command.args)
        } else {
            Template::new(&args, prefix, data)
        },
        sampler: Sampler::new(command.pattern, spec.keys.count()),
        meaning,
        nil_fails: match spec.nil {
            Nil::ByCommand => meaning.nil_fails(),
            Nil::Fails => true,
            Nil::Allowed => false,
        },
    }
}

/// A command as one types it.
pub fn shown(command: &Command) -> String {
    let words: Vec<String> =
        command.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
    words.join(" ")
}

/// A sequence in which every command stands as often as its weight (reduced by common divisors),
/// evenly spread: the one that is most behind comes next. O(length times commands).
fn cycle(weights: &[u32]) -> Vec<u16> {
    let divisor = weights.iter().fold(0, |a, &b| common(a, b)).max(1);
    let weights: Vec<i64> = weights.iter().map(|&w| i64::from(w / divisor)).collect();
    let sum: i64 = weights.iter().sum();
    let mut behind = vec![0; weights.len()];
    (0..sum)
        .map(|_| {
            behind.iter_mut().zip(&weights).for_each(|(behind, weight)| *behind += weight);
            let at = (0..behind.len()).rev().max_by_key(|&at| behind[at]).unwrap_or(0);
            behind[at] -= sum;
            at as u16
        })
        .collect()
}

fn common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_distributes_commands_by_weight() {
        assert_eq!(cycle(&[1]), [0]);
        assert_eq!(cycle(&[10, 10]).len(), 2);
        let mix = cycle(&[1, 10]);
        assert_eq!((mix.len(), mix.iter().filter(|&&at| at == 0).count()), (11, 1));
        let even = cycle(&[3, 3, 6]);
        assert_eq!(even.len(), 4);
        assert!(even.windows(2).all(|pair| pair != [0, 0] && pair != [1, 1]), "{even:?}");
        assert!(cycle(&[0, 5]).iter().all(|&at| at == 1));
    }

    #[test]
    fn the_plan_follows_from_the_commands() {
        let spec = |words: &[&str]| Spec {
            commands: vec![Command::new(words)],
            connections: 1,
            ..Spec::default()
        };
        let get = spec(&["GET", "__key__"]);
        assert!(Plan::new(&get).expect("it can run").populate);
        assert!(!Plan::new(&spec(&["SET", "__key__", "x"])).expect("it can run").populate);
        let miss = Plan::new(&Spec { misses: 0.5, ..get.clone() }).expect("it can run");
        assert!(miss.checked && miss.populate);
        let relaxed = Plan::new(&Spec { nil: Nil::Allowed, ..get.clone() }).expect("it can run");
        assert!(!relaxed.populate && !relaxed.nil_fails && !relaxed.checked);
        let error = Plan::new(&Spec { verify: true, ..spec(&["LPUSH", "l", "x"]) });
        let error = error.expect_err("nobody knows its answer").to_string();
        assert!(error.contains("'LPUSH l x'"), "{error}");
        assert!(Plan::new(&Spec { misses: 0.5, ..spec(&["PING"]) }).is_err());
        let mut mixed = get;
        mixed.commands.push(Command::new(&["RPOP", "mylist"]));
        assert!(Plan::new(&mixed).expect("it can run").checked, "nil is right for one of them");
    }
}
