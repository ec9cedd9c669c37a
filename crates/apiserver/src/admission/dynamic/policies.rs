//! Admission policies: their bindings, parameters and results.

use super::Bound;
use super::annotations::{self, OfPolicy};
use super::review::Reviewed;
use crate::server::Inner;
use serde_json::Value;
use std::ops::Bound as Limit;
use transom_admission::policy::{Binding, Evaluation, Failure, Patch, Policy};
use transom_object::error_chain::chain;
use transom_object::status::{Cause, Details};
use transom_object::{GroupVersion, Status};
use transom_schema::patch::{merge_patch, strategic_merge_patch};
use transom_store::ObjectKey;

/// Requests that policies never see: they decide about access.
const EXCLUDED: [&str; 6] = [
    "tokenreviews",
    "selfsubjectreviews",
    "subjectaccessreviews",
    "localsubjectaccessreviews",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
];

impl Inner {
    /// Evaluates the policies. The first failure that a binding denies is the response.
    pub(super) fn validate_by_policies(
        &self,
        policies: &[Bound],
        reviewed: &Reviewed<'_>,
    ) -> Result<(), Status> {
        let mut refusal = None;
        for bound in policies {
            let mut annotations = OfPolicy::default();
            for binding in &bound.bindings {
                let Some(evaluation) = self.evaluate(&bound.policy, binding, reviewed)? else { continue };
                annotations.add(evaluation.audit_annotations);
                for failure in &evaluation.failures {
                    if let Some(why) = act(binding, failure, reviewed) {
                        refusal.get_or_insert(why);
                    }
                }
            }
            annotations.publish(reviewed.request.by, &bound.policy.name);
        }
        refusal.map_or(Ok(()), Err)
    }

    fn evaluate(
        &self,
        policy: &Policy,
        binding: &Binding,
        reviewed: &Reviewed<'_>,
    ) -> Result<Option<Evaluation>, Status> {
        if !is_bound(policy, binding, reviewed) {
            return Ok(None);
        }
        let Some(seen) = reviewed.seen_by(policy.matches.equivalent, |t| policy.matches.names(t))? else {
            return Ok(None);
        };
        let params = match self.params(policy, binding, reviewed) {
            Ok(params) => params,
            Err(_) if policy.ignores_failure => return Ok(None),
            Err(why) => {
                let failures = vec![Failure::unconditional(why)];
                return Ok(Some(Evaluation { failures, ..Evaluation::default() }));
            }
        };
        let mut all = Evaluation::default();
        for params in params {
            let evaluation =
                policy.validate(&seen.content, reviewed.namespace(), &params, reviewed.authorizer());
            let Some(evaluation) = evaluation else { continue };
            all.failures.extend(evaluation.failures);
            all.audit_annotations.extend(evaluation.audit_annotations);
        }
        Ok(Some(all))
    }

    /// Applies the mutations of a policy. Returns whether they changed the object.
    pub(super) fn mutate_by_policy(
        &self,
        bound: &Bound,
        reviewed: &mut Reviewed<'_>,
    ) -> Result<bool, Status> {
        let policy = &bound.policy;
        let mut changed = false;
        for binding in &bound.bindings {
            if !reviewed.content().object.is_object() || !is_bound(policy, binding, reviewed) {
                continue;
            }
            let refused_by = |reviewed: &Reviewed<'_>, why: &str| {
                let why =
                    format!("policy '{}' with binding '{}' denied request: {why}", policy.name, binding.name);
                refused(reviewed, &why, "")
            };
            let params = match self.params(policy, binding, reviewed) {
                Ok(params) => params,
                Err(_) if policy.ignores_failure => continue,
                Err(why) => return Err(refused_by(&*reviewed, &why)),
            };
            for params in params {
                match self.mutate_with(policy, &params, reviewed) {
                    Ok(mutated) => changed |= mutated,
                    Err(_) if policy.ignores_failure => {}
                    Err(why) => return Err(refused_by(&*reviewed, &why)),
                }
            }
        }
        Ok(changed)
    }

    fn mutate_with(
        &self,
        policy: &Policy,
        params: &Value,
        reviewed: &mut Reviewed<'_>,
    ) -> Result<bool, String> {
        let mut changed = false;
        for index in 0..policy.mutations() {
            let seen = reviewed
                .seen_by(policy.matches.equivalent, |t| policy.matches.names(t))
                .map_err(|s| s.message)?;
            let Some(seen) = seen else { return Ok(changed) };
            let patch =
                policy.mutate(index, &seen.content, reviewed.namespace(), params, reviewed.authorizer());
            let new = match patch.map_err(|error| chain(&error))? {
                None => continue,
                Some(Patch::Replaced(new)) => new,
                Some(Patch::Applied(fields)) => {
                    let object = &seen.content.object;
                    match reviewed.request.resource.strategy.patch_schema() {
                        Some(schema) => {
                            strategic_merge_patch(object, &fields, &schema).map_err(|e| e.to_string())?
                        }
                        None => merge_patch(object, &fields).map_err(|e| e.to_string())?,
                    }
                }
            };
            let other = seen.into_version();
            changed |= reviewed.replace(other.as_deref(), new).map_err(|s| s.message)?;
        }
        Ok(changed)
    }

    /// The parameters of a binding: null without any. `Err` is why there are none.
    fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        reviewed: &Reviewed<'_>,
    ) -> Result<Vec<Value>, String> {
        let (Some((api_version, kind)), Some(reference)) = (&policy.param_kind, &binding.params) else {
            return Ok(vec![Value::Null]);
        };
        let gv = GroupVersion::parse(api_version).unwrap_or_default();
        let served = self.registry.served();
        let resource = served.by_kind(&gv.group, &gv.version, kind);
        let resource = resource.ok_or_else(|| {
            format!("failed to configure policy: failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'")
        })?;
        let namespace = match (resource.namespaced, reference.namespace.as_str()) {
            (false, _) => "",
            (true, "") => reviewed.request.namespace,
            (true, given) => given,
        };
        if resource.namespaced && namespace.is_empty() {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        let mut found = Vec::new();
        if reference.name.is_empty() {
            let snapshot = self.store.snapshot(&resource.store_key);
            let key = |ns: &str| ObjectKey { namespace: ns.into(), name: "".into() };
            let range = (Limit::Included(key(namespace)), Limit::Excluded(key(&format!("{namespace}\0"))));
            for (_, entry) in snapshot.objects.range(range) {
                let value = resource.decode(entry).map_err(|s| s.message)?;
                if reference.selector.selects(&value) {
                    found.push(value);
                }
            }
        } else if let Some(entry) = self.store.get(&resource.key(namespace, &reference.name)) {
            found.push(resource.decode(&entry).map_err(|s| s.message)?);
        }
        match (found.is_empty(), reference.allows_missing) {
            (true, false) => {
                Err("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction".to_owned())
            }
            // Nothing to evaluate.
            _ => Ok(found),
        }
    }
}

/// Does with a failure what the binding says. Returns the response, if the request is denied.
fn act(binding: &Binding, failure: &Failure, reviewed: &Reviewed<'_>) -> Option<Status> {
    let (by, policy, message) = (reviewed.request.by, &binding.policy, &failure.message);
    let of = format!("ValidatingAdmissionPolicy '{policy}' with binding '{}'", binding.name);
    if binding.warns && !failure.unconditional {
        by.warn(vec![format!("Validation failed for {of}: {message}")]);
    }
    if binding.audits && !failure.unconditional {
        annotations::failed(by, binding, failure);
    }
    let denied = binding.denies || failure.unconditional;
    denied.then(|| refused(reviewed, &format!("{of} denied request: {message}"), &failure.reason))
}

fn is_bound(policy: &Policy, binding: &Binding, reviewed: &Reviewed<'_>) -> bool {
    let target = reviewed.request.target();
    let excluded = matches!(target.group, "authentication.k8s.io" | "authorization.k8s.io")
        && EXCLUDED.contains(&target.resource);
    !excluded
        && binding.matches.names(&target)
        && reviewed.is_selected(&policy.matches.namespaces, &policy.matches.objects)
        && reviewed.is_selected(&binding.matches.namespaces, &binding.matches.objects)
}

/// The response to a request that a policy refuses.
fn refused(reviewed: &Reviewed<'_>, why: &str, reason: &str) -> Status {
    let name = reviewed.content().request["name"].as_str().unwrap_or_default();
    let mut status = Status::forbidden(&reviewed.request.resource.group_resource(), name, why);
    let (code, reason) = match reason {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    (status.code, status.reason) = (code, reason.into());
    let details = status.details.get_or_insert_with(Box::<Details>::default);
    details.causes.push(Cause { message: why.to_owned(), ..Cause::default() });
    status
}
