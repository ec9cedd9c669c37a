//! Between the controllers and the server: delays, loses, refuses and cuts, and writes down what passed.

use crate::simulation::foreign;
use crate::simulation::ledger::{Ledger, show};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::Service;
use transom_apiserver::{Identity, Server};
use transom_engine::Cluster;
use transom_store::Key;
use transom_testkit::embedded;
use transom_testkit::rng::Rng;

/// Lines of the trace that are kept.
const TRACE: usize = 250;

/// How often things go wrong, in times of a thousand.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub delay: u64,
    pub refuse: u64,
    pub lose: u64,
    pub stream: u64,
    pub function: u64,
    /// The registry fails, hangs or is slow.
    pub registry: u64,
    /// An object is replaced by another client's object of the same name just before it is deleted.
    pub oust: u64,
    /// The controllers stop at this write.
    pub crash: Option<u64>,
    /// The write at which they stop is still made.
    pub crash_after: bool,
}

/// How a function is that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// Answers with an error.
    Broken,
    /// Wants nothing, and says that this is fatal.
    Fatal,
}

/// How the registry is that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegistryMood {
    Well,
    Unavailable,
    /// Says that there is nothing.
    Forgetful,
    /// Never answers.
    Hanging,
}

struct State {
    rng: Rng,
    faults: Faults,
    until: Instant,
    began: Instant,
    generation: u64,
    last: Instant,
    counts: Counts,
    trace: VecDeque<String>,
    /// Every request and its outcome, if they are recorded.
    log: Option<Vec<String>>,
    /// The objects with which other clients replaced those about to be deleted, since the last call.
    ousted: BTreeMap<Key, u64>,
}

/// What the controllers did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub writes: u64,
    /// Requests that are neither writes nor watches.
    pub reads: u64,
    pub calls: u64,
    /// Requests to the registry.
    pub asked: u64,
}

pub(super) struct Wire {
    state: Mutex<State>,
    /// The controllers are to be stopped dead.
    pub crash: Notify,
    pub ledger: Mutex<Ledger>,
}

/// What becomes of a request.
enum Fate {
    Passes,
    /// Refused with a status, without effect.
    Refused(u16, &'static str),
    /// No connection, without effect.
    Unsent,
    /// Takes effect, but the response is lost.
    Unanswered,
    /// Never answered: the controllers that sent it have stopped.
    Never,
}

impl Wire {
    pub(super) fn new(rng: Rng, ledger: Ledger) -> Self {
        let now = Instant::now();
        let state = State {
            rng,
            faults: Faults::default(),
            until: now,
            began: now,
            generation: 0,
            last: now,
            counts: Counts::default(),
            trace: VecDeque::new(),
            log: None,
            ousted: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), crash: Notify::new(), ledger: Mutex::new(ledger) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    /// Things go wrong from now on and for so long.
    pub(super) fn disturb(&self, faults: Faults, lasting: Duration) {
        let mut state = self.lock();
        state.faults = faults;
        state.until = Instant::now() + lasting;
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// How long the controllers have asked for nothing.
    pub(super) fn silence(&self) -> Duration {
        self.lock().last.elapsed()
    }

    /// Remembers every request from now on.
    pub(super) fn keep_log(&self) {
        self.lock().log = Some(Vec::new());
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        self.lock().log.take().unwrap_or_default()
    }

    pub(super) fn take_ousted(&self) -> BTreeMap<Key, u64> {
        std::mem::take(&mut self.lock().ousted)
    }

    pub(super) fn note(&self, line: &str) {
        self.lock().note(line);
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.lock().trace.iter().cloned().collect()
    }

    /// Cuts off all clients that are connected.
    pub(super) fn cut(&self) {
        self.lock().generation += 1;
    }

    /// A function was called: how long it takes, and how it is.
    pub(super) fn call(&self) -> (Duration, Mood) {
        let mut state = self.lock();
        state.counts.calls += 1;
        state.last = Instant::now();
        let odds = state.odds(state.faults.function);
        if odds == 0 {
            return (Duration::ZERO, Mood::Well);
        }
        let fails = state.rng.permille(odds);
        let mood = if fails { *state.rng.pick(&[Mood::Broken, Mood::Fatal]) } else { Mood::Well };
        let takes = if state.rng.permille(odds) { state.rng.duration(14) } else { Duration::ZERO };
        (takes, mood)
    }

    /// The registry was asked: how long it takes, and how it is.
    pub(super) fn ask(&self) -> (Duration, RegistryMood) {
        let mut state = self.lock();
        state.counts.asked += 1;
        state.last = Instant::now();
        let odds = state.odds(state.faults.registry);
        if odds == 0 {
            return (Duration::ZERO, RegistryMood::Well);
        }
        let moods = [RegistryMood::Unavailable, RegistryMood::Forgetful, RegistryMood::Hanging];
        let fails = state.rng.permille(odds * 2);
        let mood = if fails { *state.rng.pick(&moods) } else { RegistryMood::Well };
        let takes = if state.rng.permille(odds) { state.rng.duration(14) } else { Duration::ZERO };
        (takes, mood)
    }

    /// A client for controllers, until the line is cut.
    pub(super) fn connect(self: &Arc<Self>, server: &Server) -> kube::Client {
        let generation = self.lock().generation;
        kube::Client::new(Cable { server: server.clone(), wire: self.clone(), generation }, "default")
    }
}

impl State {
    fn odds(&self, permille: u64) -> u64 {
        if Instant::now() < self.until { permille } else { 0 }
    }

    fn note(&mut self, line: &str) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let at = self.began.elapsed().as_millis();
        self.trace.push_back(format!("{at:>9} {line}"));
    }

    /// How long a request takes to arrive and its answer to come back.
    fn latency(&mut self) -> (Duration, Duration) {
        let odds = self.odds(self.faults.delay);
        let mut one =
            || if odds > 0 && self.rng.permille(odds) { self.rng.duration(12) } else { Duration::ZERO };
        (one(), one())
    }

    fn fate(&mut self, writes: bool) -> Fate {
        let refuse = self.odds(self.faults.refuse);
        if refuse > 0 && self.rng.permille(refuse) {
            let all = [
                Fate::Refused(500, "InternalError"),
                Fate::Refused(429, "TooManyRequests"),
                Fate::Refused(503, "ServiceUnavailable"),
                Fate::Refused(504, "Timeout"),
                Fate::Unsent,
                Fate::Refused(409, "Conflict"),
                Fate::Refused(409, "Conflict"),
            ];
            let count = if writes { all.len() } else { 5 };
            let at = usize::try_from(self.rng.below(count as u64)).unwrap_or_default();
            return all.into_iter().nth(at).unwrap_or(Fate::Passes);
        }
        let lose = self.odds(self.faults.lose);
        if lose > 0 && self.rng.permille(lose) { Fate::Unanswered } else { Fate::Passes }
    }

    /// How late the frame of a watch is, and how the watch ends with it, if it does (0: it goes on). `None` when the
    /// client has been cut off.
    fn frame(&mut self, generation: u64) -> Option<(Duration, u64)> {
        if self.generation != generation {
            return None;
        }
        let odds = self.odds(self.faults.stream);
        if odds == 0 {
            return Some((Duration::ZERO, 0));
        }
        let delay = if self.rng.permille(odds * 2) { self.rng.duration(13) } else { Duration::ZERO };
        let end = if self.rng.permille(odds) { self.rng.below(4) + 1 } else { 0 };
        Some((delay, end))
    }

    /// Whether the controllers die at this write, and if so whether it is still made.
    fn crashes(&mut self) -> Option<bool> {
        let left = self.faults.crash.as_mut()?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        self.faults.crash = None;
        self.generation += 1;
        Some(self.faults.crash_after)
    }
}

#[derive(Clone)]
struct Cable {
    server: Server,
    wire: Arc<Wire>,
    generation: u64,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Reply = UnsyncBoxBody<Bytes, BoxError>;
type Answer = Result<Response<Reply>, BoxError>;

impl Service<Request<Body>> for Cable {
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.extensions_mut().insert(Identity::admin("crossplane"));
        Box::pin(self.clone().carry(request))
    }
}

impl Cable {
    async fn carry(self, request: Request<Body>) -> Answer {
        let path = request.uri().path();
        if path.contains("/events") {
            // The simulation stores no Events, and no controller waits for the response.
            return Ok(respond(StatusCode::CREATED, "{}".to_owned()));
        }
        if request.uri().query().is_some_and(|q| q.contains("watch=true")) {
            return self.watch(request).await;
        }
        let writes = *request.method() != Method::GET;
        let line = format!("{} {}", request.method(), path);
        let (mut fate, before, after, crashes) = {
            let mut state = self.wire.lock();
            let alive = self.generation == state.generation;
            if alive {
                state.last = Instant::now();
                if writes {
                    state.counts.writes += 1;
                } else {
                    state.counts.reads += 1;
                }
            }
            let (before, after) = state.latency();
            let fate = if alive { state.fate(writes) } else { Fate::Never };
            let crashes = if alive && writes { state.crashes() } else { None };
            (fate, before, after, crashes)
        };
        if let Some(still_made) = crashes {
            self.wire
                .note(&format!("{line}: the controllers die{}", if still_made { " after this" } else { "" }));
            fate = if still_made { Fate::Unanswered } else { Fate::Never };
            self.wire.crash.notify_one();
        }
        if !before.is_zero() {
            tokio::time::sleep(before).await;
        }
        if *request.method() == Method::DELETE
            && let Some(place) = foreign::place_in(request.uri().path())
        {
            self.oust(&place).await;
        }
        let answer = self.take_effect(fate, request, &line, writes).await;
        if crashes.is_some() {
            std::future::pending::<()>().await;
        }
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        if self.wire.lock().generation != self.generation {
            std::future::pending::<()>().await;
        }
        answer
    }

    /// Another client may replace the object that is about to be deleted, at the last moment.
    async fn oust(&self, place: &Key) {
        {
            let mut state = self.wire.lock();
            let odds = state.odds(state.faults.oust);
            if odds == 0 || !state.rng.permille(odds) {
                return;
            }
        }
        self.wire.ledger().released.insert(place.clone());
        let other = Cluster::new(embedded::kube_client(&self.server, Identity::admin("user")));
        if let Some(revision) = foreign::oust(&other, place).await {
            let mut state = self.wire.lock();
            state.note(&format!("USER {} is ousted by someone else", show(place)));
            state.ousted.insert(place.clone(), revision);
        }
    }

    async fn take_effect(&self, fate: Fate, request: Request<Body>, line: &str, writes: bool) -> Answer {
        let (answer, words) = match fate {
            Fate::Never => return std::future::pending().await,
            Fate::Unsent => (Err(BoxError::from("connection refused")), "not sent".to_owned()),
            Fate::Refused(code, reason) => {
                let status = serde_json::json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                    "message": format!("{reason}, says chance"),
                });
                let code = StatusCode::from_u16(code).unwrap_or_default();
                (Ok(respond(code, status.to_string())), format!("refused with {code}"))
            }
            Fate::Passes | Fate::Unanswered => {
                if self.wire.lock().generation != self.generation && matches!(fate, Fate::Passes) {
                    return std::future::pending().await;
                }
                let response = self.server.handle(request).await;
                self.wire.ledger().follow();
                let words = response.status().as_str().to_owned();
                if matches!(fate, Fate::Unanswered) {
                    (Err(BoxError::from("connection reset")), words + ", and the answer is lost")
                } else {
                    (Ok(response.map(|b| b.map_err(|never| match never {}).boxed_unsync())), words)
                }
            }
        };
        let mut state = self.wire.lock();
        let at = state.began.elapsed().as_millis();
        if let Some(log) = &mut state.log {
            log.push(format!("{at:>9} {line}: {words}"));
        }
        if writes {
            state.note(&format!("{line}: {words}"));
        }
        answer
    }

    /// A watch lives for some time, and each of its frames may be late, or the last.
    async fn watch(self, request: Request<Body>) -> Answer {
        let (fate, (before, _), lifetime) = {
            let mut state = self.wire.lock();
            if self.generation != state.generation {
                (Fate::Never, (Duration::ZERO, Duration::ZERO), None)
            } else {
                let odds = state.odds(state.faults.stream);
                let short = odds > 0 && state.rng.permille(odds * 3);
                let lifetime = if short { Some(state.rng.duration(14)) } else { None };
                let fate = state.fate(false);
                (fate, state.latency(), lifetime)
            }
        };
        if !before.is_zero() {
            tokio::time::sleep(before).await;
        }
        let line = format!("WATCH {}", request.uri().path());
        let answer = self.take_effect(fate, request, &line, false).await?;
        let ends = lifetime.map(|l| Instant::now() + l);
        let (head, body) = answer.into_parts();
        let flow = Flow { body, wire: self.wire.clone(), generation: self.generation, ends, over: false };
        let frames = stream::unfold(flow, |mut flow| async move { flow.next().await.map(|f| (f, flow)) });
        Ok(Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
    }
}

fn respond(status: StatusCode, body: String) -> Response<Reply> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// The frames of a watch on their way.
struct Flow {
    body: Reply,
    wire: Arc<Wire>,
    generation: u64,
    ends: Option<Instant>,
    over: bool,
}

const GONE: &str = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version, says chance\"}}\n";

impl Flow {
    async fn next(&mut self) -> Option<Result<http_body::Frame<Bytes>, BoxError>> {
        if self.over {
            return None;
        }
        let frame = match self.ends {
            None => self.body.frame().await,
            Some(at) => tokio::time::timeout_at(at, self.body.frame()).await.ok().flatten(),
        };
        let Some(Ok(frame)) = frame else { return None };
        let Some((delay, end)) = self.wire.lock().frame(self.generation) else {
            return std::future::pending().await;
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        self.over = end > 0;
        match end {
            0 => Some(Ok(frame)),
            1 => None,
            2 => Some(Err(BoxError::from("connection reset"))),
            3 => Some(Ok(http_body::Frame::data(Bytes::from_static(GONE.as_bytes())))),
            _ => {
                let data = frame.into_data().ok()?;
                Some(Ok(http_body::Frame::data(data.slice(..data.len() / 2))))
            }
        }
    }
}
