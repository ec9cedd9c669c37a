//! `Status`: the error body of the Kubernetes API, with its golden texts.

use crate::field;
use crate::ids::{GroupKind, GroupResource};
use crate::quote::quote;
use serde_json::{Value, json};
use std::fmt;

/// A failed request. Rendered as a `v1` `Status` object by [`Status::to_value`].
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub code: u16,
    /// Empty where upstream leaves it out.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of a 410 on an expired list token.
    pub continue_token: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// A resource (plural) for most errors, a Kind for validation errors and delete preconditions.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl Status {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn about(self, gr: &GroupResource, name: &str) -> Self {
        self.with_details(Details {
            name: name.to_owned(),
            group: gr.group.clone(),
            kind: gr.resource.clone(),
            ..Details::default()
        })
    }

    pub fn not_found(gr: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{gr} {} not found", quote(name))).about(gr, name)
    }

    pub fn already_exists(gr: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{gr} {} already exists", quote(name))).about(gr, name)
    }

    pub fn conflict(gr: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {gr} {}: {why}", quote(name)))
            .about(gr, name)
    }

    pub fn forbidden(gr: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = if gr.resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{gr} is forbidden: {why}")
        } else {
            format!("{gr} {} is forbidden: {why}", quote(name))
        };
        Self::new(403, "Forbidden", message).about(gr, name)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn internal(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_details(Details {
            causes: vec![Cause { message: why, ..Cause::default() }],
            ..Details::default()
        })
    }

    pub fn method_not_supported(gr: &GroupResource, action: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!("{action} is not supported on resources of kind {}", quote(&gr.to_string())),
        )
        .about(gr, "")
    }

    /// 405 where the method means nothing on the path.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(Details::default())
    }

    /// 404 for a path that is no resource, as opposed to an object that is missing.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 422 with one cause per violation.
    pub fn invalid(gk: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let causes = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().to_owned(), message: e.body(), field: e.field.clone() })
            .collect();
        let mut message = format!("{gk} {} is invalid", quote(name));
        if !errors.is_empty() {
            message = format!("{message}: {}", field::aggregate(errors));
        }
        Self::new(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: gk.group.clone(),
            kind: gk.kind.clone(),
            causes,
            ..Details::default()
        })
    }

    pub fn to_value(&self) -> Value {
        let mut metadata = serde_json::Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.clone().into());
        }
        let mut v = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            v["reason"] = self.reason.into();
        }
        if let Some(d) = &self.details {
            v["details"] = d.to_value();
        }
        v
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut m = serde_json::Map::new();
        for (k, s) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !s.is_empty() {
                m.insert(k.into(), s.clone().into());
            }
        }
        if !self.causes.is_empty() {
            m.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            m.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(m)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut m = serde_json::Map::new();
        for (k, s) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !s.is_empty() {
                m.insert(k.into(), s.clone().into());
            }
        }
        Value::Object(m)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}
