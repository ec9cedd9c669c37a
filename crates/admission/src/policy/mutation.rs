//! The mutations of a MutatingAdmissionPolicy.

use super::{Compiled, Policy};
use crate::Request;
use crate::selection::Matched;
use serde_json::Value;
use std::sync::Arc;
use transom_cel::{AccessDecider, Env, EvalError, Program};
use transom_schema::patch::{PatchError, json_patch};

/// One mutation, compiled.
#[derive(Debug)]
pub struct Mutation {
    program: Compiled,
    json_patch: bool,
}

/// What a mutation does to the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// The object that a JSON patch made.
    Replaced(Value),
    /// Fields to be merged into the object as server-side apply would.
    Applied(Value),
}

/// Why a mutation has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// A match condition or an expression cannot be evaluated: what CEL reports.
    #[error("{0}")]
    Expression(String),
    /// The value of the expression has no form in JSON.
    #[error(transparent)]
    NotJson(#[from] EvalError),
    /// The JSON patch does not apply to the object.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The apply configuration sets a field that identifies the object.
    #[error("an apply configuration must not set {0}")]
    Identity(String),
}

impl Mutation {
    pub(super) fn compile(mutation: &Value, env: &Env) -> Self {
        let json_patch = mutation["patchType"] == "JSONPatch";
        let part = if json_patch { &mutation["jsonPatch"] } else { &mutation["applyConfiguration"] };
        let source = part["expression"].as_str().unwrap_or_default();
        let env = env.clone().with_message("Object").with_message("JSONPatch");
        Self { program: Program::compile(source, &env).map_err(|e| e.to_string()), json_patch }
    }
}

impl Policy {
    /// Whether the policy has mutations.
    pub fn mutations(&self) -> usize {
        self.mutations.len()
    }

    /// Evaluates one mutation on the object of the request. `None` when match conditions exclude the request; `Err` is
    /// why it failed.
    pub fn mutate(
        &self,
        index: usize,
        request: &Request,
        namespace: &Value,
        params: &Value,
        authorizer: &Arc<dyn AccessDecider>,
    ) -> Result<Option<Patch>, MutationError> {
        let mut scope = self.scope(request, namespace, params, authorizer);
        match self.conditions.evaluate(&scope.bindings) {
            Matched::Yes => {}
            Matched::No => return Ok(None),
            Matched::Failed(why) => return Err(MutationError::Expression(why)),
        }
        self.bind_variables(&mut scope);
        let Some(mutation) = self.mutations.get(index) else { return Ok(None) };
        let made = scope.eval(&mutation.program).map_err(MutationError::Expression)?.to_json()?;
        if mutation.json_patch {
            return Ok(Some(Patch::Replaced(json_patch(&request.object, &made)?)));
        }
        if let Some(name) = ["apiVersion", "kind"].iter().find(|name| made.get(**name).is_some()) {
            return Err(MutationError::Identity((*name).to_owned()));
        }
        let own = ["name", "namespace", "uid", "resourceVersion", "managedFields"];
        if let Some(name) = own.iter().find(|name| made["metadata"].get(**name).is_some()) {
            return Err(MutationError::Identity(format!("metadata.{name}")));
        }
        Ok(Some(Patch::Applied(made)))
    }
}
