//! Figures of INFO that nothing else asks for.

use std::time::{Duration, Instant};

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Fields that expire are counted, whoever removes them: the sweep, or who comes upon them. Those that are
/// removed at once by a time in the past have not expired.
#[test]
fn expired_fields_are_counted() {
    for sweep in ["0", "1"] {
        let server = ServerProcess::start(&Binary::under_test(), &[]);
        let wire = &mut server.connect();
        ask(wire, &format!("DEBUG SET-ACTIVE-EXPIRE {sweep}"));
        ask(wire, "HSET h a 1 b 2 c 3 d 4");
        ask(wire, "HPEXPIRE h 20 FIELDS 2 a b");
        ask(wire, "HPEXPIRE h 0 FIELDS 1 c");
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        while figure(wire, "stats", "expired_subkeys") != 2 {
            assert!(began.elapsed() < Duration::from_secs(5), "two fields expire");
            if sweep == "0" {
                assert_eq!(ask(wire, "HSET h x 1"), Value::Int(1));
                ask(wire, "HDEL h x");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(ask(wire, "HLEN h"), Value::Int(1));
        assert_eq!(figure(wire, "stats", "expired_keys"), 0);
        // All that a key holds at once: the key goes with its last field.
        ask(wire, "HSET all a 1 b 2 c 3");
        ask(wire, "HPEXPIRE all 20 FIELDS 3 a b c");
        std::thread::sleep(Duration::from_millis(30));
        while figure(wire, "stats", "expired_subkeys") != 5 {
            assert!(began.elapsed() < Duration::from_secs(5), "three more expire");
            if sweep == "0" {
                assert_eq!(ask(wire, "EXISTS all"), Value::Int(0));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        ask(wire, "CONFIG RESETSTAT");
        assert_eq!(figure(wire, "stats", "expired_subkeys"), 0);
    }
}
