//! Watches: a stream of changes after a revision, seen through a filter.
//!
//! A watch is a cursor into the store's history, not a queue: a slow reader costs nothing and, when it falls out
//! of the history, its stream ends and the client lists again.

use super::list::{invalid_version, parse_revision, range, reach};
use super::view;
use crate::call::Call;
use crate::negotiate::Representation;
use crate::registry::Changes;
use crate::represent::{Include, View};
use crate::request::ListOptions;
use crate::resource::Resource;
use crate::respond::{Answer, Payload};
use crate::select::Filter;
use crate::server::Inner;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transom_object::{Status, json};
use transom_store::{Entry, Event, Watch};

const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the stream ends by timeout.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The longest timeout: larger ones, which clients can ask for, would overflow the clock.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// Frames sent at once when many are due.
const MAX_BURST_BYTES: usize = 64 * 1024;

pub(super) async fn watch(call: &Call) -> Result<Answer, Status> {
    let options = ListOptions::parse(&call.query, true)?;
    let field_selector = match call.target.name.as_str() {
        "" => options.field_selector.clone(),
        name => format!("metadata.name={name}"),
    };
    let filter =
        Filter::new(call.resource.clone(), &call.target.namespace, &options.label_selector, &field_selector)?;
    let view = view(call)?;
    let mut watcher = Watcher {
        resource: call.resource.clone(),
        representation: call.accept.representation.clone(),
        include: view.include,
        filter,
        initial: VecDeque::new(),
        watch: None,
        error: None,
        ended: false,
        columns_sent: false,
        end_of_initial: None,
        bookmarks: options.allow_bookmarks,
        next_bookmark: Instant::now() + BOOKMARK_INTERVAL,
        deadline: Instant::now() + timeout(call, &options),
        server: call.server.clone(),
        registry: call.server.registry.changes(),
        stopping: call.server.stopping.subscribe(),
    };
    watcher.start(call, &options).await?;
    let frames = stream::unfold(watcher, |mut w| async move { w.next().await.map(|bytes| (bytes, w)) });
    Ok(Answer::ok(Payload::Stream(Box::pin(frames))))
}

/// The requested timeout, or a random one between half an hour and an hour so that clients do not all reconnect at
/// once.
fn timeout(call: &Call, options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(MAX_WATCH_TIMEOUT),
        _ => {
            let spread = u64::from(call.server.draw() % 1800);
            Duration::from_secs(1800 + spread)
        }
    }
}

struct Watcher {
    resource: Arc<Resource>,
    representation: Representation,
    include: Include,
    filter: Filter,
    /// Objects that exist already, sent as ADDED first.
    initial: VecDeque<Arc<Entry>>,
    watch: Option<Watch>,
    /// Sent in place of everything else.
    error: Option<Status>,
    ended: bool,
    columns_sent: bool,
    /// The revision of the bookmark that closes the initial events of a streaming list.
    end_of_initial: Option<u64>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    server: Arc<Inner>,
    registry: Changes,
    stopping: tokio::sync::watch::Receiver<bool>,
}

enum Woken {
    By(Arc<Event>),
    ForBookmark(u64),
    /// Some definition changed, perhaps this kind's.
    ByRegistry,
}

impl Watcher {
    async fn start(&mut self, call: &Call, options: &ListOptions) -> Result<(), Status> {
        let store = &call.server.store;
        let key = &self.resource.store_key;
        let revision = parse_revision(&options.resource_version).map_err(|why| invalid_version(&why))?;
        let from_state = match (options.send_initial_events, revision) {
            (Some(true), Some(revision)) if revision > 0 => {
                reach(call, revision).await?;
                true
            }
            (Some(true), _) => true,
            (Some(false), None | Some(0)) => false,
            (_, revision) => matches!(revision, None | Some(0)),
        };
        let after = if from_state {
            let snapshot = store.snapshot(key);
            let candidates = range(call, &snapshot, None, &self.filter).map(|(_, entry)| entry);
            self.initial = candidates.filter(|entry| self.filter.matches(entry)).cloned().collect();
            if options.send_initial_events == Some(true) {
                self.end_of_initial = Some(snapshot.revision);
            }
            snapshot.revision
        } else {
            revision.filter(|r| *r > 0).unwrap_or_else(|| store.revision())
        };
        match store.watch(key, after) {
            Ok(watch) => self.watch = Some(watch),
            // Too old: the stream opens and reports it as an event, which clients handle, unlike a failed request.
            Err(compacted) => {
                let message = format!("too old resource version: {after} ({})", compacted.oldest);
                self.initial.clear();
                self.end_of_initial = None;
                self.error = Some(Status::expired(message));
            }
        }
        Ok(())
    }

    /// The next bytes of the stream; `None` ends it.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if let Some(status) = self.error.take() {
            self.ended = true;
            return Some(frame("ERROR", &json::encode(&status.to_value())));
        }
        let mut out = BytesMut::new();
        while let Some(entry) = self.initial.pop_front() {
            self.push(&mut out, "ADDED", &entry, None).await;
            if out.len() >= MAX_BURST_BYTES {
                return Some(out.freeze());
            }
        }
        if let Some(revision) = self.end_of_initial.take() {
            out.put(self.bookmark(revision, true));
        }
        loop {
            self.drain(&mut out).await;
            if !out.is_empty() {
                return Some(out.freeze());
            }
            let watch = self.watch.as_mut()?;
            let bookmark_at = self.next_bookmark.min(self.deadline - BOOKMARK_BEFORE_END);
            let bookmark_due = self.bookmarks && self.next_bookmark < self.deadline;
            // In order, so that a simulation can be replayed. What ends the stream comes first, so that events do not
            // starve it.
            let woken = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = self.registry.changed() => Woken::ByRegistry,
                event = watch.next() => Woken::By(event?),
                () = tokio::time::sleep_until(bookmark_at), if bookmark_due => Woken::ForBookmark(watch.revision()),
            };
            match woken {
                Woken::By(event) => self.push_event(&mut out, &event).await,
                // Its schema changed or it is no longer served: the client lists again.
                Woken::ByRegistry if !self.is_current() => return None,
                Woken::ByRegistry => {}
                Woken::ForBookmark(revision) => {
                    let last = bookmark_at + BOOKMARK_BEFORE_END >= self.deadline;
                    self.next_bookmark =
                        if last { self.deadline } else { Instant::now() + BOOKMARK_INTERVAL };
                    out.put(self.bookmark(revision, false));
                }
            }
        }
    }

    fn is_current(&self) -> bool {
        let gvr = self.resource.group_version().with_resource(&*self.resource.names.plural);
        self.server.registry.find(&gvr).is_some_and(|r| r.definition == self.resource.definition)
    }

    /// Takes what is ready without waiting, up to one burst.
    async fn drain(&mut self, out: &mut BytesMut) {
        while out.len() < MAX_BURST_BYTES {
            let Some(event) = self.watch.as_mut().and_then(Watch::try_next) else { return };
            self.push_event(out, &event).await;
        }
    }

    /// What an event is to this watcher depends on whether its filter saw the object before and sees it now.
    async fn push_event(&mut self, out: &mut BytesMut, event: &Event) {
        let before = event.old.as_ref().filter(|e| self.filter.matches(e));
        let now = event.new.as_ref().filter(|e| self.filter.matches(e));
        match (before, now) {
            (None, None) => {}
            (None, Some(new)) => self.push(out, "ADDED", new, None).await,
            (Some(_), Some(new)) => self.push(out, "MODIFIED", new, None).await,
            (Some(old), None) => self.push(out, "DELETED", old, Some(event.revision)).await,
        }
    }

    /// `restamp` gives the object another resourceVersion than its own: that of its deletion.
    async fn push(&mut self, out: &mut BytesMut, ty: &str, entry: &Arc<Entry>, restamp: Option<u64>) {
        let shown = match self.server.one_in_version(&self.resource, entry).await {
            Ok(entry) => self.show(&entry, restamp),
            Err(status) => Err(status),
        };
        match shown {
            Ok(bytes) => out.put(frame(ty, &bytes)),
            Err(status) => {
                out.put(frame("ERROR", &json::encode(&status.to_value())));
                self.ended = true;
            }
        }
    }

    fn show(&mut self, entry: &Entry, restamp: Option<u64>) -> Result<Bytes, Status> {
        match (&self.representation, restamp) {
            (Representation::Object, None) => self.resource.serve(entry),
            (Representation::Object, Some(revision)) if entry.revision > self.resource.verbatim_after => {
                Ok(entry.body_at(revision))
            }
            _ => self.show_value(entry, restamp),
        }
    }

    fn show_value(&mut self, entry: &Entry, restamp: Option<u64>) -> Result<Bytes, Status> {
        let mut value = self.resource.decode(entry)?;
        if let Some(revision) = restamp {
            value["metadata"]["resourceVersion"] = revision.to_string().into();
        }
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        let view =
            View { resource: &self.resource, representation: &self.representation, include: self.include };
        view.value(value, columns)
    }

    fn bookmark(&mut self, revision: u64, ends_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match &self.representation {
            // Of kinds with fields that are always there, a bookmark has them too.
            Representation::Object => {
                let mut object = self.resource.strategy.blank().cloned().unwrap_or_else(
                    || json!({"kind": self.resource.names.kind, "apiVersion": self.resource.api_version()}),
                );
                object["metadata"] = metadata;
                object
            }
            Representation::PartialMetadata { version } => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
            }),
            Representation::Table { version } => json!({
                "kind": "Table",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": Value::Null,
                "rows": [],
            }),
        };
        frame("BOOKMARK", &json::encode(&object))
    }
}

fn frame(ty: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 40);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(ty.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object.trim_ascii_end());
    out.put_slice(b"}\n");
    out.freeze()
}
