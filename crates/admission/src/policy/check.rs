//! Validation of policies and bindings when they are written.

use super::{environment, environment_of_messages};
use serde_json::Value;
use std::collections::BTreeSet;
use transom_cel::{Env, Program, Type};
use transom_object::field::{Error, Path};
use transom_object::names;

/// The errors of a policy of either kind.
pub fn validate_policy(policy: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (spec, path) = (&policy["spec"], Path::new("spec"));
    let env = environment(spec["paramKind"].is_object());
    let mutating = policy["kind"] == "MutatingAdmissionPolicy";
    if !spec["failurePolicy"].is_null() && !matches!(spec["failurePolicy"].as_str(), Some("Fail" | "Ignore"))
    {
        errors.push(Error::not_supported(
            &path.child("failurePolicy"),
            text(&spec["failurePolicy"]),
            &["Fail", "Ignore"],
        ));
    }
    param_kind(&spec["paramKind"], &path.child("paramKind"), &mut errors);
    let constraints = path.child("matchConstraints");
    if !spec["matchConstraints"].is_object() {
        errors.push(Error::required(&constraints, ""));
    } else if count(&spec["matchConstraints"]["resourceRules"]) == 0 {
        errors.push(Error::required(&constraints.child("resourceRules"), ""));
    }
    rules(&spec["matchConstraints"], &constraints, &mut errors);
    named_expressions(
        &spec["matchConditions"],
        &path.child("matchConditions"),
        &env,
        Some(&Type::Bool),
        &mut errors,
    );
    named_expressions(&spec["variables"], &path.child("variables"), &env, None, &mut errors);
    if mutating {
        mutations(spec, &path, &env, &mut errors);
    } else {
        validations(spec, &path, &env, &mut errors);
    }
    errors
}

fn mutations(spec: &Value, path: &Path, env: &Env, errors: &mut Vec<Error>) {
    let at = path.child("mutations");
    if count(&spec["mutations"]) == 0 {
        errors.push(Error::required(&at, "must contain at least one item"));
    }
    if !matches!(spec["reinvocationPolicy"].as_str(), Some("Never" | "IfNeeded")) {
        let shown = text(&spec["reinvocationPolicy"]);
        errors.push(if shown.is_empty() {
            Error::required(&path.child("reinvocationPolicy"), "")
        } else {
            Error::not_supported(&path.child("reinvocationPolicy"), shown, &["IfNeeded", "Never"])
        });
    }
    let env = env.clone().with_message("Object").with_message("JSONPatch");
    for (i, mutation) in items(&spec["mutations"]).enumerate() {
        let (at, kind) = (at.index(i), text(&mutation["patchType"]));
        let (wanted, other) = match kind {
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            "" => {
                errors.push(Error::required(&at.child("patchType"), ""));
                continue;
            }
            _ => {
                let known = ["ApplyConfiguration", "JSONPatch"];
                errors.push(Error::not_supported(&at.child("patchType"), kind, &known));
                continue;
            }
        };
        if !mutation[other].is_null() {
            let why = format!("must be omitted when patchType is {kind}");
            errors.push(Error::invalid(&at.child(other), Value::Null, why));
        }
        if mutation[wanted].is_null() {
            errors.push(Error::required(
                &at.child(wanted),
                format!("must be specified when patchType is {kind}"),
            ));
            continue;
        }
        expression(
            &mutation[wanted]["expression"],
            &at.child(wanted).child("expression"),
            &env,
            None,
            errors,
        );
    }
}

fn validations(spec: &Value, path: &Path, env: &Env, errors: &mut Vec<Error>) {
    if count(&spec["validations"]) == 0 && count(&spec["auditAnnotations"]) == 0 {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(Error::required(&path.child("validations"), why));
    }
    for (i, validation) in items(&spec["validations"]).enumerate() {
        let at = path.child("validations").index(i);
        expression(&validation["expression"], &at.child("expression"), env, Some(&Type::Bool), errors);
        if validation["messageExpression"].is_string() {
            let message = &validation["messageExpression"];
            let env = environment_of_messages(spec["paramKind"].is_object());
            expression(message, &at.child("messageExpression"), &env, Some(&Type::String), errors);
        }
        let message = text(&validation["message"]);
        if validation["message"].is_string() && message.trim().is_empty() {
            errors.push(Error::invalid(
                &at.child("message"),
                message,
                "message must be non-empty if specified",
            ));
        } else if message.contains('\n') {
            errors.push(Error::invalid(
                &at.child("message"),
                message,
                "message must not contain line breaks",
            ));
        }
        let reason = text(&validation["reason"]);
        let known = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
        if !reason.is_empty() && !known.contains(&reason) {
            errors.push(Error::not_supported(&at.child("reason"), reason, &known));
        }
    }
    let mut keys = BTreeSet::new();
    for (i, annotation) in items(&spec["auditAnnotations"]).enumerate() {
        let at = path.child("auditAnnotations").index(i);
        let key = text(&annotation["key"]);
        if key.is_empty() {
            errors.push(Error::required(&at.child("key"), ""));
        } else if !keys.insert(key) {
            errors.push(Error::duplicate(&at.child("key"), key));
        }
        expression(&annotation["valueExpression"], &at.child("valueExpression"), env, None, errors);
    }
}

/// The errors of a binding of either kind.
pub fn validate_binding(binding: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (spec, path) = (&binding["spec"], Path::new("spec"));
    if text(&spec["policyName"]).is_empty() {
        errors.push(Error::required(&path.child("policyName"), ""));
    }
    let reference = &spec["paramRef"];
    if reference.is_object() {
        let at = path.child("paramRef");
        let (named, selected) = (!text(&reference["name"]).is_empty(), reference["selector"].is_object());
        if named && selected {
            errors.push(Error::forbidden(&at.child("name"), "name and selector are mutually exclusive"));
            errors.push(Error::forbidden(&at.child("selector"), "name and selector are mutually exclusive"));
        } else if !named && !selected {
            errors.push(Error::required(&at, "one of name or selector must be specified"));
        }
        match text(&reference["parameterNotFoundAction"]) {
            "" => errors.push(Error::required(&at.child("parameterNotFoundAction"), "")),
            "Allow" | "Deny" => {}
            other => {
                let action = at.child("parameterNotFoundAction");
                errors.push(Error::not_supported(&action, other, &["Deny", "Allow"]));
            }
        }
    }
    rules(&spec["matchResources"], &path.child("matchResources"), &mut errors);
    if binding["kind"] == "ValidatingAdmissionPolicyBinding" {
        actions(&spec["validationActions"], &path.child("validationActions"), &mut errors);
    }
    errors
}

fn actions(actions: &Value, path: &Path, errors: &mut Vec<Error>) {
    if count(actions) == 0 {
        errors.push(Error::required(path, "at least one validation action is required"));
    }
    let mut seen = BTreeSet::new();
    for (i, action) in items(actions).enumerate() {
        let action = text(action);
        if !["Deny", "Warn", "Audit"].contains(&action) {
            errors.push(Error::not_supported(&path.index(i), action, &["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action) {
            errors.push(Error::duplicate(&path.index(i), action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(Error::invalid(path, actions.clone(), why));
    }
}

fn rules(resources: &Value, path: &Path, errors: &mut Vec<Error>) {
    for list in ["resourceRules", "excludeResourceRules"] {
        for (i, rule) in items(&resources[list]).enumerate() {
            let at = path.child(list).index(i);
            for field in ["operations", "apiGroups", "apiVersions", "resources"] {
                if count(&rule[field]) == 0 {
                    errors.push(Error::required(&at.child(field), ""));
                }
            }
            for (i, operation) in items(&rule["operations"]).enumerate() {
                let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
                if !known.contains(&text(operation)) {
                    errors.push(Error::not_supported(
                        &at.child("operations").index(i),
                        text(operation),
                        &known,
                    ));
                }
            }
        }
    }
}

fn param_kind(kind: &Value, path: &Path, errors: &mut Vec<Error>) {
    if kind.is_null() {
        return;
    }
    for field in ["apiVersion", "kind"] {
        if text(&kind[field]).is_empty() {
            errors.push(Error::required(&path.child(field), ""));
        }
    }
}

/// A list of expressions with names of their own.
fn named_expressions(list: &Value, path: &Path, env: &Env, wanted: Option<&Type>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for (i, item) in items(list).enumerate() {
        let (at, name) = (path.index(i), text(&item["name"]));
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        } else if wanted.is_none() {
            let messages = names::is_c_identifier(name);
            errors.extend(messages.into_iter().map(|why| Error::invalid(&at.child("name"), name, why)));
        } else {
            let messages = names::is_qualified_name(name);
            errors.extend(messages.into_iter().map(|why| Error::invalid(&at.child("name"), name, why)));
        }
        if !name.is_empty() && !seen.insert(name) {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        expression(&item["expression"], &at.child("expression"), env, wanted, errors);
    }
}

fn expression(source: &Value, path: &Path, env: &Env, wanted: Option<&Type>, errors: &mut Vec<Error>) {
    let source = text(source);
    if source.trim().is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    match Program::compile(source, env) {
        Err(why) => errors.push(Error::invalid(path, source, why.to_string())),
        Ok(program) => {
            let found = program.result_type();
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found && *found != Type::Dyn) {
                errors.push(Error::invalid(path, source, format!("must evaluate to {wanted}, not {found}")));
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}
