//! Building a response: desired resources, results, conditions, requirements and the TTL.

use crate::proto::v1::resource_selector::Match;
use crate::proto::v1::{MatchLabels, Result as FunctionResult};
use crate::{
    Condition, Requirements, Resource, ResourceSelector, ResponseMeta, RunFunctionResponse, SchemaSelector,
    Severity, State, Status, Struct, Target,
};
use serde_json::Value;
use std::time::Duration;

/// The TTL of a response whose function sets none.
pub const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// The longest duration that protobuf allows, in seconds: ten thousand years.
const MAX_TTL_SECONDS: u64 = 315_576_000_000;

/// A TTL that is negative or not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a TTL of {seconds} seconds and {nanos} nanoseconds is invalid: it must be from 0 to {MAX_TTL_SECONDS} seconds, with at most 999999999 nanoseconds"
)]
pub struct InvalidTtl {
    seconds: i64,
    nanos: i32,
}

impl RunFunctionResponse {
    /// Sets how long the response may be reused for the same request.
    pub fn set_ttl(&mut self, ttl: Duration) {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(ttl.subsec_nanos()).unwrap_or_default();
        let meta = self.meta.get_or_insert_with(ResponseMeta::default);
        meta.ttl = Some(prost_types::Duration { seconds, nanos });
    }

    /// How long the response may be reused for the same request. `None` if it has no TTL, or a TTL of zero.
    ///
    /// # Errors
    /// If that is not a duration, or a negative one.
    pub fn ttl(&self) -> Result<Option<Duration>, InvalidTtl> {
        let Some(ttl) = self.meta.as_ref().and_then(|meta| meta.ttl) else { return Ok(None) };
        let invalid = InvalidTtl { seconds: ttl.seconds, nanos: ttl.nanos };
        // Not by conversion: that panics for some values that arrive from functions.
        let seconds = u64::try_from(ttl.seconds).ok().filter(|seconds| *seconds <= MAX_TTL_SECONDS);
        let nanos = u32::try_from(ttl.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let (Some(seconds), Some(nanos)) = (seconds, nanos) else { return Err(invalid) };
        Ok(Some(Duration::new(seconds, nanos)).filter(|ttl| !ttl.is_zero()))
    }

    fn state(&mut self) -> &mut State {
        self.desired.get_or_insert_with(State::default)
    }

    /// The desired composite resource, to set its status, its connection details or its readiness. A function can
    /// set nothing else of it.
    pub fn composite(&mut self) -> &mut Resource {
        self.state().composite.get_or_insert_with(Resource::default)
    }

    /// Adds a connection detail to the composite resource.
    pub fn set_connection_detail(&mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.composite().connection_details.insert(key.into(), value.into());
    }

    /// Adds a desired composed resource, or replaces the one that earlier steps desire under that name.
    pub fn set_composed(&mut self, name: impl Into<String>, resource: Resource) {
        self.state().resources.insert(name.into(), resource);
    }

    /// A desired composed resource, to change it.
    pub fn composed_mut(&mut self, name: &str) -> Option<&mut Resource> {
        self.desired.as_mut()?.resources.get_mut(name)
    }

    /// Removes a desired composed resource; if it exists, it is deleted.
    pub fn remove_composed(&mut self, name: &str) -> Option<Resource> {
        self.desired.as_mut()?.resources.remove(name)
    }

    /// Leaves a value for later steps.
    pub fn set_context(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.context.get_or_insert_with(Struct::default).fields_mut().insert(key.into(), value.into());
    }

    /// The result of an Operation; compositions ignore it.
    pub fn set_output(&mut self, output: Struct) {
        self.output = Some(output);
    }

    fn result(&mut self, severity: Severity, message: impl Into<String>) -> &mut FunctionResult {
        let (severity, target) = (severity as i32, Some(Target::Composite as i32));
        self.results.push(FunctionResult { severity, message: message.into(), reason: None, target });
        let last = self.results.len() - 1;
        &mut self.results[last]
    }

    /// Stops the pipeline; nothing is changed.
    pub fn fatal(&mut self, message: impl Into<String>) -> &mut FunctionResult {
        self.result(Severity::Fatal, message)
    }

    /// Emits a warning event.
    pub fn warning(&mut self, message: impl Into<String>) -> &mut FunctionResult {
        self.result(Severity::Warning, message)
    }

    /// Emits an event.
    pub fn normal(&mut self, message: impl Into<String>) -> &mut FunctionResult {
        self.result(Severity::Normal, message)
    }

    /// Sets a condition on the composite resource.
    pub fn condition(
        &mut self,
        kind: impl Into<String>,
        status: Status,
        reason: impl Into<String>,
    ) -> &mut Condition {
        self.conditions.push(Condition {
            r#type: kind.into(),
            status: status as i32,
            reason: reason.into(),
            message: None,
            target: Some(Target::Composite as i32),
        });
        let last = self.conditions.len() - 1;
        &mut self.conditions[last]
    }

    /// Requires resources under a name; the function is then run again with
    /// [`required`](crate::RunFunctionRequest::required) set.
    pub fn require(&mut self, name: impl Into<String>, selector: ResourceSelector) {
        self.requirements.get_or_insert_with(Requirements::default).resources.insert(name.into(), selector);
    }

    /// Requires the schema of a kind under a name.
    pub fn require_schema(
        &mut self,
        name: impl Into<String>,
        api_version: impl Into<String>,
        kind: impl Into<String>,
    ) {
        let selector = SchemaSelector { api_version: api_version.into(), kind: kind.into() };
        self.requirements.get_or_insert_with(Requirements::default).schemas.insert(name.into(), selector);
    }
}

impl ResourceSelector {
    fn new(api_version: impl Into<String>, kind: impl Into<String>, r#match: Option<Match>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), r#match, namespace: None }
    }

    /// The resource of a name.
    pub fn named(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(api_version, kind, Some(Match::MatchName(name.into())))
    }

    /// The resources with all of these labels.
    pub fn labelled<K: Into<String>, V: Into<String>>(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self::new(api_version, kind, Some(Match::MatchLabels(MatchLabels { labels })))
    }

    /// All resources of a kind: on the wire a set of no labels, which every caller understands.
    pub fn all(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self::new(api_version, kind, Some(Match::MatchLabels(MatchLabels::default())))
    }

    /// The same selector in one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

impl FunctionResult {
    /// Gives the event a reason: one word in CamelCase.
    pub fn with_reason(&mut self, reason: impl Into<String>) -> &mut Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sends the event to the claim too.
    pub fn and_claim(&mut self) -> &mut Self {
        self.set_target(Target::CompositeAndClaim);
        self
    }
}

impl Condition {
    /// Gives the condition a message for users.
    pub fn with_message(&mut self, message: impl Into<String>) -> &mut Self {
        self.message = Some(message.into());
        self
    }

    /// Sets the condition on the claim too.
    pub fn and_claim(&mut self) -> &mut Self {
        self.set_target(Target::CompositeAndClaim);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_response_is_built() {
        let mut response = RunFunctionResponse::default();
        response.composite().set("status.ready", true).unwrap();
        response.set_connection_detail("url", "http://x");
        response.set_composed("a", Resource::new(json!({"kind": "A"})).unwrap());
        response.set_composed("b", Resource::default());
        response.composed_mut("a").unwrap().set_ready(crate::Ready::True);
        assert!(response.remove_composed("b").is_some());
        response.set_context("k", json!({"v": 1}));
        response.set_ttl(Duration::from_millis(1500));
        response.warning("careful").with_reason("Odd").and_claim();
        response.normal("fine");
        response.condition("Ready", Status::ConditionFalse, "Waiting").with_message("for a").and_claim();
        response.require("nodes", ResourceSelector::all("v1", "Node"));
        response.require("one", ResourceSelector::named("v1", "Pod", "p").in_namespace("ns"));
        response.require("some", ResourceSelector::labelled("v1", "Pod", [("app", "x")]));
        response.require_schema("s", "v1", "Pod");
        response.set_output(Struct::try_from(json!({"done": true})).unwrap());
        assert_eq!(
            serde_json::to_value(&response).unwrap(),
            json!({
                "meta": {"ttl": "1.500s"},
                "desired": {
                    "composite": {
                        "resource": {"status": {"ready": true}},
                        "connectionDetails": {"url": "aHR0cDovL3g="},
                    },
                    "resources": {"a": {"resource": {"kind": "A"}, "ready": "READY_TRUE"}},
                },
                "context": {"k": {"v": 1}},
                "results": [
                    {
                        "severity": "SEVERITY_WARNING",
                        "message": "careful",
                        "reason": "Odd",
                        "target": "TARGET_COMPOSITE_AND_CLAIM",
                    },
                    {"severity": "SEVERITY_NORMAL", "message": "fine", "target": "TARGET_COMPOSITE"},
                ],
                "conditions": [{
                    "type": "Ready",
                    "status": "STATUS_CONDITION_FALSE",
                    "reason": "Waiting",
                    "message": "for a",
                    "target": "TARGET_COMPOSITE_AND_CLAIM",
                }],
                "requirements": {
                    "resources": {
                        "nodes": {"apiVersion": "v1", "kind": "Node", "matchLabels": {}},
                        "one": {"apiVersion": "v1", "kind": "Pod", "matchName": "p", "namespace": "ns"},
                        "some": {"apiVersion": "v1", "kind": "Pod", "matchLabels": {"labels": {"app": "x"}}},
                    },
                    "schemas": {"s": {"apiVersion": "v1", "kind": "Pod"}},
                },
                "output": {"done": true},
            })
        );
    }
}
