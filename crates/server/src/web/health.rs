//! `/healthz` and `/readyz`: one word for a supervisor or load balancer.

use crate::web::{Admin, plain};
use crate::worker::message::Message;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a worker may take to answer. A step of a worker is under a millisecond; this is for
/// machines under heavy load.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// The first wait between two polls; each further one is twice as long.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(64);

/// 200 if every worker answers, 503 if one does not.
pub(crate) async fn healthz(State(admin): State<Arc<Admin>>) -> Response {
    match silent(&admin).await {
        None => plain(StatusCode::OK, "ok\n"),
        Some(worker) => {
            let why = format!("worker {worker} does not answer\n");
            plain(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}

/// 200 while the server takes requests, 503 while it loads its file, with the per cent, and from
/// the moment that it is told to end.
pub(crate) async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    if admin.shared.shutting_down.load(Ordering::Acquire) {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n");
    }
    if let Some(progress) = admin.shared.load.progress(driver::Clock::System.now()) {
        let text = format!("loading: {progress}\n");
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    }
    plain(StatusCode::OK, "ready\n")
}

/// The first worker that does not answer in time.
async fn silent(admin: &Admin) -> Option<usize> {
    let workers = admin.shared.workers.len();
    let answers: Arc<[AtomicBool]> = (0..workers).map(|_| AtomicBool::new(false)).collect();
    for worker in 0..workers {
        admin.shared.post(worker, Message::Probe(answers.clone()));
    }
    let missing = || answers.iter().position(|answer| !answer.load(Ordering::Acquire));
    let mut look = LOOK_FIRST;
    let mut waited = Duration::ZERO;
    while waited < ANSWER_MAX && missing().is_some() {
        tokio::time::sleep(look).await;
        waited += look;
        look = (look * 2).min(LOOK_MAX);
    }
    missing()
}
