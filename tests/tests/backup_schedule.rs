//! Backups which a server makes of itself. The schedule is each second, and the tests wait for what
//! must come of it, however long that takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::{Folder, names};
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::Wire;

/// `rdb-key-save-delay` of a save that ends when it is set to 0.
const ENDLESS: &str = "2000000000";

/// A server with its files in a folder; `None` if the reference is under test.
fn start(folder: &Folder, extra: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let own = ["--dir", folder.path(), "--enable-protected-configs", "yes"];
    let args: Vec<&str> = own.iter().chain(extra).copied().collect();
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, &args))
}

fn ask(wire: &mut Wire, words: &[&str]) -> String {
    render::line(&wire.command(words).expect("the connection is open"))
}

#[track_caller]
fn set(wire: &mut Wire, name: &str, value: &str) {
    assert_eq!(ask(wire, &["CONFIG", "SET", name, value]), "+OK", "{name}");
}

/// Waits until a figure of INFO is at least this.
#[track_caller]
fn await_figure(wire: &mut Wire, name: &str, least: i64) {
    let what = format!("{name} is at least {least}");
    until(&what, || figure(wire, "persistence", name) >= least);
}

/// Ends the schedule, and waits until no backup is under way.
fn end_schedule(wire: &mut Wire) {
    set(wire, "backup-schedule", "");
    until("the backup ends", || figure(wire, "persistence", "backup_in_progress") == 0);
}

/// What `verify-backup` says about a backup, which must be whole.
#[track_caller]
fn verified(backup: &Path) -> String {
    let mut command = Command::new(Binary::under_test().path);
    let told = command.arg("verify-backup").arg(backup).stdin(Stdio::null()).output();
    let told = told.expect("it runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8_lossy(&told.stdout).into_owned()
}

fn backups(folder: &Path) -> Vec<PathBuf> {
    names(folder).iter().map(|name| folder.join(name)).collect()
}

#[test]
fn a_schedule_makes_whole_backups_and_keeps_the_newest() {
    let folder = Folder::new("schedule-keep");
    let settings = ["--backup-schedule", "1s", "--backup-keep", "2"];
    let Some(server) = start(&folder, &settings) else { return };
    let root = folder.at("backups");
    let wire = &mut server.connect();
    ask(wire, &["SET", "a", "1"]);
    ask(wire, &["SELECT", "3"]);
    ask(wire, &["RPUSH", "list", "x", "y"]);
    await_figure(wire, "backup_last_time", 1);
    // What the operator has put there is not touched.
    fs::create_dir(root.join("sheafdb-20200101T000000Z")).expect("a folder");
    fs::write(root.join("sheafdb-20200101T000000Z/notes"), "mine").expect("a file");
    let elsewhere = folder.at("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    for name in ["dump.rdb", "manifest.json"] {
        fs::write(elsewhere.join(name), "mine").expect("a file");
    }
    symlink(&elsewhere, root.join("sheafdb-20200102T000000Z")).expect("a link");
    await_figure(wire, "backups_made", 5);
    // Reported as it is; and the file of the server is not written.
    assert_eq!(figure(wire, "persistence", "backups_failed"), 0);
    assert!(figure(wire, "persistence", "backup_next_time") > 0);
    assert_eq!(figure(wire, "persistence", "rdb_changes_since_last_save"), 3);
    assert!(!folder.file().exists());
    end_schedule(wire);
    assert_eq!(figure(wire, "persistence", "backup_next_time"), 0);
    let made = backups(&root);
    assert_eq!(made.len(), 4, "{made:?}");
    assert!(made[0].join("notes").exists());
    assert!(made[1].is_symlink(), "{made:?}");
    assert_eq!(names(&elsewhere), ["dump.rdb", "manifest.json"], "what a link leads to");
    for backup in &made[2..] {
        assert_eq!(names(backup), ["dump.rdb", "manifest.json"]);
        assert!(verified(backup).starts_with("2 keys of 2 databases, "));
    }
    let last = figure(wire, "persistence", "backup_last_bytes") as u64;
    let newest = &made[3];
    assert_eq!(fs::metadata(newest.join("dump.rdb")).expect("a file").len(), last);
    let (log, path) = (server.log(), newest.display());
    assert!(log.contains(&format!("Backup {path}: 2 keys, {last} bytes in ")), "{log}");
    assert!(log.contains("Old backup removed: "), "{log}");

    let restored =
        ServerProcess::start(&Binary::under_test(), &["--dir", newest.to_str().expect("plain")]);
    let wire = &mut restored.connect();
    assert_eq!(ask(wire, &["GET", "a"]), "\"1\"");
    ask(wire, &["SELECT", "3"]);
    assert_eq!(ask(wire, &["LLEN", "list"]), ":2");
}

/// The three settings change while the server runs.
#[test]
fn a_backup_that_fails_is_reported_and_stops_no_writes() {
    let folder = Folder::new("schedule-fails");
    let Some(server) = start(&folder, &["--save", "3600 1"]) else { return };
    let wire = &mut server.connect();
    ask(wire, &["SET", "a", "1"]);
    fs::write(folder.at("file"), "no folder").expect("a file");
    set(wire, "backup-dir", "file");
    set(wire, "backup-schedule", "1s");
    await_figure(wire, "backups_failed", 2);
    assert_eq!(ask(wire, &["SET", "a", "2"]), "+OK");
    let info = ask(wire, &["INFO", "persistence"]);
    assert!(info.contains("backup_last_status:err"), "{info}");
    assert!(info.contains("rdb_last_bgsave_status:ok"), "{info}");
    assert!(server.log().contains("Backup error: no "), "{}", server.log());
    assert_eq!(fs::read(folder.at("file")).expect("it is there"), b"no folder");

    set(wire, "backup-dir", folder.at("other").to_str().expect("plain"));
    set(wire, "backup-keep", "1");
    await_figure(wire, "backups_made", 3);
    end_schedule(wire);
    let info = ask(wire, &["INFO", "persistence"]);
    assert!(info.contains("backup_last_status:ok"), "{info}");
    let made = backups(&folder.at("other"));
    assert_eq!(made.len(), 1, "{made:?}");
    verified(&made[0]);
    for wrong in ["often", "0 25 * * *", "0s", "0 3 * *"] {
        let reply = ask(wire, &["CONFIG", "SET", "backup-schedule", wrong]);
        assert!(reply.starts_with("-ERR CONFIG SET failed"), "{wrong}: {reply}");
    }
    set(wire, "backup-schedule", "30 3 * * 1-5");
    let shown = ask(wire, &["CONFIG", "GET", "backup-schedule"]);
    assert!(shown.contains("30 3 * * 1-5"), "{shown}");
    let next = figure(wire, "persistence", "backup_next_time");
    assert_eq!(next % 86_400, 3 * 3600 + 30 * 60, "03:30 UTC");
}

/// FLUSHALL ends other saves, because their file would bring back what is gone. A backup is made
/// for that.
#[test]
fn a_backup_outlives_flushall() {
    let folder = Folder::new("schedule-flush");
    let Some(server) = start(&folder, &["--rdb-key-save-delay", ENDLESS]) else { return };
    let wire = &mut server.connect();
    for n in 0..100 {
        ask(wire, &["SET", &format!("key:{n}"), "value"]);
    }
    set(wire, "backup-schedule", "1s");
    await_figure(wire, "backup_in_progress", 1);
    assert_eq!(ask(wire, &["FLUSHALL"]), "+OK");
    set(wire, "backup-schedule", "");
    assert_eq!(figure(wire, "persistence", "backup_in_progress"), 1);
    set(wire, "rdb-key-save-delay", "0");
    await_figure(wire, "backups_made", 1);
    end_schedule(wire);
    let made = backups(&folder.at("backups"));
    assert!(verified(&made[0]).starts_with("100 keys of 1 databases, "));
}

/// A backup that is due during another save begins behind it.
#[test]
fn a_backup_waits_for_the_save_under_way() {
    let folder = Folder::new("schedule-waits");
    let Some(server) = start(&folder, &["--rdb-key-save-delay", ENDLESS]) else { return };
    let wire = &mut server.connect();
    for n in 0..100 {
        ask(wire, &["SET", &format!("key:{n}"), "value"]);
    }
    assert_eq!(ask(wire, &["BGSAVE"]), "+Background saving started");
    set(wire, "backup-schedule", "1s");
    let is_there = || folder.file().exists();
    let begins_early = |wire: &mut Wire| {
        // (In this order: a backup may begin as soon as the file is there.)
        figure(wire, "persistence", "backup_in_progress") == 1 && !is_there()
    };
    let due = Instant::now() + Duration::from_secs(3);
    while Instant::now() < due {
        assert!(!begins_early(wire), "both at a time");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_there(), "its save does not end yet");
    set(wire, "rdb-key-save-delay", "0");
    until("the save ends", || {
        assert!(!begins_early(wire), "both at a time");
        is_there()
    });
    await_figure(wire, "backups_made", 1);
    end_schedule(wire);
    assert_eq!(figure(wire, "persistence", "backups_failed"), 0);
}

/// A backup that was due in one second and got World in the next one has the name of the latter.
/// The backup that was due then had the same name, and failed.
#[test]
fn a_backup_whose_moment_comes_late_is_that_of_its_second() {
    let folder = Folder::new("schedule-late");
    let Some(server) = start(&folder, &["--threads", "4", "--backup-schedule", "1s"]) else {
        return;
    };
    // Connections of several threads: the one that begins backups must not be held.
    let mut holders: Vec<Wire> = (0..8).map(|_| server.connect()).collect();
    let wire = &mut server.connect();
    for holder in &mut holders {
        // Nobody gets World meanwhile. Each time it ends at another part of a second.
        assert_eq!(ask(holder, &["DEBUG", "HOLD", "key", "1.5"]), "+OK");
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(figure(wire, "persistence", "backups_failed"), 0, "{}", server.log());
    }
    await_figure(wire, "backups_made", 4);
    assert_eq!(figure(wire, "persistence", "backups_failed"), 0, "{}", server.log());
}

/// The end of the server does not wait for a backup, and nothing is left of it.
#[test]
fn the_end_gives_a_backup_up() {
    let folder = Folder::new("schedule-end");
    let Some(mut server) = start(&folder, &["--rdb-key-save-delay", ENDLESS]) else { return };
    let wire = &mut server.connect();
    for n in 0..1000 {
        ask(wire, &["SET", &format!("key:{n}"), "value"]);
    }
    set(wire, "backup-schedule", "1s");
    await_figure(wire, "current_save_keys_processed", 1);
    let backups = folder.at("backups");
    until("its folder is made", || backups.exists() && !names(&backups).is_empty());
    server.terminate();
    assert!(server.wait_exit(LIMIT).expect("it ends").success());
    assert!(names(&backups).is_empty(), "{}", server.log());
}

/// A backup that is made by hand waits for the one by schedule, and is not disturbed by the next
/// ones.
#[test]
fn a_backup_by_hand_is_made_during_another_one() {
    let folder = Folder::new("schedule-hand");
    let Some(server) = start(&folder, &["--rdb-key-save-delay", ENDLESS]) else { return };
    let wire = &mut server.connect();
    for n in 0..100 {
        ask(wire, &["SET", &format!("key:{n}"), "value"]);
    }
    set(wire, "backup-schedule", "1s");
    await_figure(wire, "backup_in_progress", 1);
    ask(wire, &["SET", "late", "value"]);
    let target = folder.at("by-hand");
    let mut command = Command::new(Binary::under_test().path);
    command.arg("backup").arg(&target).args(["--port", &server.addr.port().to_string()]);
    command.env_remove("SHEAFDB_PASSWORD").env_remove("REDISCLI_AUTH");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let by_hand = command.spawn().expect("it runs");
    // Most likely it waits by then.
    std::thread::sleep(Duration::from_millis(300));
    set(wire, "rdb-key-save-delay", "0");
    let told = by_hand.wait_with_output().expect("it runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert!(verified(&target).starts_with("101 keys of 1 databases, "));
    end_schedule(wire);
}
