//! The crate through its public interface, by cases.

use crate::policy::{Binding, Match, Patch, Policy, validate_binding, validate_policy};
use crate::quota::{self, Counted, amounts};
use crate::rules::{Rule, Target};
use crate::selection::{Conditions, Matched, bindings, variables};
use crate::webhook::{Address, AnswerError, Webhook, read_answer};
use crate::{AccessDecider, AccessDecision, AccessQuestion, Request, conversion, limits};
use serde_json::{Value, json};
use std::sync::Arc;
use transom_object::error_chain::chain;

const CONFIG_MAPS: Target<'_> = Target {
    operation: "CREATE",
    group: "",
    version: "v1",
    resource: "configmaps",
    subresource: "",
    namespace: "default",
    name: "x",
};

fn rule(resources: &[&str], scope: &str) -> Rule {
    Rule::parse(&json!({"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["*"],
        "resources": resources, "scope": scope}))
}

#[test]
fn rules_name_resources_subresources_and_scopes() {
    let status = Target { subresource: "status", ..CONFIG_MAPS };
    let namespaces = Target { resource: "namespaces", namespace: "x", ..CONFIG_MAPS };
    for (resources, scope, target, expected) in [
        (&["configmaps"][..], "*", CONFIG_MAPS, true),
        (&["configmaps"], "*", status, false),
        (&["configmaps/*"], "*", status, true),
        (&["configmaps/*"], "*", CONFIG_MAPS, true),
        (&["*/status"], "*", status, true),
        (&["*/*"], "*", status, true),
        (&["*"], "*", CONFIG_MAPS, true),
        (&["configmaps"], "Cluster", CONFIG_MAPS, false),
        (&["configmaps"], "Namespaced", CONFIG_MAPS, true),
        (&["namespaces"], "Namespaced", namespaces, false),
        (&["namespaces"], "Cluster", namespaces, true),
        (&["secrets"], "*", CONFIG_MAPS, false),
        (&["configmaps"], "*", Target { operation: "DELETE", ..CONFIG_MAPS }, false),
        (&["configmaps"], "*", Target { group: "apps", ..CONFIG_MAPS }, false),
    ] {
        assert_eq!(rule(resources, scope).matches(&target), expected, "{resources:?} {scope} {target:?}");
    }
}

#[test]
fn the_configuration_of_admission_is_exempt() {
    let target = |resource| Target { group: "admissionregistration.k8s.io", resource, ..CONFIG_MAPS };
    assert!(target("validatingwebhookconfigurations").is_admission_configuration());
    assert!(target("mutatingadmissionpolicybindings").is_admission_configuration());
    assert!(!CONFIG_MAPS.is_admission_configuration());
}

/// Allows one question and no other.
struct Only(AccessQuestion);

impl AccessDecider for Only {
    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        let allowed = *question == self.0;
        AccessDecision { allowed, reason: format!("asked: {question:?}"), error: None }
    }
}

fn only(question: AccessQuestion) -> Arc<dyn AccessDecider> {
    Arc::new(Only(question))
}

/// Allows only a question that cannot be asked.
fn no_rights() -> Arc<dyn AccessDecider> {
    only(AccessQuestion::default())
}

fn request(object: Value) -> Request {
    Request {
        request: json!({"operation": "CREATE", "userInfo": {"username": "u"}}),
        object,
        old_object: Value::Null,
    }
}

#[test]
fn a_false_condition_outweighs_a_failed_one() {
    let conditions = |list: Value| Conditions::compile(&list, &variables());
    let made = request(json!({"data": {"a": "b"}}));
    let scope = bindings(&made, &Value::Null, &no_rights());
    let condition = |expression: &str| json!({"name": expression, "expression": expression});
    let (holds, fails, not) =
        (condition("object.data.a == 'b'"), condition("object.x.y == 1"), condition("false"));
    assert_eq!(conditions(json!([holds])).evaluate(&scope), Matched::Yes);
    assert_eq!(conditions(json!([fails, not])).evaluate(&scope), Matched::No);
    assert!(
        matches!(conditions(json!([holds, fails])).evaluate(&scope), Matched::Failed(why) if why.contains("no such key: x"))
    );
}

#[test]
fn webhooks_are_read_with_their_defaults() {
    let hooks = Webhook::parse_all(&json!({"webhooks": [{"name": "a.example.org", "sideEffects": "None",
        "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 8443, "path": "/x"}}}]}));
    assert_eq!(hooks.len(), 1);
    assert!(hooks[0].supports_dry_run && hooks[0].equivalent && !hooks[0].ignores_failure);
    let expected =
        Address::Service { namespace: "n".into(), name: "s".into(), port: 8443, path: "/x".into() };
    assert_eq!(hooks[0].client.address, expected);
}

fn answer(response: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
        .into_bytes()
}

#[test]
fn answers_of_webhooks_are_not_trusted() {
    let read = |response: Value| read_answer("h", "u1", &answer(&response), true);
    assert!(read(json!({"uid": "u1", "allowed": true})).unwrap().refusal.is_none());
    let wrong = read(json!({"uid": "other", "allowed": true})).unwrap_err();
    assert_eq!(wrong.to_string(), "expected response.uid=\"u1\", got \"other\"");
    let untyped = read(json!({"uid": "u1", "allowed": true, "patch": "W10="}));
    assert!(matches!(untyped, Err(AnswerError::NoPatchType)), "{untyped:?}");
    assert!(read(json!({"uid": "u1", "allowed": true, "patch": "W10=", "patchType": "Merge"})).is_err());
    assert!(read(json!({"uid": "u1", "allowed": true, "patch": "!", "patchType": "JSONPatch"})).is_err());
    assert!(read_answer("h", "u1", b"{}", true).is_err());
    let markup = read_answer("h", "u1", b"<html>", true).unwrap_err();
    assert_eq!(chain(&markup), "it is not JSON: expected value at line 1 column 1");
    let refused = |status: Value| {
        *read(json!({"uid": "u1", "allowed": false, "status": status})).unwrap().refusal.unwrap()
    };
    let status = refused(json!({"code": 200, "message": "no"}));
    assert_eq!(
        (status.code, status.message.as_str()),
        (400, "admission webhook \"h\" denied the request: no")
    );
    assert_eq!(
        refused(json!(null)).message,
        "admission webhook \"h\" denied the request without explanation"
    );
    assert_eq!(refused(json!({"code": 409, "reason": "Conflict"})).reason, "Conflict");
}

#[test]
fn a_conversion_that_lies_is_not_believed() {
    let sent = [
        json!({"apiVersion": "e.org/v1", "kind": "S", "metadata": {"name": "a", "uid": "u", "labels": {"l": "1"}}, "spec": {"size": 1}}),
    ];
    let read = |uid: &str, objects: Value| {
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}});
        conversion::read("r", "e.org/v2", &sent, body.to_string().as_bytes())
    };
    let honest = json!({"apiVersion": "e.org/v2", "kind": "S", "metadata": {"name": "a", "uid": "u", "generation": 7, "labels": {"l": "2"}}, "spec": {"width": 1}});
    let converted = read("r", json!([honest])).unwrap();
    assert_eq!(
        converted[0]["metadata"],
        json!({"name": "a", "uid": "u", "labels": {"l": "2"}}),
        "only labels and annotations"
    );
    assert_eq!(converted[0]["spec"], json!({"width": 1}));
    let with = |pointer: &str, value: Value| {
        let mut lie = honest.clone();
        *lie.pointer_mut(pointer).unwrap() = value;
        chain(&read("r", json!([lie])).unwrap_err())
    };
    assert!(with("/metadata/uid", json!("other")).contains("must have the same UID"));
    assert!(with("/metadata/name", json!("other")).contains("must have the same name"));
    assert!(with("/kind", json!("T")).contains("must have the same kind"));
    assert!(with("/apiVersion", json!("e.org/v3")).contains("invalid apiVersion"));
    assert!(read("x", json!([honest])).unwrap_err().to_string().contains("expected response.uid"));
    let none = read("r", json!([])).unwrap_err();
    assert_eq!(none.to_string(), "expected 1 converted objects, got 0");
}

fn policy(spec: &Value) -> Value {
    json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec})
}

fn constraints() -> Value {
    json!({"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]})
}

#[test]
fn validations_use_variables_parameters_and_messages() {
    let parsed = Policy::parse(&policy(&json!({
        "matchConstraints": constraints(),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [
            {"name": "size", "expression": "size(object.data)"},
            {"name": "most", "expression": "int(params.data.most)"},
            {"name": "broken", "expression": "object.nothing"},
        ],
        "validations": [
            {"expression": "variables.size <= variables.most", "messageExpression": "'at most ' + string(variables.most)"},
            {"expression": "variables.size == 0", "message": "  must be empty ", "reason": "Forbidden"},
            {"expression": "variables.broken == 1"},
        ],
        "auditAnnotations": [{"key": "size", "valueExpression": "string(variables.size)"}],
    })));
    assert!(parsed.matches.names(&CONFIG_MAPS));
    let params = json!({"data": {"most": "1"}});
    let made = request(json!({"data": {"a": "1", "b": "2"}}));
    let evaluation = parsed.validate(&made, &Value::Null, &params, &no_rights()).unwrap();
    let messages: Vec<&str> = evaluation.failures.iter().map(|f| f.message.as_str()).collect();
    assert_eq!(messages[..2], ["at most 1", "must be empty"]);
    assert!(
        messages[2].contains("composited variable \"broken\" fails to evaluate: no such key: nothing"),
        "{messages:?}"
    );
    assert_eq!(evaluation.failures[1].reason, "Forbidden");
    assert_eq!(evaluation.audit_annotations, [("size".to_owned(), "2".to_owned())]);
}

#[test]
fn a_policy_that_never_ends_is_stopped() {
    let list = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = (0..8).fold("true".to_owned(), |inner, i| format!("{list}.all(v{i}, {inner})"));
    let parsed = Policy::parse(&policy(
        &json!({"matchConstraints": constraints(), "validations": [{"expression": nested}]}),
    ));
    let evaluation = parsed.validate(&request(json!({})), &Value::Null, &Value::Null, &no_rights()).unwrap();
    assert!(evaluation.failures[0].message.contains("cost limit exceeded"), "{evaluation:?}");
}

#[test]
fn mutations_patch_and_apply() {
    let parsed = Policy::parse(
        &json!({"kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {
        "matchConstraints": constraints(),
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                "Object{metadata: Object.metadata{labels: {'a': object.data.x}}, data: Object.data{n: '1'}}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'add', path: '/data/y', value: 'z'}]"}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{name: 'other'}}"}},
        ]}}),
    );
    let made = request(json!({"data": {"x": "1"}}));
    let mutate = |i| parsed.mutate(i, &made, &Value::Null, &Value::Null, &no_rights());
    let applied = json!({"metadata": {"labels": {"a": "1"}}, "data": {"n": "1"}});
    assert_eq!(mutate(0).unwrap(), Some(Patch::Applied(applied)));
    assert_eq!(mutate(1).unwrap(), Some(Patch::Replaced(json!({"data": {"x": "1", "y": "z"}}))));
    let refused = mutate(2).unwrap_err();
    assert_eq!(refused.to_string(), "an apply configuration must not set metadata.name");
}

#[test]
fn mistakes_in_policies_are_reported_when_they_are_written() {
    let errors =
        |spec: Value| validate_policy(&policy(&spec)).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        errors(
            json!({"matchConstraints": constraints(), "validations": [{"expression": "object.a == 'b'"}]})
        ),
        Vec::<String>::new()
    );
    let found = errors(json!({"validations": [{"expression": "objekt.a"}, {"expression": "1 + 1"}]}));
    assert!(found[0].starts_with("spec.matchConstraints: Required value"), "{found:?}");
    assert!(found[1].contains("undeclared reference to 'objekt'"), "{found:?}");
    assert!(found[2].contains("must evaluate to bool"), "{found:?}");
    assert!(errors(json!({"matchConstraints": constraints()}))[0].contains("spec.validations"));
    let binding =
        json!({"kind": "ValidatingAdmissionPolicyBinding", "spec": {"validationActions": ["Deny", "Warn"]}});
    let found: Vec<String> = validate_binding(&binding).iter().map(ToString::to_string).collect();
    assert!(found[0].contains("spec.policyName") && found[1].contains("both Deny and Warn"), "{found:?}");
}

#[test]
fn bindings_without_rules_are_for_everything() {
    let binding = Binding::parse(
        &json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Warn"]}}),
    );
    assert!(binding.matches.names(&CONFIG_MAPS) && binding.warns && !binding.denies);
    let excluded = Match::parse(
        &json!({"excludeResourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}),
    );
    assert!(!excluded.names(&CONFIG_MAPS));
}

#[test]
fn quotas_count_and_refuse() {
    let maps = Counted { group: "", resource: "configmaps" };
    let hard = amounts(&json!({"configmaps": "2", "count/configmaps": "5"}));
    let used = amounts(&json!({"configmaps": "2", "count/configmaps": "2"}));
    let added = quota::increase(maps, &hard, &quota::usage(maps, &json!({})), None);
    let refused = quota::charge("q", &hard, &used, &added).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
    );
    let free = amounts(&json!({"configmaps": "1"}));
    assert_eq!(
        quota::to_value(&quota::charge("q", &hard, &free, &added).unwrap()),
        json!({"configmaps": "2", "count/configmaps": "1"})
    );
    let same =
        quota::increase(maps, &hard, &quota::usage(maps, &json!({})), Some(&quota::usage(maps, &json!({}))));
    assert!(same.is_empty(), "an update of an object that is counted costs nothing");
    let jobs = Counted { group: "batch", resource: "jobs" };
    assert!(quota::usage(jobs, &json!({})).contains_key("count/jobs.batch"));
}

#[test]
fn pods_use_what_their_containers_request() {
    let pods = Counted { group: "", resource: "pods" };
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({"spec": {"containers": [container("100m"), container("200m")], "initContainers": [container("1")]}});
    let used = quota::to_value(&quota::usage(pods, &pod));
    assert_eq!((&used["requests.cpu"], &used["cpu"], &used["pods"]), (&json!("1"), &json!("1"), &json!("1")));
    let hard = amounts(&json!({"limits.cpu": "1"}));
    assert_eq!(
        quota::missing("q", &hard, &pod).unwrap(),
        "failed quota: q: must specify limits.cpu for: c,c"
    );
    let best_effort = json!({"spec": {"scopes": ["BestEffort"]}});
    assert!(!quota::in_scope(&best_effort, pods, &pod));
    assert!(quota::in_scope(&best_effort, pods, &json!({"spec": {"containers": [{"name": "c"}]}})));
}

#[test]
fn limit_ranges_fill_and_refuse() {
    let range = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]}});
    let mut pod = json!({"spec": {"containers": [{"name": "c"}]}});
    assert!(limits::fill_pod(&range, &mut pod));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    );
    assert!(!limits::fill_pod(&range, &mut pod), "the second time there is nothing to fill");
    assert!(limits::check_pod(&range, &pod).is_empty());
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2".into();
    assert_eq!(limits::check_pod(&range, &pod), ["maximum cpu usage per Container is 1, but limit is 2"]);
}

fn policy_with(expression: &str, more: &Value) -> Value {
    let mut policy = json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]},
        "validations": [{"expression": expression}]}});
    policy["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    policy
}

#[test]
fn policies_ask_what_the_client_may_do_with_the_requested_endpoint() {
    let mut made = request(json!({"metadata": {"name": "x"}}));
    made.request = json!({"operation": "UPDATE", "name": "x", "namespace": "team-a", "userInfo": {"username": "u"},
        "resource": {"group": "example.org", "version": "v2", "resource": "seen"},
        "requestResource": {"group": "example.org", "version": "v1", "resource": "things"},
        "requestSubResource": "status"});
    let asked = AccessQuestion {
        group: "example.org".into(),
        resource: "things".into(),
        subresource: "status".into(),
        namespace: "team-a".into(),
        name: "x".into(),
        verb: "release".into(),
        ..AccessQuestion::default()
    };
    let source = "authorizer.requestResource.check('release').allowed()";
    let policy = policy_with(source, &json!({}));
    assert_eq!(validate_policy(&policy), []);
    let policy = Policy::parse(&policy);
    let failures = |authorizer: &Arc<dyn AccessDecider>| {
        policy.validate(&made, &Value::Null, &Value::Null, authorizer).unwrap().failures
    };
    assert_eq!(failures(&only(asked.clone())), []);
    assert_eq!(failures(&no_rights())[0].message, format!("failed expression: {source}"));
    let condition = json!({"matchConditions": [{"name": "c", "expression": source}]});
    let conditional = Policy::parse(&policy_with("false", &condition));
    let evaluate = |authorizer: &Arc<dyn AccessDecider>| {
        conditional.validate(&made, &Value::Null, &Value::Null, authorizer)
    };
    assert_eq!(evaluate(&only(asked)).unwrap().failures.len(), 1);
    assert!(evaluate(&no_rights()).is_none(), "the condition excludes the request");
}

#[test]
fn variables_carry_decisions_and_messages_cannot_ask() {
    let variables = json!({"variables": [
        {"name": "decision", "expression": "authorizer.serviceAccount('a', 'b').path('/x').check('get')"}]});
    let policy = policy_with("variables.decision.allowed()", &variables);
    assert_eq!(validate_policy(&policy), []);
    let asked = AccessQuestion {
        service_account: Some(("a".into(), "b".into())),
        path: Some("/x".into()),
        verb: "get".into(),
        ..AccessQuestion::default()
    };
    let made = request(json!({}));
    let parsed = Policy::parse(&policy);
    let evaluation = parsed.validate(&made, &Value::Null, &Value::Null, &only(asked)).unwrap();
    assert_eq!(evaluation.failures, []);
    let telling = json!({"validations": [{"expression": "false", "messageExpression": "authorizer.path('/x').check('get').reason()"}]});
    let errors = validate_policy(&policy_with("false", &telling));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("undeclared reference to 'authorizer'"), "{}", errors[0]);
}

#[test]
fn a_policy_asks_twice_for_each_expression_and_no_more() {
    let made = request(json!({}));
    let check = "authorizer.path('/x').check('get').errored()";
    let failures = |expression: &str| {
        let policy = Policy::parse(&policy_with(expression, &json!({})));
        policy.validate(&made, &Value::Null, &Value::Null, &no_rights()).unwrap().failures
    };
    assert_eq!(failures(&format!("!{check} && !{check}")), []);
    let failed = failures(&format!("!{check} && !{check} && !{check}"));
    assert!(failed[0].message.contains("cost limit exceeded"), "{failed:?}");
}
