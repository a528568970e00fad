//! Folders of `tests/aof/files`, which servers of later releases wrote, are loaded with the state
//! which was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::program::{finish, root, spawn};
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::server_process::{Binary, ServerProcess};

use super::{assert_same, copy_folder, rewrite};

/// The folders.
fn recorded() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/aof/files")).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a name").path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}

/// What a server has that is recorded: no functions, and not when consumers were seen.
fn data(state: &str) -> String {
    let lines = state.lines().filter(|line| !line.starts_with("function "));
    let line = |line: &str| match line.find(" seen ").filter(|_| line.starts_with("  consumer ")) {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

fn held(server: &ServerProcess) -> String {
    data(&state(&mut server.connect(), false))
}

/// A copy of a folder, and the arguments of a server which is to load it.
fn copy(path: &Path, args: &str) -> (Folder, Vec<String>) {
    let folder = Folder::new("aof-recorded");
    let mut words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    let named = words.iter().position(|word| word == "--appenddirname");
    let name = named.map_or("appendonlydir", |at| words[at + 1].as_str());
    copy_folder(path, &folder.at(name));
    words.extend(["--dir", folder.path(), "--appendonly", "yes"].map(str::to_owned));
    (folder, words)
}

fn start(words: &[String], threads: &str) -> ServerProcess {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--threads", threads]).collect();
    ServerProcess::start(&Binary::under_test(), &words)
}

/// As they are, behind a rewrite of ours, and `check-aof` finds them whole.
#[test]
fn folders_of_other_servers_are_loaded_with_the_recorded_state() {
    let all = recorded();
    assert!(all.len() >= 6, "{all:?}");
    for path in all {
        let what = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(format!("{}.txt", path.display()));
        let text = text.expect("its state is beside it");
        let (args, expected) = match text.strip_prefix("args ") {
            Some(rest) => rest.split_once('\n').expect("a line"),
            None => ("", text.as_str()),
        };
        let expected = data(expected);
        let names = fs::read_dir(&path).expect("a folder");
        let names = names.map(|entry| entry.expect("a name").path());
        let ends = |path: &PathBuf| path.extension().is_some_and(|end| end == "manifest");
        let manifest = names.into_iter().find(ends).expect("a manifest");
        let mut check = Command::new(Binary::under_test().path);
        let out = finish(spawn(check.arg("check-aof").arg(&manifest)));
        assert!(out.status.success(), "{what}: {}", String::from_utf8_lossy(&out.stdout));
        for threads in ["1", "4"] {
            let (_folder, words) = copy(&path, args);
            let server = start(&words, threads);
            assert_same(&expected, &held(&server), &format!("{what}, {threads} threads"));
            rewrite(&server);
            drop(server);
            let again = held(&start(&words, threads));
            assert_same(&expected, &again, &format!("{what}, rewritten, {threads} threads"));
        }
    }
}
