//! `Status`: the error body of the Kubernetes API, with Kubernetes' texts.

use crate::field;
use crate::ids::{GroupKind, GroupResource};
use crate::quote::quote;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// A failed request. Rendered as a `v1` `Status` object by [`Status::to_value`].
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// Empty where upstream leaves it out.
    pub reason: Cow<'static, str>,
    /// The human-readable message.
    pub message: String,
    /// What the error is about.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of a 410 on an expired list token.
    pub continue_token: Option<String>,
}

/// `details` of a `Status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The group of the object.
    pub group: String,
    /// A resource (plural) for most errors, a Kind for validation errors and delete preconditions.
    pub kind: String,
    /// The UID of the object.
    pub uid: String,
    /// The violations.
    pub causes: Vec<Cause>,
    /// When to try again; zero if that is not known.
    pub retry_after_seconds: u32,
}

/// One violation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// Such as `FieldValueInvalid`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Status {
    /// A status of any kind.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, continue_token: None }
    }

    /// The same with details.
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

    /// 404: there is no object of this name.
    pub fn not_found(gr: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{gr} {} not found", quote(name))).about(gr, name)
    }

    /// 409: there is an object of this name.
    pub fn already_exists(gr: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{gr} {} already exists", quote(name))).about(gr, name)
    }

    /// 409: the object was changed in the meantime.
    pub fn conflict(gr: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {gr} {}: {why}", quote(name)))
            .about(gr, name)
    }

    /// 403: the request is not allowed.
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

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: the client is not known.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 500: the server failed.
    pub fn internal(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_details(Details {
            causes: vec![Cause { message: why, ..Cause::default() }],
            ..Details::default()
        })
    }

    /// 405: the resource does not have this verb.
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

    /// 404 for a path that does not name a resource, as opposed to an object that is missing.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 415: the body's type is not read.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 406: no accepted type is written.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 413: the body is too large.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 410: the revision is no longer kept.
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

    /// The `v1` `Status` object.
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
            v["reason"] = (*self.reason).into();
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
