//! Passwords do not go into the slow log, nor to MONITOR.

use command::CommandSpec;
use command::spec::Secrets;
use config::is_secret;
use resp::Args;

const HIDDEN: &[u8] = b"(redacted)";

/// The arguments as MONITOR may show them.
pub fn redacted<'a>(spec: &CommandSpec, args: Args<'a>) -> Vec<&'a [u8]> {
    let secrets = secrets(spec, args).into_iter().enumerate();
    secrets.map(|(at, is_secret)| if is_secret { HIDDEN } else { args.get(at) }).collect()
}

/// The first bytes of the arguments as the slow log may show them, and their lengths. No argument
/// is copied.
pub fn starts<'a>(spec: &CommandSpec, args: Args<'a>) -> Vec<(&'a [u8], usize)> {
    let shown = |(at, is_secret)| {
        if is_secret { (HIDDEN, HIDDEN.len()) } else { (args.start(at), args.len_of(at)) }
    };
    secrets(spec, args).into_iter().enumerate().map(shown).collect()
}

/// Which arguments are secret.
fn secrets(spec: &CommandSpec, args: Args<'_>) -> Vec<bool> {
    let mut secrets = vec![false; args.len()];
    let word = |at: usize| args.start(at);
    match spec.secrets {
        Secrets::Credentials => hide(&mut secrets, 1, 2),
        Secrets::BehindAuth => {
            let mut at = 2;
            while at < args.len() {
                let (hidden, names) = match word(at).to_ascii_lowercase().as_slice() {
                    b"auth" => (2, 0),
                    b"setname" => (0, 1),
                    _ => (0, 0),
                };
                hide(&mut secrets, at + 1, hidden);
                at += 1 + hidden + names;
            }
        }
        Secrets::OfTarget => {
            let mut at = 6;
            while at < args.len() && !word(at).eq_ignore_ascii_case(b"keys") {
                let hidden = match word(at).to_ascii_lowercase().as_slice() {
                    b"auth" => 1,
                    b"auth2" => 2,
                    _ => 0,
                };
                hide(&mut secrets, at + 1, hidden);
                at += 1 + hidden;
            }
        }
        Secrets::Settings => {
            for at in (2..args.len()).step_by(2) {
                if is_secret(word(at)) {
                    hide(&mut secrets, at + 1, 1);
                }
            }
        }
        Secrets::None => {}
    }
    secrets
}

fn hide(secrets: &mut [bool], from: usize, n: usize) {
    secrets.iter_mut().skip(from).take(n).for_each(|secret| *secret = true);
}
