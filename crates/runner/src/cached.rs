//! Caches responses for their TTL.
//!
//! The TTL of a response is how long the function would respond to the same request in the same way. The key of a cached
//! response therefore covers the whole request: its tag, which covers what a step begins with, and what the requirements
//! loop puts into the request after it was tagged, so that no iteration gets the response to another. The key also
//! covers the instance that is called, so no response survives a change of its function.
//!
//! Responses may hold secrets. They are kept in memory only, never longer than their TTL, and are not logged.

use crate::account::{CacheAccount, FunctionLabels};
use crate::router::Router;
use prost::Message;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use transom_compose::{Answer, FunctionRunner, RunError, StepRef};
use transom_function::{RunFunctionRequest, RunFunctionResponse, Severity, async_trait};

/// About how many bytes an entry takes besides its response.
const ENTRY_OVERHEAD_BYTES: usize = 256;
/// Minimum TTL reported for a cached response; avoids a storm of requeues near its expiry.
const MIN_REPORTED_TTL: Duration = Duration::from_secs(1);

/// The limits of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// The longest time that a response is cached, even if its TTL is longer; zero for no limit.
    pub max_ttl: Duration,
    /// The memory limit of all responses together, in bytes. Those that expire soonest are evicted.
    pub max_bytes: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { max_ttl: Duration::from_secs(24 * 60 * 60), max_bytes: 64 << 20 }
    }
}

type Key = [u8; 32];

struct Entry {
    /// The encoded response.
    response: Vec<u8>,
    function: String,
    expires: Instant,
    number: u64,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    by_expiry: BTreeMap<(Instant, u64), Key>,
    bytes: usize,
    number: u64,
}

/// A router whose responses are cached for their TTL.
pub struct Cached {
    router: Arc<Router>,
    options: CacheOptions,
    state: Mutex<State>,
    /// Notified when a response is cached that expires before all others.
    earlier_expiry: Notify,
}

impl Cached {
    /// A cache in front of a router. Expired responses are removed only while [`expire`](Self::expire) runs.
    pub fn new(router: Arc<Router>, options: CacheOptions) -> Self {
        Self { router, options, state: Mutex::default(), earlier_expiry: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self) -> &CacheAccount {
        &self.router.account().cache
    }

    /// How many responses are cached, and how many bytes they take.
    pub fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    /// Removes responses as they expire, until dropped.
    pub async fn expire(&self) {
        loop {
            let earlier = self.earlier_expiry.notified();
            match self.remove_expired(Instant::now()) {
                None => earlier.await,
                Some(next) => tokio::select! {
                    () = earlier => {}
                    () = tokio::time::sleep_until(next) => {}
                },
            }
        }
    }

    /// Removes expired responses. Returns when the next one expires.
    fn remove_expired(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        let mut gone = Vec::new();
        while state.by_expiry.first_key_value().is_some_and(|((expires, _), _)| *expires <= now) {
            gone.extend(state.drop_first());
        }
        let next = state.by_expiry.keys().next().map(|(expires, _)| *expires);
        drop(state);
        gone.iter().for_each(|entry| self.deleted(entry));
        next
    }

    fn deleted(&self, entry: &Entry) {
        let labels = FunctionLabels::of(&entry.function);
        self.account().deletes.get_or_create(&labels).inc();
        self.account().bytes_deleted.get_or_create(&labels).inc_by(count(entry.response.len()));
    }

    /// Everything that a response depends on; `None` for a request without a tag, whose response is not cached.
    fn key(function: &str, generation: u64, request: &mut RunFunctionRequest) -> Option<Key> {
        let tag = request.meta.as_ref().map(|meta| meta.tag.as_str()).filter(|tag| !tag.is_empty())?;
        let mut hash = Sha256::new();
        for part in [function, tag] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(generation.to_le_bytes());
        // What changes from iteration to iteration. It is moved out and back, not copied.
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

    /// A response that has not expired, with the rest of its TTL.
    fn find(&self, key: &Key) -> Option<Result<RunFunctionResponse, prost::DecodeError>> {
        let (encoded, left) = {
            let state = self.lock();
            let entry = state.entries.get(key)?;
            let left = entry.expires.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            (entry.response.clone(), left)
        };
        let mut response = match RunFunctionResponse::decode(&*encoded) {
            Ok(response) => response,
            Err(e) => return Some(Err(e)),
        };
        let ttl = response.meta.as_mut().and_then(|meta| meta.ttl.as_mut());
        if let (Some(ttl), Ok(left)) = (ttl, left.max(MIN_REPORTED_TTL).try_into()) {
            *ttl = left;
        }
        Some(Ok(response))
    }

    /// Caches a response for its TTL, unless it is fatal.
    fn keep(&self, function: &str, key: Key, response: &RunFunctionResponse) {
        let started = Instant::now();
        let fatal = response.results.iter().any(|result| result.severity() == Severity::Fatal);
        let Some(ttl) = response.ttl().ok().flatten().filter(|_| !fatal) else { return };
        let ttl = if self.options.max_ttl.is_zero() { ttl } else { ttl.min(self.options.max_ttl) };
        // A TTL that no clock can express is not worth caching.
        let Some(expires) = started.checked_add(ttl) else { return };
        let encoded = response.encode_to_vec();
        let written = encoded.len();
        if written + ENTRY_OVERHEAD_BYTES > self.options.max_bytes {
            return;
        }
        let mut state = self.lock();
        let mut gone = Vec::from_iter(state.remove(&key));
        let is_first = state.put(key, encoded, function.to_owned(), expires);
        while state.bytes > self.options.max_bytes {
            gone.extend(state.drop_first());
        }
        drop(state);
        if is_first {
            self.earlier_expiry.notify_one();
        }
        gone.iter().for_each(|entry| self.deleted(entry));
        let (labels, account) = (FunctionLabels::of(function), self.account());
        account.writes.get_or_create(&labels).inc();
        account.bytes_written.get_or_create(&labels).inc_by(count(written));
        account.write_seconds.get_or_create(&labels).observe(started.elapsed().as_secs_f64());
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl State {
    /// Adds an entry. Returns whether it expires before all others.
    fn put(&mut self, key: Key, response: Vec<u8>, function: String, expires: Instant) -> bool {
        self.number += 1;
        let number = self.number;
        self.bytes += response.len() + ENTRY_OVERHEAD_BYTES;
        self.by_expiry.insert((expires, number), key);
        self.entries.insert(key, Entry { response, function, expires, number });
        self.by_expiry.keys().next() == Some(&(expires, number))
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.by_expiry.remove(&(entry.expires, entry.number));
        self.bytes = self.bytes.saturating_sub(entry.response.len() + ENTRY_OVERHEAD_BYTES);
        Some(entry)
    }

    fn drop_first(&mut self) -> Option<Entry> {
        let key = *self.by_expiry.first_key_value()?.1;
        self.remove(&key)
    }
}

#[async_trait]
impl FunctionRunner for Cached {
    async fn run(&self, step: StepRef<'_>, mut request: RunFunctionRequest) -> Result<Answer, RunError> {
        if step.inline.is_some() {
            // Their responses have no TTL.
            return self.router.run(step, request).await;
        }
        let started = Instant::now();
        let function = step.function;
        let chosen = self.router.choose(step)?;
        let key = Self::key(function, chosen.generation(), &mut request);
        let labels = FunctionLabels::of(function);
        match key.and_then(|key| self.find(&key)) {
            Some(Ok(response)) => {
                self.account().hits.get_or_create(&labels).inc();
                let took = started.elapsed().as_secs_f64();
                self.account().read_seconds.get_or_create(&labels).observe(took);
                return Ok(Answer { response, revision: chosen.revision() });
            }
            Some(Err(_)) => {
                self.account().errors.get_or_create(&labels).inc();
            }
            None => {}
        }
        self.account().misses.get_or_create(&labels).inc();
        let response = self.router.call(&chosen, step, request).await?;
        if let Some(key) = key {
            self.keep(function, key, &response);
        }
        Ok(Answer { response, revision: chosen.revision() })
    }
}
