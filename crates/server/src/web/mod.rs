//! The admin port: the live page, `/metrics`, `/healthz` and `/readyz` over HTTP, on a thread of
//! its own.
//!
//! The thread reads what the workers publish for INFO and writes nothing that they read. Until the
//! first visitor it sleeps in one system call and has no runtime; afterwards it sleeps between
//! visits.

mod door;
mod health;
mod heat;
mod live;
pub mod metrics;
mod visitors;

use crate::figures::Figures;
use crate::log;
use crate::shared::Shared;
use crate::web::visitors::Visitors;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use base::sync::{Arc, Mutex};
use base::{MonoNs, UnixMs};
use config::table::{ADMIN_BIND, ADMIN_PORT};
use config::{Config, Secret};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Figures younger than this are shown again, which bounds the work that many visitors cause.
const FRESH_NS: u64 = 20_000_000;

const PAGE: &str = include_str!("page.html");
/// What the page may do: run what stands in it, and ask this server.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An open admin port which is not served yet.
#[derive(Debug)]
pub struct AdminPort {
    listener: TcpListener,
    addr: SocketAddr,
}

/// What a request is answered from.
pub struct Admin {
    shared: Arc<Shared>,
    /// Only this machine can reach the port.
    loopback: bool,
    /// The figures shown last.
    last: Mutex<Option<Arc<Figures>>>,
}

/// Opens the admin port; none if the settings want none, or if nobody asked for this one and either
/// it is taken or the server does not listen on TCP at all. The error is one line for the user.
pub fn open(config: &Config) -> Result<Option<AdminPort>, String> {
    let asked_for = config.is_named(ADMIN_PORT) || config.is_named(ADMIN_BIND);
    if config.admin_port == 0 || (config.port == 0 && !asked_for) {
        return Ok(None);
    }
    let addr = config.admin_bind.address(config.admin_port);
    let opened = addr.and_then(|addr| {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        Ok(AdminPort { addr: listener.local_addr()?, listener })
    });
    match opened {
        Ok(port) => {
            if !port.serves_page(config) {
                log::notice(format_args!(
                    "{} serves /healthz, /readyz and /metrics without a password; set admin-token to get the live page too",
                    port.addr
                ));
            }
            Ok(Some(port))
        }
        Err(e) => {
            let (host, port) = (&config.admin_bind.host, config.admin_port);
            let why = config::load::io_text(&e);
            if asked_for {
                return Err(format!(
                    "admin-port: cannot listen on {host}:{port}: {why}; choose another port with --admin-port, or 0 to disable it"
                ));
            }
            log::warning(format_args!(
                "No live page and no /metrics: cannot listen on {host}:{port}: {why}; choose a free port with admin-port"
            ));
            Ok(None)
        }
    }
}

impl AdminPort {
    /// Where a browser finds the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// Whether it shows the live page: beyond this machine only to who has a token.
    pub fn serves_page(&self, config: &Config) -> bool {
        self.addr.ip().is_loopback() || !config.admin_token.is_empty()
    }

    /// Starts the thread that serves the port until the process ends.
    pub fn serve(self, shared: Arc<Shared>) -> io::Result<()> {
        driver::spawn_helper("admin", move || {
            if let Err(e) = self.run(shared) {
                log::warning(format_args!(
                    "The live page and /metrics have stopped: {e}; restart the server to get them back"
                ));
            }
        })?;
        Ok(())
    }

    fn run(self, shared: Arc<Shared>) -> io::Result<()> {
        // Without visitors the runtime is not built: it costs memory.
        while let Err(e) = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], None) {
            if e != rustix::io::Errno::INTR {
                return Err(e.into());
            }
        }
        let loopback = self.addr.ip().is_loopback();
        let admin = Arc::new(Admin { shared, loopback, last: Mutex::default() });
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(async {
            let visitors = Visitors::new(tokio::net::TcpListener::from_std(self.listener)?);
            axum::serve(visitors, router(admin)).await
        })
    }
}

fn router(admin: Arc<Admin>) -> Router {
    let pages = Router::new()
        .route("/", get(page))
        .route("/live.json", get(live_json))
        .route("/heat.json", get(heat_json))
        .route_layer(middleware::from_fn_with_state(admin.clone(), door::check_page));
    let guarded = pages
        .route("/metrics", get(metrics_text))
        .route_layer(middleware::from_fn_with_state(admin.clone(), door::check));
    guarded
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .fallback(nothing_here)
        .with_state(admin)
}

async fn page() -> Response {
    let policy = [(CONTENT_SECURITY_POLICY, PAGE_POLICY), (REFERRER_POLICY, "no-referrer")];
    (policy, answer(StatusCode::OK, "text/html; charset=utf-8", PAGE)).into_response()
}

async fn live_json(State(admin): State<Arc<Admin>>) -> Response {
    match live::json(&admin.figures(), &admin.shared, admin.hides_arguments()) {
        Ok(text) => answer(StatusCode::OK, "application/json", text),
        Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")),
    }
}

async fn heat_json(State(admin): State<Arc<Admin>>) -> Response {
    let unix_ms = UnixMs(driver::clock::unix_ns() / 1_000_000);
    match heat::json(&admin.shared, unix_ms) {
        Ok(text) => answer(StatusCode::OK, "application/json", text),
        Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")),
    }
}

async fn metrics_text(State(admin): State<Arc<Admin>>) -> Response {
    let text = metrics::text(&admin.figures(), &admin.shared);
    answer(StatusCode::OK, metrics::CONTENT_TYPE, text)
}

async fn nothing_here() -> Response {
    plain(StatusCode::NOT_FOUND, "not here; there are / /metrics /healthz /readyz\n")
}

/// An answer that is not to be kept.
fn answer(status: StatusCode, kind: &'static str, body: impl IntoResponse) -> Response {
    let sniff = HeaderName::from_static("x-content-type-options");
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store"), (sniff, "nosniff")];
    (status, headers, body).into_response()
}

fn plain(status: StatusCode, body: impl IntoResponse) -> Response {
    answer(status, "text/plain; charset=utf-8", body)
}

impl Admin {
    /// `admin-token`, if there is one.
    fn token(&self) -> Option<Secret> {
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        Some(config.admin_token.clone()).filter(|token| !token.is_empty())
    }

    /// Whether the arguments of slow commands are left out: SLOWLOG shows them to who has the
    /// password, and a reader without a token has shown nothing.
    fn hides_arguments(&self) -> bool {
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        !config.password.is_empty() && config.admin_token.is_empty()
    }

    /// The figures of now, or of a moment ago.
    fn figures(&self) -> Arc<Figures> {
        let now = driver::Clock::System.now();
        let mut last = self.last.lock().expect("no panic while figures are gathered");
        if let Some(figures) = last.as_ref().filter(|f| is_fresh(f.now, now)) {
            return figures.clone();
        }
        let unix_ms = UnixMs(driver::clock::unix_ns() / 1_000_000);
        let figures = Arc::new(Figures::gather(&self.shared, now, unix_ms));
        *last = Some(figures.clone());
        figures
    }
}

fn is_fresh(gathered: MonoNs, now: MonoNs) -> bool {
    now.since(gathered) < FRESH_NS
}
