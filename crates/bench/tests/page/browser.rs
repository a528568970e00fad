//! Headless Chromium, and a proxy as its only network.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// The path of the browser, or how to install it.
fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
        .expect("this test needs chromium: make deps")
}

/// A proxy which answers nothing and records the requests.
pub struct Network {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Network {
    /// Listens on a free port of this machine until the test ends.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut line = String::new();
                if BufReader::new(&stream).read_line(&mut line).is_ok() {
                    heard.lock().expect("nobody panics with it").push(line.trim().to_owned());
                }
                // The peer may have closed.
                let _ = stream.write_all(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self { address, asked }
    }

    /// The recorded request lines, without the browser's own: clock, updates, account.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("nobody panics with it");
        asked.iter().filter(|line| !OWN.contains(&host(line))).cloned().collect()
    }
}

/// Hosts which the browser contacts on every start, whatever it shows. None of them serves parts of
/// pages.
const OWN: &[&str] = &[
    "accounts.google.com",
    "android.clients.google.com",
    "clients2.google.com",
    "clientservices.googleapis.com",
    "content-autofill.googleapis.com",
    "edgedl.me.gvt1.com",
    "optimizationguide-pa.googleapis.com",
    "redirector.gvt1.com",
    "safebrowsing.googleapis.com",
    "safebrowsingohttpgateway.googleapis.com",
    "update.googleapis.com",
];

/// The host in `GET http://HOST/PATH HTTP/1.1` or `CONNECT HOST:443 HTTP/1.1`.
fn host(line: &str) -> &str {
    let target = line.split(' ').nth(1).unwrap_or_default();
    let target = target.split_once("://").map_or(target, |(_, rest)| rest);
    target.split(['/', ':']).next().unwrap_or_default()
}

/// Renders `page` in the given colour scheme and returns the picture's path.
pub fn screenshot(
    page: &Path,
    dark: bool,
    (width, height): (u32, u32),
    network: &Network,
) -> PathBuf {
    let scheme = if dark { "dark" } else { "light" };
    let picture = page.with_extension(format!("{scheme}.png"));
    let profile = page.with_extension(format!("{scheme}.profile"));
    let file = |path: &Path| path.to_str().expect("target folders are text").to_owned();
    let output = Command::new(chromium())
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--disable-extensions", "--disable-default-apps"])
        .arg(format!("--proxy-server=http://{}", network.address))
        .arg("--proxy-bypass-list=<-loopback>")
        .arg(format!("--user-data-dir={}", file(&profile)))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--screenshot={}", file(&picture)))
        .arg(format!("file://{}", file(page)))
        .output()
        .expect("chromium can be started");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && picture.is_file(), "chromium: {messages}");
    // Failing to remove it only wastes disk space.
    let _ = std::fs::remove_dir_all(&profile);
    picture
}
