//! Reviews: created, answered and never stored.

use super::not_supported;
use crate::admission::{Operation, Options, Request};
use crate::audit::user_info;
use crate::auth::{Attributes, Decision, Identity};
use crate::call::Call;
use crate::negotiate::Representation;
use crate::request::{FieldValidation, WriteOptions};
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::{decode, negotiate};
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_object::json::strings;
use transom_object::{GroupKind, Status, field};
use transom_rbac::Rule;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    if call.accept.representation != Representation::Object {
        let offered = negotiate::OFFERED;
        return Err(Status::not_acceptable(format!(
            "only the following media types are accepted: {offered}"
        )));
    }
    let body_type = negotiate::body_type(&call.headers, true)?;
    let mut decoded = decode::value(body, body_type, &call.resource.names.kind)?;
    let mut warnings = Vec::new();
    decode::normalize(&call.resource, &mut decoded, &[], FieldValidation::Warn, &mut warnings)?;
    call.warn(warnings);
    let mut value = decoded.value;
    let options = WriteOptions::of_manager("");
    let review = Request {
        operation: Operation::Create,
        resource: &call.resource,
        subresource: Subresource::Main,
        namespace: &call.target.namespace,
        name: "",
        options: Options::Write(&options),
        by: call.requester(),
    };
    call.server.admit_mutating(&review, &mut value, None).await?;
    check(call, &value["spec"])?;
    call.server.admit_validating(&review, Some(&value), None).await?;
    let status = match call.resource.names.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.user)}),
        "SelfSubjectAccessReview" => access(call, &call.user, &value["spec"]).await,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(call, &subject(&value["spec"]), &value["spec"]).await
        }
        "SelfSubjectRulesReview" => {
            rules(call, value["spec"]["namespace"].as_str().unwrap_or_default()).await
        }
        "TokenReview" => {
            let token = value["spec"]["token"].as_str().unwrap_or_default();
            call.server.review_token(token, &strings(&value["spec"]["audiences"])).await
        }
        _ => return Err(not_supported(call)),
    };
    value["status"] = status;
    Ok(Answer::value(value).with_code(StatusCode::CREATED))
}

/// A review must name one action and, unless it is about the client itself, a user or a group.
fn check(call: &Call, spec: &Value) -> Result<(), Status> {
    let path = field::Path::new("spec");
    let kind = call.resource.names.kind.as_str();
    let mut errors = Vec::new();
    if kind.ends_with("AccessReview") {
        let (resource, other) =
            (spec["resourceAttributes"].is_object(), spec["nonResourceAttributes"].is_object());
        let exactly_one = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        if resource && other {
            let why = "cannot be specified in combination with resourceAttributes";
            errors.push(field::Error::invalid(
                &path.child("nonResourceAttributes"),
                spec["nonResourceAttributes"].clone(),
                why,
            ));
        } else if !resource && !other {
            errors.push(field::Error::invalid(&path.child("resourceAttributes"), Value::Null, exactly_one));
        }
    }
    if matches!(kind, "SubjectAccessReview" | "LocalSubjectAccessReview")
        && spec["user"].as_str().unwrap_or_default().is_empty()
        && spec["groups"].as_array().is_none_or(Vec::is_empty)
    {
        let why = "at least one of user or group must be specified";
        errors.push(field::Error::invalid(&path.child("user"), "", why));
    }
    if kind == "TokenReview" && spec["token"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    if kind == "SelfSubjectRulesReview" && spec["namespace"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    if kind == "LocalSubjectAccessReview" {
        errors.extend(check_namespace(call, spec, &path));
    }
    if errors.is_empty() { Ok(()) } else { Err(refused(call, &errors)) }
}

/// A local review is about resources in the namespace of its path, whatever its body says.
fn check_namespace(call: &Call, spec: &Value, path: &field::Path) -> Vec<field::Error> {
    let mut errors = Vec::new();
    if spec["nonResourceAttributes"].is_object() {
        let why = "disallowed on this kind of request";
        let given = spec["nonResourceAttributes"].clone();
        errors.push(field::Error::invalid(&path.child("nonResourceAttributes"), given, why));
    }
    let given = spec["resourceAttributes"]["namespace"].as_str().unwrap_or_default();
    if spec["resourceAttributes"].is_object() && given != call.target.namespace {
        let why = "must match metadata.namespace";
        let place = path.child("resourceAttributes").child("namespace");
        errors.push(field::Error::invalid(&place, given, why));
    }
    errors
}

/// Upstream leaves the kind out.
fn refused(call: &Call, errors: &[field::Error]) -> Status {
    Status::invalid(&GroupKind::new(&*call.resource.group, ""), "", errors)
}

fn subject(spec: &Value) -> Identity {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let extra: BTreeMap<String, Vec<String>> = spec["extra"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), strings(values)))
        .collect();
    Identity { user: text("user"), uid: text("uid"), groups: strings(&spec["groups"]), extra }
}

async fn access(call: &Call, user: &Identity, spec: &Value) -> Value {
    fn text<'v>(attributes: &'v Value, key: &str) -> &'v str {
        attributes[key].as_str().unwrap_or_default()
    }
    let path = &spec["nonResourceAttributes"];
    let attributes = if path.is_object() {
        Attributes::of_path(user, text(path, "verb"), text(path, "path"))
    } else {
        let given = &spec["resourceAttributes"];
        Attributes {
            group: text(given, "group"),
            version: text(given, "version"),
            resource: text(given, "resource"),
            subresource: text(given, "subresource"),
            namespace: text(given, "namespace"),
            name: text(given, "name"),
            ..Attributes::of(user, text(given, "verb"))
        }
    };
    match call.server.authorizer.explain(&attributes).await {
        (allowed, reason) if reason.is_empty() => json!({"allowed": allowed}),
        (allowed, reason) => json!({"allowed": allowed, "reason": reason}),
    }
}

/// The rules as a review lists them: without empty lists.
fn listed(rules: &[Rule]) -> Value {
    let shown = |rule: &Rule, kept: &[&str]| {
        let mut value = rule.to_value();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|key, _| kept.contains(&key.as_str()));
        }
        value
    };
    let of = |rules: Vec<&Rule>, kept: &[&str]| {
        rules.into_iter().map(|rule| shown(rule, kept)).collect::<Vec<Value>>()
    };
    let resources = rules.iter().filter(|rule| !rule.resources.is_empty()).collect();
    let paths = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty()).collect();
    json!({
        "resourceRules": of(resources, &["verbs", "apiGroups", "resources", "resourceNames"]),
        "nonResourceRules": of(paths, &["verbs", "nonResourceURLs"]),
        "incomplete": false,
    })
}

async fn rules(call: &Call, namespace: &str) -> Value {
    if let Some(rules) = call.server.authorizer.rules(&call.user, namespace) {
        return listed(&rules);
    }
    let everything = Attributes {
        group: "*",
        version: "*",
        resource: "*",
        namespace: "*",
        ..Attributes::of(&call.user, "deletecollection")
    };
    let all = call.server.authorizer.authorize(&everything).await == Decision::Allowed;
    if all {
        json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        })
    } else {
        json!({
            "resourceRules": [],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version"]}],
            "incomplete": false,
        })
    }
}
