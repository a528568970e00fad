//! Passwords do not go into the slow log, nor to MONITOR.

use command::CommandSpec;
use command::spec::Secrets;
use config::is_secret;
use resp::Args;

const HIDDEN: &[u8] = b"(redacted)";

/// The arguments as the slow log may show them.
pub fn redacted<'a>(spec: &CommandSpec, args: Args<'a>) -> Vec<&'a [u8]> {
    let mut shown: Vec<&[u8]> = args.iter().collect();
    match spec.secrets {
        Secrets::Credentials => hide(&mut shown, 1, 2),
        Secrets::BehindAuth => {
            let mut at = 2;
            while at < shown.len() {
                let (secrets, names) = match shown[at].to_ascii_lowercase().as_slice() {
                    b"auth" => (2, 0),
                    b"setname" => (0, 1),
                    _ => (0, 0),
                };
                hide(&mut shown, at + 1, secrets);
                at += 1 + secrets + names;
            }
        }
        Secrets::OfTarget => {
            let mut at = 6;
            while at < shown.len() && !shown[at].eq_ignore_ascii_case(b"keys") {
                let secrets = match shown[at].to_ascii_lowercase().as_slice() {
                    b"auth" => 1,
                    b"auth2" => 2,
                    _ => 0,
                };
                hide(&mut shown, at + 1, secrets);
                at += 1 + secrets;
            }
        }
        Secrets::Settings => {
            for at in (2..shown.len()).step_by(2) {
                if is_secret(shown[at]) {
                    hide(&mut shown, at + 1, 1);
                }
            }
        }
        Secrets::None => {}
    }
    shown
}

fn hide(shown: &mut [&[u8]], from: usize, n: usize) {
    for arg in shown.iter_mut().skip(from).take(n) {
        *arg = HIDDEN;
    }
}
