//! Version, liveness and readiness.

use crate::body::ApiBody;
use crate::request::Query;
use crate::respond;
use futures_util::future::BoxFuture;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use transom_kinds::KUBERNETES_MINOR;
use transom_store::Store;

/// The version of Kubernetes whose behaviour is served. Clients choose features by it.
pub(crate) fn version() -> Value {
    let minor = KUBERNETES_MINOR.to_string();
    json!({
        "major": "1",
        "minor": minor,
        "gitVersion": format!("v1.{minor}.0+transom-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
        "emulationMajor": "1",
        "emulationMinor": minor,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": minor,
    })
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The result of a check, with the reason of a failure as clients may see it.
type Outcome = Result<(), String>;

/// A store that failed permanently makes the server neither live nor ready. A store that refuses writes temporarily, for
/// example because its disk is full, still serves reads and recovers by itself, so it is only not ready.
fn check_store(store: &Store, probe: &str) -> Outcome {
    let failed = store.failed().borrow().clone();
    let refusing = || store.refusing().borrow().as_ref().map(|why| format!("writes are refused: {why}"));
    let refusing = if probe == "readyz" { refusing() } else { None };
    failed.or(refusing).map_or(Ok(()), Err)
}

/// Returns whether a part of the process is ready.
pub type Check = Box<dyn Fn() -> bool + Send + Sync>;

/// Returns whether something is so at the moment. Unlike a [`Check`], it may take a while, and readiness does not depend
/// on it.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// Named checks behind `/healthz`, `/livez` and `/readyz`.
#[derive(Default)]
pub(crate) struct Health {
    stopping: AtomicBool,
    /// Other parts of the process that must be ready.
    others: Vec<(&'static str, Check)>,
    /// What is served at `/readyz/NAME` alone.
    probes: Vec<(&'static str, Probe)>,
}

impl Health {
    /// `/readyz` includes these checks, and each of the probes has a path of its own below it.
    pub(crate) fn with(others: Vec<(&'static str, Check)>, probes: Vec<(&'static str, Probe)>) -> Self {
        Self { others, probes, ..Self::default() }
    }

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    fn checks(&self, store: &Store, probe: &str) -> Vec<(&'static str, Outcome)> {
        let passed = |ok: bool| if ok { Ok(()) } else { Err("reason withheld".to_owned()) };
        let mut checks = vec![("ping", Ok(())), ("store", check_store(store, probe))];
        if probe == "readyz" {
            checks.extend(self.others.iter().map(|(name, check)| (*name, passed(check()))));
            checks.push(("shutdown", passed(!self.stopping.load(Ordering::Relaxed))));
        }
        checks
    }

    pub(crate) async fn answer(&self, store: &Store, segments: &[&str], query: &Query) -> Response<ApiBody> {
        let probe = segments[0];
        let mut checks = self.checks(store, probe);
        if let ["readyz", name] = segments
            && let Some((name, probe)) = self.probes.iter().find(|(other, _)| other == name)
        {
            let outcome = if probe().await { Ok(()) } else { Err("not so at the moment".to_owned()) };
            checks.push((name, outcome));
        }
        match segments {
            [_, name] => match checks.iter().find(|(n, _)| n == name) {
                None => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
                Some((_, Ok(()))) => respond::text(StatusCode::OK, "ok"),
                Some((name, Err(why))) => respond::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("internal server error: {name} failed: {why}\n"),
                ),
            },
            [_] => Self::summary(probe, &checks, query),
            _ => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    fn summary(probe: &str, checks: &[(&'static str, Outcome)], query: &Query) -> Response<ApiBody> {
        let excluded = query.get("exclude");
        let mut lines = String::new();
        let mut healthy = true;
        for (name, outcome) in checks {
            if *name == excluded {
                lines.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            healthy &= outcome.is_ok();
            lines.push_str(&match outcome {
                Ok(()) => format!("[+]{name} ok\n"),
                Err(why) => format!("[-]{name} failed: {why}\n"),
            });
        }
        match (healthy, query.has("verbose")) {
            (true, false) => respond::text(StatusCode::OK, "ok"),
            (true, true) => respond::text(StatusCode::OK, format!("{lines}{probe} check passed\n")),
            (false, _) => {
                respond::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{probe} check failed\n"))
            }
        }
    }
}
