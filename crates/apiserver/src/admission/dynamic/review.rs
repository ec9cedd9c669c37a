//! One write as webhooks and policies see it.

use super::access;
use crate::admission::Request;
use crate::registry::Served;
use crate::resource::{NAMESPACES, Resource};
use crate::server::Inner;
use crate::subresource::Subresource;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use transom_admission::AccessDecider;
use transom_admission::rules::Target;
use transom_admission::selection::LabelSelector;
use transom_object::Status;
use transom_store::Key;

/// The write under review with its objects.
pub(super) struct Reviewed<'a> {
    pub(super) server: &'a Inner,
    pub(super) request: &'a Request<'a>,
    content: transom_admission::Request,
    namespace: OnceLock<Value>,
    authorizer: Arc<dyn AccessDecider>,
    served: Arc<Served>,
}

/// The version in which a webhook or a policy sees the object.
pub(super) struct Seen<'a> {
    /// None: that of the request.
    other: Option<Arc<Resource>>,
    pub(super) content: Cow<'a, transom_admission::Request>,
}

impl Request<'_> {
    /// As rules see the request.
    pub(super) fn target(&self) -> Target<'_> {
        Target {
            operation: self.operation.as_str(),
            group: &self.resource.group,
            version: &self.resource.version,
            resource: &self.resource.names.plural,
            subresource: self.subresource.as_str(),
            namespace: if self.resource.is_namespace() { self.name } else { self.namespace },
            name: self.name,
        }
    }

    /// Whether the request is for the objects that configure admission.
    pub(super) fn configures_admission(&self) -> bool {
        self.target().is_admission_configuration()
    }

    /// `AdmissionRequest` without uid and objects, for an object in a version.
    fn to_value(&self, resource: &Resource, name: &str) -> Value {
        let identify = |resource: &Resource| {
            let kind = self.subresource.kind(resource);
            (
                json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
                json!({"group": resource.group, "version": resource.version, "resource": resource.names.plural}),
            )
        };
        let ((kind, plural), (request_kind, request_plural)) = (identify(resource), identify(self.resource));
        let user = self.by.user;
        let mut info = json!({"username": user.user, "groups": user.groups});
        if !user.uid.is_empty() {
            info["uid"] = user.uid.as_str().into();
        }
        let mut value = json!({
            "kind": kind, "resource": plural, "requestKind": request_kind, "requestResource": request_plural,
            "operation": self.operation.as_str(), "userInfo": info, "dryRun": self.is_dry_run(),
            "options": self.options_value(),
        });
        let namespace = if self.resource.is_namespace() { name } else { self.namespace };
        for (key, text) in
            [("name", name), ("namespace", namespace), ("subResource", self.subresource.as_str())]
        {
            if !text.is_empty() {
                value[key] = text.into();
            }
        }
        if let Some(sub) = value.get("subResource").cloned() {
            value["requestSubResource"] = sub;
        }
        value
    }
}

impl<'a> Reviewed<'a> {
    pub(super) fn new(
        server: &'a Inner,
        request: &'a Request<'a>,
        object: Value,
        old: Option<&Value>,
    ) -> Self {
        let named =
            object["metadata"]["name"].as_str().filter(|_| request.name.is_empty()).unwrap_or(request.name);
        let content = transom_admission::Request {
            request: request.to_value(request.resource, named),
            object,
            old_object: old.cloned().unwrap_or_default(),
        };
        Self {
            server,
            request,
            content,
            namespace: OnceLock::new(),
            authorizer: access::of(server, request.by.user),
            served: server.registry.served(),
        }
    }

    pub(super) fn into_object(self) -> Value {
        self.content.object
    }

    pub(super) fn content(&self) -> &transom_admission::Request {
        &self.content
    }

    /// The namespace of the object; null for an object without one.
    pub(super) fn namespace(&self) -> &Value {
        self.namespace.get_or_init(|| {
            if !self.request.resource.namespaced {
                return Value::Null;
            }
            let entry = self.server.store.get(&Key::new(NAMESPACES, "", self.request.namespace));
            entry.and_then(|entry| serde_json::from_slice(&entry.body).ok()).unwrap_or_default()
        })
    }

    /// What expressions ask about the rights of the client and of service accounts.
    pub(super) fn authorizer(&self) -> &Arc<dyn AccessDecider> {
        &self.authorizer
    }

    /// Whether selectors select the object and its namespace. A namespace is in the namespace that it is; other objects
    /// without a namespace are selected by every selector of namespaces.
    pub(super) fn is_selected(&self, namespaces: &LabelSelector, objects: &LabelSelector) -> bool {
        let in_namespace = if namespaces.is_everything() {
            true
        } else if self.request.resource.is_namespace() {
            let content = &self.content;
            namespaces.selects(if content.object.is_object() { &content.object } else { &content.old_object })
        } else {
            !self.request.resource.namespaced || namespaces.selects(self.namespace())
        };
        in_namespace && objects.selects_either(&self.content)
    }

    /// The version in which rules name the request: its own, or with `equivalent` another one of the same kind.
    pub(super) fn seen_by(
        &self,
        equivalent: bool,
        names: impl Fn(&Target<'_>) -> bool,
    ) -> Result<Option<Seen<'_>>, Status> {
        let target = self.request.target();
        if names(&target) {
            return Ok(Some(Seen { other: None, content: Cow::Borrowed(&self.content) }));
        }
        let resource = self.request.resource;
        let converted_by_webhook = resource.conversion.is_some();
        if !equivalent
            || converted_by_webhook
            || resource.definition.is_none()
            || self.request.subresource == Subresource::Scale
        {
            return Ok(None);
        }
        let versions = resource.schemas.keys().filter_map(|api_version| api_version.split_once('/'));
        for (_, version) in versions.filter(|(_, version)| *version != resource.version) {
            if !names(&Target { version, ..target }) {
                continue;
            }
            let gvr = transom_object::GroupVersion::new(&*resource.group, version)
                .with_resource(&*resource.names.plural);
            let Some(other) = self.served.find(&gvr) else { continue };
            let name = self.content.request["name"].as_str().unwrap_or_default();
            let content = transom_admission::Request {
                request: self.request.to_value(other, name),
                object: convert(resource, other, &self.content.object)?,
                old_object: convert(resource, other, &self.content.old_object)?,
            };
            return Ok(Some(Seen { other: Some(other.clone()), content: Cow::Owned(content) }));
        }
        Ok(None)
    }

    /// Continues with another object, in the version in which it was seen. Returns whether it is another.
    pub(super) fn replace(&mut self, other: Option<&Resource>, new: Value) -> Result<bool, Status> {
        let resource = self.request.resource;
        let mut new = match other {
            Some(other) => convert(other, resource, &new)?,
            None => new,
        };
        let subresource = self.request.subresource;
        if matches!(subresource, Subresource::Main | Subresource::Status | Subresource::Finalize)
            || matches!(subresource, Subresource::EphemeralContainers | Subresource::Resize)
        {
            resource.strategy.normalize(&mut new).map_err(Status::internal)?;
        }
        let changed = new != self.content.object;
        self.content.object = new;
        Ok(changed)
    }
}

impl Seen<'_> {
    pub(super) fn into_version(self) -> Option<Arc<Resource>> {
        self.other
    }
}

/// An object in another version of its kind.
fn convert(from: &Resource, to: &Resource, value: &Value) -> Result<Value, Status> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mut stored = from.strategy.convert_to_storage(value).into_owned();
    to.strategy.read(&mut stored).map_err(Status::internal)?;
    Ok(stored)
}
