//! The syntax of targets.

use super::*;

fn parsed(text: &str) -> Kind {
    Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).kind
}

fn refused(text: &str) -> String {
    match Target::parse(text) {
        Ok(target) => panic!("{text} is {target:?}"),
        Err(error) => error.to_string(),
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn server(program: &str, more: &[&str]) -> Kind {
    Kind::Server(Server::named(program).expect("known"), strings(more))
}

#[test]
fn servers_accept_further_arguments() {
    assert_eq!(parsed("sheafdb"), server("sheafdb", &[]));
    let more = ["--io-threads", "2", "--save", "a b"];
    assert_eq!(parsed("redis-server --io-threads 2 --save 'a b'"), server("redis-server", &more));
    let target = Target::parse("valkey-server --io-threads 2").expect("known");
    let target = target.with_args(&["--save", "a b"]);
    assert_eq!(target.kind, server("valkey-server", &more));
}

#[test]
fn any_target_can_have_a_label() {
    let target = Target::parse("two=sheafdb --threads 2").expect("known");
    assert_eq!(target.name(), "two");
    assert_eq!(target.kind, parsed("sheafdb --threads 2"));
    let target = Target::parse("model:pool,threads=4").expect("known");
    assert_eq!(target.name(), "model:pool,threads=4");
}

#[test]
fn running_servers_are_given_by_port_or_socket() {
    for text in ["localhost:6379", "10.0.0.1:1", "[::1]:6379"] {
        assert_eq!(parsed(text), Kind::Tcp(text.to_owned()));
    }
    assert_eq!(parsed("unix:/a/b"), Kind::Unix("/a/b".into()));
    let path = std::env::temp_dir().join(format!("sheafdb-target-{}", std::process::id()));
    let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let kind = parsed(path.to_str().expect("a plain path"));
    drop(socket);
    fs::remove_file(&path).expect("it is there");
    assert_eq!(kind, Kind::Unix(path));
}

#[test]
fn programs_are_given_with_their_address() {
    let words = strings(&["./server", "-p", "{port}", ""]);
    assert_eq!(parsed("./server -p {port} ''"), Kind::Program(words));
    assert!(matches!(parsed("server --unix {sock}"), Kind::Program(_)));
    for text in ["./server -p 80", "nowhere", "host:", ":80", "host:99999", "", "'"] {
        assert!(!refused(text).is_empty());
    }
    assert!(refused("./server").contains("{port} or {sock}"));
}

#[test]
fn models_accept_the_options_of_serve() {
    let Kind::Model(args, awaits) = parsed("model:pool,threads=4,nodelay=no") else {
        panic!("a model");
    };
    assert_eq!(args, ["serve", "pool", "--threads=4", "--nodelay=no"]);
    assert_eq!(awaits, Awaits::Reply);
    for text in ["model:event-loop,flush=strand", "model:null-reader", "model:echo-ack"] {
        assert!(matches!(parsed(text), Kind::Model(_, Awaits::Line)), "{text}");
    }
    for text in ["model:nothing", "model:pool,threads", "model:pool,threads=0", "model:pool,x=1"] {
        assert!(refused(text).contains(text), "{text}");
    }
}

#[test]
fn consecutive_ports_are_free() {
    let base = free_ports(5).expect("five ports");
    let all: Vec<_> = (0..5).map(|n| TcpListener::bind(("127.0.0.1", base + n))).collect();
    assert!(all.iter().all(Result::is_ok), "{base}");
}

#[test]
fn missing_parts_are_reported() {
    let target = Target::parse("/nowhere/at/all {port}").expect("well formed");
    assert!(!target.is_there());
    assert_eq!(
        target.start().expect_err("it is not there").to_string(),
        "/nowhere/at/all is not there"
    );
}
