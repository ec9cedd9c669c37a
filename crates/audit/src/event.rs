//! One event of the audit log: what is recorded of a request, as much as its level allows.

use crate::{Level, Stage};
use serde_json::{Map, Value, json};

/// The object that a request is about.
#[derive(Clone, Debug, Default)]
pub struct ObjectReference {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What is known about a request so far.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The same for all stages of a request.
    pub audit_id: String,
    /// How much is recorded.
    pub level: Level,
    /// The path and query.
    pub uri: String,
    /// The verb.
    pub verb: String,
    /// The user as `UserInfo`.
    pub user: Value,
    /// The user that it acts as.
    pub impersonated: Option<Value>,
    /// The addresses of the client, where known.
    pub source_ips: Vec<String>,
    /// The program of the client.
    pub user_agent: String,
    /// None for a path that is not a resource.
    pub object: Option<ObjectReference>,
    /// The object that was sent.
    pub request_object: Option<Value>,
    /// When the request was received.
    pub received: String,
    /// Why it was allowed or denied.
    pub annotations: Map<String, Value>,
    /// Objects are recorded without `managedFields`.
    pub omit_managed_fields: bool,
}

impl Event {
    /// The event of a stage, as a line of the log has it. `code` and `response` are those of the answer, if there is one.
    pub fn at(&self, stage: Stage, now: &str, code: Option<u16>, response: Option<Value>) -> Value {
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": self.level.as_str(), "auditID": self.audit_id,
            "stage": stage.as_str(), "requestURI": self.uri, "verb": self.verb, "user": self.user,
            "userAgent": self.user_agent, "requestReceivedTimestamp": self.received, "stageTimestamp": now,
        });
        if let Some(user) = &self.impersonated {
            event["impersonatedUser"] = user.clone();
        }
        if !self.source_ips.is_empty() {
            event["sourceIPs"] = json!(self.source_ips);
        }
        if let Some(object) = &self.object {
            event["objectRef"] = reference(object);
        }
        if let Some(code) = code {
            event["responseStatus"] = json!({"metadata": {}, "code": code});
        }
        if !self.annotations.is_empty() {
            event["annotations"] = Value::Object(self.annotations.clone());
        }
        if stage != Stage::RequestReceived && self.level >= Level::Request {
            self.add(&mut event, "requestObject", self.request_object.clone());
        }
        if stage != Stage::RequestReceived && self.level >= Level::RequestResponse {
            self.add(&mut event, "responseObject", response);
        }
        event
    }

    fn add(&self, event: &mut Value, field: &str, object: Option<Value>) {
        let Some(mut object) = object else { return };
        if self.omit_managed_fields {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        }
        event[field] = object;
    }
}

fn reference(object: &ObjectReference) -> Value {
    let fields = [
        ("resource", &object.resource),
        ("namespace", &object.namespace),
        ("name", &object.name),
        ("apiGroup", &object.group),
        ("apiVersion", &object.version),
        ("subresource", &object.subresource),
    ];
    let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(given.map(|(key, text)| (key.to_owned(), text.as_str().into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_as_much_as_its_level_allows() {
        let mut event =
            Event { level: Level::Metadata, request_object: Some(json!({"data": "x"})), ..Event::default() };
        event.object = Some(ObjectReference {
            resource: "maps".into(),
            namespace: "n".into(),
            ..ObjectReference::default()
        });
        let made = |event: &Event| {
            event.at(
                Stage::ResponseComplete,
                "now",
                Some(201),
                Some(json!({"metadata": {"managedFields": [1]}})),
            )
        };
        let metadata = made(&event);
        assert_eq!(metadata["objectRef"], json!({"resource": "maps", "namespace": "n"}));
        assert!(metadata.get("requestObject").is_none() && metadata.get("responseObject").is_none());
        event.level = Level::Request;
        assert!(made(&event).get("requestObject").is_some() && made(&event).get("responseObject").is_none());
        (event.level, event.omit_managed_fields) = (Level::RequestResponse, true);
        assert_eq!(made(&event)["responseObject"], json!({"metadata": {}}));
        assert_eq!(made(&event)["responseStatus"]["code"], 201);
    }
}
