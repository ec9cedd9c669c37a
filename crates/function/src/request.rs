//! Reading a request: its tag, observed and desired resources, input, context, credentials and required resources.

use crate::proto::v1::credentials::Source;
use crate::{
    Capability, DEFAULT_TTL, Error, Resource, ResponseMeta, RunFunctionRequest, RunFunctionResponse, Struct,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// The context key of the environment.
pub const ENVIRONMENT: &str = "apiextensions.crossplane.io/environment";

static NOTHING: Resource = Resource { resource: None, connection_details: BTreeMap::new(), ready: 0 };

impl RunFunctionRequest {
    /// The request's tag; empty when it has none.
    pub fn tag(&self) -> &str {
        self.meta.as_ref().map_or("", |meta| &meta.tag)
    }

    /// Whether the caller advertises its capabilities. If it does not, a capability that is
    /// not advertised may exist all the same.
    pub fn advertises_capabilities(&self) -> bool {
        self.has_capability(Capability::Capabilities)
    }

    /// Whether the caller advertises this capability.
    pub fn has_capability(&self, capability: Capability) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.capabilities.contains(&(capability as i32)))
    }

    /// The step's input as a type. Use `#[serde(deny_unknown_fields)]` to refuse misspelt fields.
    pub fn parse_input<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let input = self.input.as_ref().ok_or_else(|| Error::fatal("the step has no input"))?;
        T::deserialize(input.as_value()).map_err(|e| Error::from(e).context("cannot read the step's input"))
    }

    /// The value of a key of the context.
    pub fn context_value(&self, key: &str) -> Option<&Value> {
        self.context.as_ref()?.fields().get(key)
    }

    /// The observed composite resource.
    pub fn observed_composite(&self) -> &Resource {
        self.observed.as_ref().and_then(|state| state.composite.as_ref()).unwrap_or(&NOTHING)
    }

    /// An observed composed resource, by its name in the composition.
    pub fn observed_composed(&self, name: &str) -> Option<&Resource> {
        self.observed.as_ref()?.resources.get(name)
    }

    /// The composite resource that earlier steps desire.
    pub fn desired_composite(&self) -> &Resource {
        self.desired.as_ref().and_then(|state| state.composite.as_ref()).unwrap_or(&NOTHING)
    }

    /// A composed resource that earlier steps desire.
    pub fn desired_composed(&self, name: &str) -> Option<&Resource> {
        self.desired.as_ref()?.resources.get(name)
    }

    /// The resources that satisfy a requirement: `None` until it was looked up, empty when it matched nothing. The
    /// deprecated extra resources of older callers are used too.
    pub fn required(&self, name: &str) -> Option<&[Resource]> {
        let found = self.required_resources.get(name).or_else(|| self.extra_resources.get(name))?;
        Some(&found.items)
    }

    /// A kind's required schema: `None` until it was looked up, `Some(None)` when the kind is unknown.
    pub fn required_schema(&self, name: &str) -> Option<Option<&Struct>> {
        Some(self.required_schemas.get(name)?.openapi_v3.as_ref())
    }

    /// The data of the credentials of a name.
    pub fn credential_data(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
        match self.credentials.get(name)?.source.as_ref()? {
            Source::CredentialData(data) => Some(&data.data),
        }
    }

    /// Begins the response: the tag and a [`DEFAULT_TTL`], with the desired state and the context of the earlier steps
    /// passed on. These two move into the response; what was observed stays here to be read.
    pub fn start_response(&mut self) -> RunFunctionResponse {
        let mut response = RunFunctionResponse {
            meta: Some(ResponseMeta { tag: self.tag().to_owned(), ttl: None }),
            desired: self.desired.take(),
            context: self.context.take(),
            ..RunFunctionResponse::default()
        };
        response.set_ttl(DEFAULT_TTL);
        response
    }

    /// Like [`start_response`](Self::start_response), but copies: the request can still be read in full.
    pub fn copy_response(&self) -> RunFunctionResponse {
        let (desired, context) = (self.desired.clone(), self.context.clone());
        let meta = self.meta.clone();
        RunFunctionRequest { meta, desired, context, ..Self::default() }.start_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RequestBuilder;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Input {
        replicas: u32,
    }

    #[test]
    fn a_request_is_read() {
        let request = RequestBuilder::new(json!({"metadata": {"name": "xr"}}))
            .input(json!({"replicas": 3}))
            .context(ENVIRONMENT, json!({"region": "eu"}))
            .observed("a", json!({"kind": "A"}))
            .desired("b", json!({"kind": "B"}))
            .credential("aws", "key", b"secret")
            .required("nodes", [json!({"kind": "Node"})])
            .build();
        assert_eq!(request.parse_input::<Input>().unwrap().replicas, 3);
        assert_eq!(request.context_value(ENVIRONMENT), Some(&json!({"region": "eu"})));
        assert_eq!(request.observed_composite().name(), "xr");
        assert_eq!(request.observed_composed("a").unwrap().get_str("kind").unwrap(), "A");
        assert_eq!(request.desired_composed("b").unwrap().get_str("kind").unwrap(), "B");
        assert_eq!(request.credential_data("aws").unwrap()["key"], b"secret");
        assert_eq!(request.required("nodes").unwrap().len(), 1);
        assert!(request.required("pods").is_none());
        assert!(request.has_capability(Capability::Conditions));
    }

    #[test]
    fn an_empty_request_is_read_too() {
        let mut request = RunFunctionRequest::default();
        assert_eq!(request.tag(), "");
        assert!(request.observed_composite().object().is_null());
        assert!(!request.advertises_capabilities());
        assert_eq!(request.parse_input::<Input>().err().unwrap().to_string(), "the step has no input");
        assert!(request.start_response().desired.is_none());
    }

    #[test]
    fn misspelt_input_is_refused() {
        let request = RequestBuilder::new(json!({})).input(json!({"replica": 3})).build();
        let error = request.parse_input::<Input>().err().unwrap().to_string();
        assert!(error.starts_with("cannot read the step's input: unknown field `replica`"), "{error}");
    }

    #[test]
    fn the_response_passes_on_what_came_before() {
        let builder = RequestBuilder::new(json!({})).desired("b", json!({"kind": "B"}));
        let mut request = builder.context("k", json!(1)).tag("t").build();
        let copied = request.copy_response();
        assert!(request.desired.is_some());
        let moved = request.start_response();
        assert_eq!(copied, moved);
        assert!(request.desired.is_none());
        assert_eq!(moved.meta.as_ref().unwrap().tag, "t");
        assert_eq!(moved.meta.unwrap().ttl.unwrap().seconds, 60);
        assert_eq!(moved.context.unwrap().into_value(), json!({"k": 1}));
        assert!(moved.desired.unwrap().resources.contains_key("b"));
    }
}
