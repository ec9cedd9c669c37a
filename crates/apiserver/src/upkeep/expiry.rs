//! Events live for an hour after they were last written.

use super::identity;
use super::namespaces::core;
use crate::request::{DeleteOptions, Propagation};
use crate::server::Inner;
use crate::write::{self, DeleteRequest};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transom_store::{Event, Key};

const EVENT_TTL: Duration = Duration::from_secs(3600);

/// Writes of events in the order they expire. A later write of the same event replaces the earlier entry.
#[derive(Default)]
pub(super) struct Expiry(VecDeque<(Instant, Key, u64)>);

impl Expiry {
    pub(super) fn note(&mut self, event: &Event) {
        if &*event.key.resource == "events" && event.new.is_some() {
            self.0.push_back((Instant::now() + EVENT_TTL, event.key.clone(), event.revision));
        }
    }

    pub(super) async fn expire(&mut self, server: &Arc<Inner>) {
        let Some(resource) = core(server, "events") else { return };
        let options = DeleteOptions::with_propagation(Propagation::Background);
        while self.0.front().is_some_and(|(at, _, _)| *at <= Instant::now()) {
            let Some((_, key, revision)) = self.0.pop_front() else { return };
            if server.store.get(&key).is_none_or(|e| e.revision != revision) {
                continue;
            }
            let request = DeleteRequest {
                namespace: &key.object.namespace,
                name: &key.object.name,
                options: &options,
                by: identity::server(),
            };
            if let Err(status) = write::delete(server, &resource, &request).await {
                tracing::debug!(event = %key.object.name, error = %status, "an event could not be expired");
            }
        }
    }
}
