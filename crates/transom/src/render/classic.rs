//! What `crossplane render` printed up to version 2.2, byte for byte: most examples and golden files in the wild show
//! it. It ran the pipeline only: functions saw the composite resource as it is in its file, nothing was named, deleted
//! or referenced.

use super::documents::{TIME, classic_result, context, freeze_times};
use super::options::Render;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_compose::{
    Decision, Failure, FunctionRunner, Inputs, Layout, NamedBy, Objects, Observed, ObservedResource, Options,
    Requirements, World, WorldError, compose,
};
use transom_function::async_trait;
use transom_object::time::Timestamp;
use transom_object::{GroupVersionKind, meta, time};
use transom_xapi::composition::Composition;
use transom_xapi::constants::{annotation, label};
use transom_xapi::{Condition, conditions};

pub(crate) struct Classic<'a> {
    pub(crate) xr: &'a Value,
    pub(crate) layout: Layout,
    pub(crate) composition: &'a Composition,
    pub(crate) observed: &'a [Value],
    pub(crate) context: serde_json::Map<String, Value>,
}

impl Classic<'_> {
    pub(crate) async fn run(
        &self,
        runner: &dyn FunctionRunner,
        world: &dyn World,
    ) -> Result<Decision, Failure> {
        let owner = owner(self.xr);
        let observed: Observed = self.observed.iter().map(by_name).collect();
        let inputs = Inputs {
            xr: &owner,
            visible_xr: Some(self.xr),
            layout: self.layout,
            connection_details: Default::default(),
            composition: &self.composition.spec,
            observed: &observed,
            spare: &[],
            required_before: &Requirements::new(),
            context: self.context.clone(),
            now: now(),
            options: Options { delete_uncontrolled: true, ..Options::default() },
        };
        compose(inputs, runner, world).await
    }
}

/// The resources that functions may require, as they were looked up: without regard to namespaces, and with an object
/// that is given twice counted twice.
pub(crate) struct Pool<'a> {
    pub(crate) required: &'a [Value],
    pub(crate) rest: &'a Objects,
}

impl Pool<'_> {
    fn of_kind(&self, kind: &GroupVersionKind) -> Vec<&Value> {
        let is_of = |object: &&Value| meta::gvk(object).as_ref() == Some(kind);
        let mut found: Vec<&Value> = self.required.iter().filter(is_of).collect();
        found.sort_by_key(|object| meta::name(object));
        found
    }
}

#[async_trait]
impl World for Pool<'_> {
    async fn get(&self, kind: &GroupVersionKind, _: &str, name: &str) -> Result<Option<Value>, WorldError> {
        Ok(self.of_kind(kind).into_iter().find(|object| meta::name(object) == name).cloned())
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        _: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let selected = |object: &&Value| labels.iter().all(|(k, v)| meta::label(object, k) == Some(v));
        Ok(self.of_kind(kind).into_iter().filter(selected).cloned().collect())
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        self.rest.schema(kind).await
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        self.rest.secret(namespace, name).await
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        self.rest.is_namespaced(kind).await
    }
}

fn now() -> Timestamp {
    time::parse(TIME).unwrap_or_default()
}

fn by_name(object: &Value) -> (String, ObservedResource) {
    let name = meta::annotation(object, annotation::COMPOSITION_RESOURCE_NAME).unwrap_or_default();
    (name.to_owned(), ObservedResource { object: object.clone().into(), ..ObservedResource::default() })
}

/// The composite resource with the labels that its composed resources inherit.
fn owner(xr: &Value) -> Value {
    let mut owner = xr.clone();
    let has = |key| meta::label(xr, key).is_some_and(|value| !value.is_empty());
    if !has(label::COMPOSITE) {
        meta::set_label(&mut owner, label::COMPOSITE, meta::name(xr));
    }
    let claim =
        xr.pointer("/spec/claimRef").filter(|_| !has(label::CLAIM_NAME) || !has(label::CLAIM_NAMESPACE));
    if let Some(claim) = claim {
        let text = |field| claim.get(field).and_then(Value::as_str).unwrap_or_default();
        meta::set_label(&mut owner, label::CLAIM_NAME, text("name"));
        meta::set_label(&mut owner, label::CLAIM_NAMESPACE, text("namespace"));
    }
    owner
}

/// The documents for one composite resource, in order.
pub(crate) fn documents(
    options: &Render,
    composition: &Composition,
    input: &Value,
    decision: Decision,
) -> Vec<Value> {
    let mut documents = vec![composite(options, input, &decision)];
    for application in decision.apply {
        let mut object = application.object.clone();
        if application.named_by == NamedBy::Engine {
            meta::set(&mut object, "name", Value::Null);
        }
        documents.push(object);
    }
    documents.iter_mut().for_each(freeze_times);
    if options.include_function_results {
        documents.extend(decision.events.iter().filter(|event| event.step.is_some()).map(classic_result));
    }
    if options.include_context {
        let mut context = context(decision.context);
        // Go does not tell an empty map that came over the wire from none. Without a step, none did.
        let called = !composition.spec.pipeline.is_empty();
        if called && context["fields"].as_object().is_some_and(serde_json::Map::is_empty) {
            context["fields"] = Value::Null;
        }
        documents.push(context);
    }
    documents
}

/// What the pipeline wants of the composite resource, readiness first among the conditions.
fn composite(options: &Render, input: &Value, decision: &Decision) -> Value {
    let mut xr = decision.composite.clone().unwrap_or_default().into_value();
    xr["apiVersion"] = meta::api_version(input).into();
    xr["kind"] = meta::kind(input).into();
    meta::set_name(&mut xr, meta::name(input));
    meta::set_namespace(&mut xr, meta::namespace(input));
    let report = decision.conclude(&Default::default());
    let all = || report.conditions.iter().map(|targeted| targeted.condition.clone());
    let ready = |condition: &Condition| condition.kind == "Ready";
    conditions::mark(&mut xr, all().filter(ready), now());
    conditions::mark(&mut xr, all().filter(|condition| !conditions::is_system(&condition.kind)), now());
    if options.include_full_xr {
        for part in ["spec", "metadata"] {
            xr[part] = input.get(part).cloned().unwrap_or_else(|| json!({}));
        }
    }
    xr
}
