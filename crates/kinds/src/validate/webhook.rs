//! Validates configurations of admission webhooks as kube-apiserver does. An update may keep what was once allowed.

use super::At;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_cel as cel;
use transom_go::url::{HostColons, Url};
use transom_object::field::Error;
use transom_object::{labels, names};

/// Webhooks with more conditions are refused.
const MAX_CONDITIONS: usize = 64;
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const FORM: &str = "; desired format: https://host[/path]";

/// An update may keep what an old object was allowed to have: repeated names, unknown review versions.
pub(super) fn configuration(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let hooks = object.get("webhooks");
    let before = old.map(|old| At::root(old).get("webhooks"));
    let unique_names = before.as_ref().is_none_or(|hooks| {
        let all: BTreeSet<&str> = hooks.items().map(|h| h.text("name")).collect();
        all.len() == hooks.items().len()
    });
    let recognized = before.as_ref().is_none_or(|hooks| hooks.items().all(|h| recognizes(&h)));
    let mut seen = BTreeSet::new();
    for hook in hooks.items() {
        webhook(&hook, errors);
        review_versions(&hook, recognized, errors);
        let name = hook.text("name");
        if unique_names && !name.is_empty() && !seen.insert(name) {
            errors.push(Error::duplicate(&hook.path.child("name"), name));
        }
    }
}

fn recognizes(hook: &At<'_>) -> bool {
    let versions = hook.get("admissionReviewVersions");
    versions.items().len() == 0 || versions.items().any(|v| REVIEWS.contains(&v.str()))
}

fn review_versions(hook: &At<'_>, must_recognize: bool, errors: &mut Vec<Error>) {
    let versions = hook.get("admissionReviewVersions");
    if versions.items().len() == 0 {
        errors.push(Error::required(&versions.path, format!("must specify one of {}", REVIEWS.join(", "))));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.str()) {
            version.invalid(names::is_dns1035_label(version.str()), errors);
        } else {
            version.invalid(vec!["duplicate version".into()], errors);
        }
    }
    if must_recognize && !recognizes(hook) {
        versions.invalid(vec![format!("must include at least one of {}", REVIEWS.join(", "))], errors);
    }
}

fn webhook(hook: &At<'_>, errors: &mut Vec<Error>) {
    errors.extend(names::is_fully_qualified_name(&hook.path.child("name"), hook.text("name")));
    for r in hook.get("rules").items() {
        rule(&r, errors);
    }
    for (field, supported) in [
        ("failurePolicy", &["Fail", "Ignore"][..]),
        ("matchPolicy", &["Equivalent", "Exact"]),
        ("sideEffects", &["None", "NoneOnDryRun"]),
        ("reinvocationPolicy", &["IfNeeded", "Never"]),
    ] {
        let value = hook.get(field);
        if !value.is_null() {
            value.one_of(supported, errors);
        } else if field == "sideEffects" {
            errors
                .push(Error::required(&value.path, format!("must specify one of {}", supported.join(", "))));
        }
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.value.as_i64().is_some_and(|t| !(1..=30).contains(&t)) {
        timeout.invalid(vec!["the timeout value must be between 1 and 30 seconds".into()], errors);
    }
    for selector in [hook.get("namespaceSelector"), hook.get("objectSelector")] {
        errors.extend(labels::validate_label_selector(selector.value, &selector.path));
    }
    match_conditions(&hook.get("matchConditions"), errors);
    let client = hook.get("clientConfig");
    match (client.value.get("url"), client.value.get("service")) {
        (Some(Value::String(_)), None) => url(&client.get("url"), errors),
        (None, Some(_)) => service(&client.get("service"), errors),
        _ => errors.push(Error::required(&client.path, "exactly one of url or service is required")),
    }
}

/// Expressions that must be true for the webhook to be called.
fn match_conditions(conditions: &At<'_>, errors: &mut Vec<Error>) {
    let count = conditions.items().len();
    if count > MAX_CONDITIONS {
        errors.push(Error::too_many(&conditions.path, count as i64, MAX_CONDITIONS as i64));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions.items().take(MAX_CONDITIONS) {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        match expression.str().trim() {
            "" => errors.push(Error::required(&expression.path, "")),
            text => errors.extend(problem(text).map(|why| Error::invalid(&expression.path, text, why))),
        }
        if name.str().is_empty() {
            errors.push(Error::required(&name.path, ""));
            continue;
        }
        name.invalid(names::is_qualified_name(name.str()), errors);
        if !seen.insert(name.str()) {
            errors.push(Error::duplicate(&name.path, name.str()));
        }
    }
}

/// Why an expression is not a valid condition on a request.
fn problem(expression: &str) -> Option<String> {
    let variables = ["object", "oldObject", "request", "namespaceObject", "authorizer"];
    let env = variables.into_iter().fold(cel::Env::new(), |env, name| env.with(name, cel::Type::Dyn));
    match cel::Program::compile(expression, &env) {
        Err(e) => Some(e.to_string()),
        Ok(program) => match program.result_type() {
            cel::Type::Bool | cel::Type::Dyn => None,
            _ => Some("must evaluate to bool".into()),
        },
    }
}

/// The parts of a URL as far as the rules look at them.
pub(super) fn url(at: &At<'_>, errors: &mut Vec<Error>) {
    if let Err(problem) = Url::parse(at.str().as_bytes(), HostColons::Allowed) {
        errors.push(Error::required(&at.path, format!("url must be a valid URL: {problem}{FORM}")));
        return;
    }
    let (rest, fragment) = at.str().split_once('#').unwrap_or((at.str(), ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let mut refuse = |part: &str, why: String| errors.push(Error::invalid(&at.path, part, why));
    if scheme != "https" {
        refuse(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        refuse(host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL".into());
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL".into());
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL".into());
    }
}

pub(super) fn service(at: &At<'_>, errors: &mut Vec<Error>) {
    for field in ["name", "namespace"] {
        if at.text(field).is_empty() {
            errors.push(Error::required(&at.path.child(field), ""));
        }
    }
    let port = at.get("port");
    let wrong = names::is_port_num(port.value.as_i64().unwrap_or_default());
    if !wrong.is_empty() {
        port.invalid(vec![format!("port is not valid: {}", wrong.join(", "))], errors);
    }
    let path = at.get("path");
    let text = path.str();
    if text.is_empty() || text == "/" {
        return;
    }
    if text == "//" {
        path.invalid(vec!["segment[0] may not be empty".into()], errors);
        return;
    }
    if !text.starts_with('/') {
        path.invalid(vec!["must start with a '/'".into()], errors);
    }
    // Upstream drops the first character whatever it is, then one trailing slash.
    let steps = text.char_indices().nth(1).map_or("", |(i, _)| &text[i..]);
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            path.invalid(vec![format!("segment[{i}] may not be empty")], errors);
            continue;
        }
        let messages = names::is_dns1123_subdomain(step);
        path.invalid(messages.into_iter().map(|m| format!("segment[{i}]: {m}")).collect(), errors);
    }
}

fn rule(rule: &At<'_>, errors: &mut Vec<Error>) {
    for (field, what) in
        [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")]
    {
        let list = rule.get(field);
        if list.items().len() == 0 {
            errors.push(Error::required(&list.path, ""));
        }
        if list.items().len() > 1 && list.items().any(|v| v.str() == "*") {
            list.invalid(vec![format!("if '*' is present, must not specify other {what}")], errors);
        }
        for item in list.items() {
            match field {
                "operations" => item.one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"], errors),
                "apiVersions" if item.str().is_empty() => errors.push(Error::required(&item.path, "")),
                _ => {}
            }
        }
    }
    resources(&rule.get("resources"), errors);
    let scope = rule.get("scope");
    if !scope.is_null() {
        scope.one_of(&["*", "Cluster", "Namespaced"], errors);
    }
}

fn resources(list: &At<'_>, errors: &mut Vec<Error>) {
    if list.items().len() == 0 {
        errors.push(Error::required(&list.path, ""));
    }
    let (mut all_subs, mut all_resources) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for item in list.items() {
        if item.str().is_empty() {
            errors.push(Error::required(&item.path, ""));
            continue;
        }
        let Some((resource, sub)) = item.str().split_once('/') else {
            plain = item.str() != "*";
            continue;
        };
        if all_subs.contains(resource) {
            item.invalid(
                vec![format!("if '{resource}/*' is present, must not specify {}", item.str())],
                errors,
            );
        }
        if all_resources.contains(sub) {
            item.invalid(vec![format!("if '*/{sub}' is present, must not specify {}", item.str())], errors);
        }
        if sub == "*" {
            all_subs.insert(resource);
        }
        if resource == "*" {
            all_resources.insert(sub);
        }
    }
    let has = |wanted: &str| list.items().any(|v| v.str() == wanted);
    if list.items().len() > 1 && has("*/*") {
        list.invalid(vec!["if '*/*' is present, must not specify other resources".into()], errors);
    }
    if has("*") && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        list.invalid(vec![why.into()], errors);
    }
}
