//! One authorized request to one resource, handed to its verb; and on whose behalf objects are written.

use crate::audit::Trail;
use crate::auth::Identity;
use crate::negotiate::{Accept, header_text};
use crate::request::{Query, Target, Verb};
use crate::resource::Resource;
use crate::server::Inner;
use http::{HeaderMap, header};
use std::sync::{Arc, Mutex, PoisonError};
use transom_audit::Level;

pub(crate) struct Call {
    pub(crate) server: Arc<Inner>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) accept: Accept,
    pub(crate) user: Identity,
    pub(crate) headers: HeaderMap,
    /// Sent with the response, whether the request succeeds or fails.
    pub(crate) warnings: Mutex<Vec<String>>,
    /// What is recorded of the request; none without an audit log.
    pub(crate) trail: Option<Arc<Trail>>,
}

/// On whose behalf an object is written.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) user: &'a Identity,
    /// Where warnings for the client go. Writes of the server's own have no client.
    client: Option<&'a Call>,
}

impl<'a> Requester<'a> {
    /// The server itself, under the name of the Kubernetes component that does such work elsewhere.
    pub(crate) fn server(user: &'a Identity) -> Self {
        Self { user, client: None }
    }

    /// Whether a client requested the write; its permissions are checked.
    pub(crate) fn is_client(&self) -> bool {
        self.client.is_some()
    }

    pub(crate) fn warn(&self, warnings: Vec<String>) {
        if let Some(call) = self.client
            && !warnings.is_empty()
        {
            call.warn_once(warnings);
        }
    }

    /// Adds an annotation to the event of the request in the audit log, if that is of this level or a higher one.
    pub(crate) fn annotate(&self, level: Level, key: &str, value: impl FnOnce() -> String) {
        if let Some(trail) = self.client.and_then(|call| call.trail.as_ref()) {
            trail.annotate(level, key, value);
        }
    }
}

impl Call {
    pub(crate) fn requester(&self) -> Requester<'_> {
        Requester { user: &self.user, client: Some(self) }
    }

    pub(crate) fn user_agent(&self) -> &str {
        header_text(&self.headers, header::USER_AGENT.as_str())
    }

    pub(crate) fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// Adds warnings that a retried write would repeat.
    fn warn_once(&self, warnings: Vec<String>) {
        let mut sent = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !sent.contains(&warning) {
                sent.push(warning);
            }
        }
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn content_type(&self) -> &str {
        let full = header_text(&self.headers, header::CONTENT_TYPE.as_str());
        full.split(';').next().unwrap_or_default().trim()
    }
}
