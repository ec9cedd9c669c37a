//! Compositions of mode `Resources`, the templates of Crossplane's first version: a pipeline whose first step calls a function
//! that interprets these templates and is always available, followed by `spec.functions`, a step each.
//!
//! A template that cannot be rendered leaves its resource out of what is desired. It is wanted all the same, as long as
//! there is a template for it: what exists stays as it is, and stays referenced ([`has_template`]).

use crate::environment;
use crate::failure::Cause;
use serde_json::{Value, json};
use transom_object::meta;
use transom_object::quote::quote;
use transom_xapi::composition::NameReference;
use transom_xapi::{CompositionSpec, PipelineStep};

/// The function that runs such a composition. No installed Function can have this name.
pub const FUNCTION: &str = "mode:Resources";
const STEP: &str = "resources";

/// The pipeline that renders the templates and runs the functions.
pub(crate) fn pipeline(composition: &CompositionSpec) -> Result<Vec<PipelineStep>, Cause> {
    let named = composition.resources.iter().filter(|template| name(template).is_some()).count();
    if named != 0 && named != composition.resources.len() {
        return Err(Cause::Resources(
            "spec.resources: either every template has a name, or none has".to_owned(),
        ));
    }
    if !composition.functions.is_empty() && named != composition.resources.len() {
        return Err(Cause::Resources(
            "spec.resources: every template needs a name if the Composition has functions, because functions identify \
             resources by name"
                .to_owned(),
        ));
    }
    let mut steps = Vec::new();
    if !composition.resources.is_empty() || composition.functions.is_empty() {
        steps.push(templates(composition));
    }
    for function in &composition.functions {
        if steps.iter().any(|step| step.step == function.name && step.inline.is_some()) {
            let name = quote(&function.name);
            return Err(Cause::Resources(format!("two functions of the Composition have the name {name}")));
        }
        steps.push(PipelineStep {
            step: function.name.clone(),
            inline: Some(function.inline.clone()),
            input: function.config.clone(),
            ..PipelineStep::default()
        });
    }
    Ok(steps)
}

/// The step that renders the templates.
fn templates(composition: &CompositionSpec) -> PipelineStep {
    let mut templates = composition.resources.clone();
    for (index, template) in templates.iter_mut().enumerate() {
        let name = template_name(template, index);
        if let Some(fields) = template.as_object_mut() {
            fields.insert("name".to_owned(), name.into());
        }
        // A base may have a namespace, but its name is chosen by the control plane.
        if let Some(base) = template.get_mut("base").filter(|base| !meta::name(base).is_empty()) {
            meta::set(base, "name", Value::Null);
        }
    }
    let mut input = json!({"resources": templates, "patchSets": composition.patch_sets});
    if let Some(environment) = environment::patches(composition) {
        input["environment"] = environment;
    }
    PipelineStep {
        step: STEP.to_owned(),
        function_ref: NameReference::new(FUNCTION),
        input: Some(input),
        ..PipelineStep::default()
    }
}

/// A template's name. Those without are known by their place, and so are then the resources they compose.
pub(crate) fn template_name(template: &Value, index: usize) -> String {
    name(template).map_or_else(|| index.to_string(), str::to_owned)
}

fn name(template: &Value) -> Option<&str> {
    template.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// Whether a composed resource is still meant to exist, even if it could not be rendered.
pub(crate) fn has_template(composition: &CompositionSpec, resource: &str) -> bool {
    let mut templates = composition.resources.iter().enumerate();
    composition.is_resources_mode()
        && templates.any(|(index, template)| template_name(template, index) == resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(resources: Value) -> Value {
        let Value::Array(resources) = resources else { panic!("templates are a list") };
        let spec = CompositionSpec { resources, ..CompositionSpec::default() };
        pipeline(&spec).unwrap().remove(0).input.unwrap()
    }

    #[test]
    fn templates_are_named_and_bases_are_not() {
        let base = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "n", "namespace": "ns"}});
        let input = input(json!([{"base": base}, {"base": {"apiVersion": "v1", "kind": "B"}}]));
        assert_eq!(
            input["resources"],
            json!([
                {"name": "0", "base": {"apiVersion": "v1", "kind": "A", "metadata": {"namespace": "ns"}}},
                {"name": "1", "base": {"apiVersion": "v1", "kind": "B"}},
            ])
        );
    }

    #[test]
    fn all_templates_have_names_or_none() {
        let spec = CompositionSpec {
            resources: vec![json!({"name": "a"}), json!({})],
            ..CompositionSpec::default()
        };
        assert!(pipeline(&spec).is_err());
    }

    fn steps(resources: &Value, functions: &Value) -> Result<Vec<String>, Cause> {
        let spec = json!({"resources": resources, "functions": functions});
        let spec: CompositionSpec = serde_json::from_value(spec).unwrap();
        Ok(pipeline(&spec)?.into_iter().map(|step| step.step).collect())
    }

    #[test]
    fn functions_are_run_after_the_templates() {
        let function = |name: &str| json!({"name": name, "container": {"image": "r.io/f"}});
        let (named, unnamed) = (json!([{"name": "a"}]), &json!([{}]));
        let two = json!([function("one"), function("two")]);
        assert_eq!(steps(&named, &two).unwrap(), [STEP, "one", "two"]);
        assert_eq!(steps(&json!([]), &two).unwrap(), ["one", "two"]);
        assert_eq!(steps(unnamed, &json!([])).unwrap(), [STEP]);
        assert!(steps(unnamed, &two).is_err(), "functions know resources by their names");
        assert!(steps(&named, &json!([function("one"), function("one")])).is_err());
    }
}
