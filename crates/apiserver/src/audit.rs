//! What is recorded of a request on its way through the server.

use crate::auth::Identity;
use crate::body::ApiBody;
use crate::negotiate::header_text;
use crate::request::RequestInfo;
use crate::server::Inner;
use http::request::Parts;
use http::{Response, header};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use transom_audit::{Decision, Event, Level, ObjectReference, Request, Stage};
use transom_object::{Status, names, time};

/// Where events go, and which are wanted.
pub trait AuditLog: Send + Sync {
    /// How a request is recorded.
    fn decide(&self, request: &Request<'_>) -> Decision;

    /// Records an event. The client waits for it.
    fn write(&self, event: &Value);
}

/// The address of the client, which the listener puts into the extensions of a request.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// One request, from when its user is known.
pub(crate) struct Trail {
    log: Arc<dyn AuditLog>,
    begun: Mutex<Option<(Event, Decision)>>,
}

impl Trail {
    pub(crate) fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log, begun: Mutex::default() }
    }

    /// The user is known, or its credential was refused.
    pub(crate) fn begin(
        &self,
        server: &Inner,
        audit_id: &str,
        info: &RequestInfo,
        parts: &Parts,
        user: Option<&Identity>,
    ) {
        let method = parts.method.as_str().to_ascii_lowercase();
        let asked = asked(info, &method, parts.uri.path(), user);
        let decision = self.log.decide(&asked);
        if decision.level == Level::None {
            return;
        }
        let address = parts.extensions.get::<ClientAddress>().map(|address| address.0.to_string());
        let event = Event {
            audit_id: audit_id.to_owned(),
            level: decision.level,
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: asked.verb.to_owned(),
            user: user.map_or_else(|| json!({}), user_info),
            source_ips: address.into_iter().collect(),
            user_agent: header_text(&parts.headers, header::USER_AGENT.as_str()).to_owned(),
            object: object(info),
            received: now(server),
            omit_managed_fields: decision.omit_managed_fields,
            ..Event::default()
        };
        if decision.records(Stage::RequestReceived) {
            self.log.write(&event.at(Stage::RequestReceived, &event.received, None, None));
        }
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some((event, decision));
    }

    fn change(&self, change: impl FnOnce(&mut Event)) {
        if let Some((event, _)) = &mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner) {
            change(event);
        }
    }

    /// The user that the client acts as.
    pub(crate) fn acts_as(&self, user: &Identity) {
        self.change(|event| event.impersonated = Some(user_info(user)));
    }

    /// Whether anything is recorded of the request.
    pub(crate) fn is_recorded(&self) -> bool {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether the request was allowed, and why.
    pub(crate) fn authorized(&self, outcome: &Result<(), Status>, reason: String) {
        let decision = if outcome.is_ok() { "allow" } else { "forbid" };
        self.change(|event| {
            event.annotations.insert("authorization.k8s.io/decision".to_owned(), decision.into());
            event.annotations.insert("authorization.k8s.io/reason".to_owned(), reason.into());
        });
    }

    /// Adds an annotation to an event of this level or a higher one. The first value of a key stays; a key that is not a
    /// qualified name with a prefix is left out.
    pub(crate) fn annotate(&self, level: Level, key: &str, value: impl FnOnce() -> String) {
        self.change(|event| {
            let known = event.annotations.contains_key(key);
            if event.level < level || known {
                return;
            }
            if !key.contains('/') || !names::is_qualified_name(key).is_empty() {
                tracing::warn!(key, "an annotation for the audit log has no valid key and is not recorded");
                return;
            }
            event.annotations.insert(key.to_owned(), value().into());
        });
    }

    /// The body of the request; recorded if it is JSON.
    pub(crate) fn sent(&self, body: &[u8]) {
        self.change(|event| {
            if event.level >= Level::Request {
                event.request_object = serde_json::from_slice(body).ok();
            }
        });
    }

    /// The answer begins (a watch), or is complete.
    pub(crate) fn answered(&self, server: &Inner, response: &Response<ApiBody>) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((event, decision)) = begun else { return };
        let (stage, object) = match response.body() {
            ApiBody::Stream(_) => (Stage::ResponseStarted, None),
            ApiBody::Chain(parts) if event.level >= Level::RequestResponse => {
                let bytes: Vec<u8> = parts.iter().flatten().copied().collect();
                (Stage::ResponseComplete, serde_json::from_slice(&bytes).ok())
            }
            ApiBody::Chain(_) => (Stage::ResponseComplete, None),
        };
        if decision.records(stage) {
            self.log.write(&event.at(stage, &now(server), Some(response.status().as_u16()), object));
        }
    }
}

fn now(server: &Inner) -> String {
    time::format_micro(server.environment.now())
}

fn asked<'a>(
    info: &'a RequestInfo,
    method: &'a str,
    path: &'a str,
    user: Option<&'a Identity>,
) -> Request<'a> {
    let who = Request {
        user: user.map_or("", |user| user.user.as_str()),
        groups: user.map_or(&[][..], |user| user.groups.as_slice()),
        ..Request::default()
    };
    match info {
        RequestInfo::Other(_) => Request { verb: method, path: Some(path), ..who },
        RequestInfo::Resource { verb, target } => Request {
            verb: verb.as_str(),
            group: &target.gvr.group,
            resource: &target.gvr.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            ..who
        },
    }
}

fn object(info: &RequestInfo) -> Option<ObjectReference> {
    let RequestInfo::Resource { target, .. } = info else { return None };
    Some(ObjectReference {
        group: target.gvr.group.clone(),
        version: target.gvr.version.clone(),
        resource: target.gvr.resource.clone(),
        subresource: target.subresource.clone(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
    })
}

/// A user as reviews and events show it.
pub(crate) fn user_info(user: &Identity) -> Value {
    let mut info = json!({"username": user.user, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
