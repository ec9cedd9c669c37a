//! `spec.environment` of a Composition, which Crossplane v1 had: a step before all others, whose function makes the
//! environment that templates patch from and that functions find in their context.

use serde_json::{Value, json};
use transom_xapi::composition::NameReference;
use transom_xapi::{CompositionSpec, PipelineStep};

/// The function that makes the environment. It is not an installed Function, and no Function can have this name.
pub const FUNCTION: &str = "spec:environment";
/// The step that calls it, named after the field it stands for.
pub const STEP: &str = "spec.environment";

/// The step, if the Composition has an environment.
pub(crate) fn step(composition: &CompositionSpec) -> Option<PipelineStep> {
    let environment = composition.environment.as_ref()?;
    let mut input = json!({});
    let parts = [("defaultData", &environment.default_data), ("policy", &environment.policy)];
    for (field, value) in parts {
        if let Some(value) = value {
            input[field] = value.clone();
        }
    }
    input["environmentConfigs"] = environment.environment_configs.clone().into();
    Some(PipelineStep {
        step: STEP.to_owned(),
        function_ref: NameReference::new(FUNCTION),
        input: Some(input),
        ..PipelineStep::default()
    })
}

/// The patches between the composite resource and the environment, for the input of templates.
pub(crate) fn patches(composition: &CompositionSpec) -> Option<Value> {
    let environment = composition.environment.as_ref().filter(|e| !e.patches.is_empty())?;
    Some(json!({"patches": environment.patches}))
}
