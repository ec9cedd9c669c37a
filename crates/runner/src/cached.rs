//! Answers that still hold are given again.
//!
//! A function says with the TTL of an answer for how long it would answer the same request the same way. An answer is
//! therefore kept under everything the function was told: the request's tag, which covers what a step begins with, and
//! what the requirements loop puts into the request after it was tagged. So no iteration is answered with what another
//! one was. Also part of it is where the function runs, so no answer survives a change of its function.
//!
//! Answers may hold secrets. They are kept in memory only, never longer than they hold, and are not logged.

use crate::account::Account;
use crate::functions::Functions;
use prost::Message;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use transom_compose::{FunctionRunner, RunError, StepRef};
use transom_function::{RunFunctionRequest, RunFunctionResponse, Severity, async_trait};

/// What an entry takes besides its answer, about.
const OVERHEAD: usize = 256;
/// An answer that is about to end is said to hold so long, lest its end be awaited in ever smaller steps.
const SHORTEST: Duration = Duration::from_secs(1);

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// No answer is kept for longer, whatever it says; zero is no limit.
    pub max_ttl: Duration,
    /// All answers together take no more memory, in bytes. Those that end soonest make way.
    pub max_bytes: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { max_ttl: Duration::from_secs(24 * 60 * 60), max_bytes: 64 << 20 }
    }
}

type Key = [u8; 32];

struct Entry {
    /// The answer, encoded.
    answer: Vec<u8>,
    function: String,
    ends: Instant,
    number: u64,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    by_end: BTreeMap<(Instant, u64), Key>,
    bytes: usize,
    number: u64,
}

/// Functions whose answers are given again while they hold.
pub struct Cached {
    functions: Arc<Functions>,
    options: CacheOptions,
    state: Mutex<State>,
    /// An answer ends sooner than all others.
    sooner: Notify,
}

impl Cached {
    /// Answers leave when they end only while [`expire`](Self::expire) runs.
    pub fn new(functions: Arc<Functions>, options: CacheOptions) -> Self {
        Self { functions, options, state: Mutex::default(), sooner: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self) -> &dyn Account {
        self.functions.account()
    }

    fn count(&self, name: &'static str, function: &str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.account().add(name, &[("function_name", function)], count);
    }

    /// How many answers are kept, and how many bytes they take.
    pub fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    /// Forgets answers as they end, for ever.
    pub async fn expire(&self) {
        loop {
            let sooner = self.sooner.notified();
            match self.forget_ended(Instant::now()) {
                None => sooner.await,
                Some(next) => tokio::select! {
                    () = sooner => {}
                    () = tokio::time::sleep_until(next) => {}
                },
            }
        }
    }

    /// Forgets what has ended; says when the next does.
    fn forget_ended(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        let mut gone = Vec::new();
        while state.by_end.first_key_value().is_some_and(|((ends, _), _)| *ends <= now) {
            gone.extend(state.drop_first());
        }
        let next = state.by_end.keys().next().map(|(ends, _)| *ends);
        drop(state);
        gone.iter().for_each(|entry| self.deleted(entry));
        next
    }

    fn deleted(&self, entry: &Entry) {
        self.count("function_run_function_response_cache_deletes_total", &entry.function, 1);
        let bytes = entry.answer.len();
        self.count("function_run_function_response_cache_bytes_deleted_total", &entry.function, bytes);
    }

    /// Everything that an answer depends on. A request without a tag is answered afresh each time.
    fn key(&self, function: &str, request: &mut RunFunctionRequest) -> Option<Key> {
        let tag = request.meta.as_ref().map(|meta| meta.tag.as_str()).filter(|tag| !tag.is_empty())?;
        let mut hash = Sha256::new();
        for part in [function, tag] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(self.functions.generation(function)?.to_le_bytes());
        // What changes from iteration to iteration. It is lent, not copied.
        let changing = RunFunctionRequest {
            context: request.context.take(),
            required_resources: std::mem::take(&mut request.required_resources),
            extra_resources: std::mem::take(&mut request.extra_resources),
            required_schemas: std::mem::take(&mut request.required_schemas),
            ..RunFunctionRequest::default()
        };
        hash.update(changing.encode_to_vec());
        request.context = changing.context;
        request.required_resources = changing.required_resources;
        request.extra_resources = changing.extra_resources;
        request.required_schemas = changing.required_schemas;
        Some(hash.finalize().into())
    }

    /// An answer that still holds. It holds for what is left of its time.
    fn find(&self, key: &Key) -> Option<Result<RunFunctionResponse, prost::DecodeError>> {
        let (answer, left) = {
            let state = self.lock();
            let entry = state.entries.get(key)?;
            let left = entry.ends.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            (entry.answer.clone(), left)
        };
        let mut response = match RunFunctionResponse::decode(&*answer) {
            Ok(response) => response,
            Err(e) => return Some(Err(e)),
        };
        let ttl = response.meta.as_mut().and_then(|meta| meta.ttl.as_mut());
        if let (Some(ttl), Ok(left)) = (ttl, left.max(SHORTEST).try_into()) {
            *ttl = left;
        }
        Some(Ok(response))
    }

    /// Keeps an answer for as long as it says it holds.
    fn keep(&self, function: &str, key: Key, response: &RunFunctionResponse) {
        let started = Instant::now();
        let fatal = response.results.iter().any(|result| result.severity() == Severity::Fatal);
        let Some(ttl) = response.ttl().ok().flatten().filter(|_| !fatal) else { return };
        let ttl = if self.options.max_ttl.is_zero() { ttl } else { ttl.min(self.options.max_ttl) };
        // What holds beyond the end of time is not worth keeping.
        let Some(ends) = started.checked_add(ttl) else { return };
        let answer = response.encode_to_vec();
        let written = answer.len();
        if written + OVERHEAD > self.options.max_bytes {
            return;
        }
        let mut state = self.lock();
        let mut gone = Vec::from_iter(state.remove(&key));
        let is_first = state.put(key, answer, function.to_owned(), ends);
        while state.bytes > self.options.max_bytes {
            gone.extend(state.drop_first());
        }
        drop(state);
        if is_first {
            self.sooner.notify_one();
        }
        gone.iter().for_each(|entry| self.deleted(entry));
        self.count("function_run_function_response_cache_writes_total", function, 1);
        self.count("function_run_function_response_cache_bytes_written_total", function, written);
        let labels = [("function_name", function)];
        self.account().time("function_run_function_response_cache_write_seconds", &labels, started.elapsed());
    }
}

impl State {
    /// Says whether the answer ends before all others.
    fn put(&mut self, key: Key, answer: Vec<u8>, function: String, ends: Instant) -> bool {
        self.number += 1;
        let number = self.number;
        self.bytes += answer.len() + OVERHEAD;
        self.by_end.insert((ends, number), key);
        self.entries.insert(key, Entry { answer, function, ends, number });
        self.by_end.keys().next() == Some(&(ends, number))
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.by_end.remove(&(entry.ends, entry.number));
        self.bytes = self.bytes.saturating_sub(entry.answer.len() + OVERHEAD);
        Some(entry)
    }

    fn drop_first(&mut self) -> Option<Entry> {
        let key = *self.by_end.first_key_value()?.1;
        self.remove(&key)
    }
}

#[async_trait]
impl FunctionRunner for Cached {
    async fn run(
        &self,
        step: StepRef<'_>,
        mut request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let started = Instant::now();
        let function = step.function;
        let key = self.key(function, &mut request);
        match key.and_then(|key| self.find(&key)) {
            Some(Ok(response)) => {
                self.count("function_run_function_response_cache_hits_total", function, 1);
                let (name, took) = ("function_run_function_response_cache_read_seconds", started.elapsed());
                self.account().time(name, &[("function_name", function)], took);
                return Ok(response);
            }
            Some(Err(_)) => self.count("function_run_function_response_cache_errors_total", function, 1),
            None => {}
        }
        self.count("function_run_function_response_cache_misses_total", function, 1);
        let response = self.functions.run(step, request).await?;
        if let Some(key) = key {
            self.keep(function, key, &response);
        }
        Ok(response)
    }
}
