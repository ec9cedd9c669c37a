//! Reviews: questions answered on create and never stored.

use super::not_supported;
use crate::auth::{Action, Identity};
use crate::call::Call;
use crate::negotiate::Representation;
use crate::request::{FieldValidation, Target, Verb};
use crate::respond::Answer;
use crate::{decode, negotiate};
use http::StatusCode;
use serde_json::{Value, json};
use transom_object::json::strings;
use transom_object::{GroupVersionResource, Status, field};

pub(super) fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
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
    check(call, &value["spec"])?;
    let status = match call.resource.names.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.who)}),
        "SelfSubjectAccessReview" => access(call, &call.who, &value["spec"]),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(call, &subject(&value["spec"]), &value["spec"])
        }
        "SelfSubjectRulesReview" => rules(call),
        "TokenReview" => call.server.review_token(value["spec"]["token"].as_str().unwrap_or_default()),
        _ => return Err(not_supported(call)),
    };
    value["status"] = status;
    Ok(Answer::value(value).with_code(StatusCode::CREATED))
}

/// A question must be complete: about one thing, and about somebody.
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
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&call.resource.group_kind(), "", &errors)) }
}

pub(crate) fn user_info(who: &Identity) -> Value {
    let mut info = json!({"username": who.user, "groups": who.groups});
    if !who.uid.is_empty() {
        info["uid"] = who.uid.as_str().into();
    }
    info
}

fn subject(spec: &Value) -> Identity {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    Identity { user: text("user"), uid: text("uid"), groups: strings(&spec["groups"]) }
}

fn access(call: &Call, who: &Identity, spec: &Value) -> Value {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let allowed = if spec["nonResourceAttributes"].is_object() {
        let a = &spec["nonResourceAttributes"];
        call.server.authorizer.allows(who, Action::Path { method: &text(a, "verb"), path: &text(a, "path") })
    } else {
        let a = &spec["resourceAttributes"];
        let target = Target {
            gvr: GroupVersionResource {
                group: text(a, "group"),
                version: text(a, "version"),
                resource: text(a, "resource"),
            },
            namespace: text(a, "namespace"),
            name: text(a, "name"),
            subresource: text(a, "subresource"),
        };
        let verb = verb(&text(a, "verb"));
        call.server.authorizer.allows(who, Action::Resource { verb, target: &target })
    };
    json!({"allowed": allowed})
}

/// Verbs we have no name for are judged as the most demanding one.
fn verb(text: &str) -> Verb {
    match text {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        _ => Verb::DeleteCollection,
    }
}

fn rules(call: &Call) -> Value {
    let everything = Target {
        gvr: GroupVersionResource { group: "*".into(), version: "*".into(), resource: "*".into() },
        namespace: "*".into(),
        name: String::new(),
        subresource: String::new(),
    };
    let all = call
        .server
        .authorizer
        .allows(&call.who, Action::Resource { verb: Verb::DeleteCollection, target: &everything });
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
