//! Questions about the objects that run packages on a cluster, for the code of Crossplane, with our answers:
//! `deploy AREA CASES SEED` prints a line `{"question": …, "answers": […]}` for each. `conformance/packages` asks Crossplane's
//! own code and compares.

#![expect(clippy::print_stderr, reason = "a command-line program")]

use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::ExitCode;
use transom_deploy::{Workload, WorkloadKind};
use transom_testkit::rng::Rng;
use transom_xapi::PackageRevision;
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

const NAMESPACE: &str = "crossplane-system";
const AREA: &str = "runtime";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |cases: &str, seed: &str| Some((cases.parse::<u64>().ok()?, seed.parse::<u64>().ok()?));
    let read = match arguments.as_slice() {
        [area, cases, seed] if area == AREA => numbers(cases, seed),
        _ => None,
    };
    let Some((cases, seed)) = read else {
        eprintln!("usage: deploy {AREA} CASES SEED");
        return ExitCode::FAILURE;
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for index in 0..cases {
        // Neighbouring seeds and indexes must not give neighbouring cases.
        let start = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let question = question(&mut Rng::new(start).split());
        let line = json!({"question": question, "answers": [answer(&question).to_string()]});
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn maybe(rng: &mut Rng, value: Value) -> Value {
    if rng.below(2) == 0 { value } else { Value::Null }
}

fn metadata(rng: &mut Rng, name: &str) -> Value {
    let name = maybe(rng, name.into());
    let (labels, annotations) = (maybe(rng, json!({"team": "a"})), maybe(rng, json!({"note": "b"})));
    let metadata = pruned(json!({"name": name, "labels": labels, "annotations": annotations}));
    maybe(rng, json!({"metadata": metadata}))
}

fn container(rng: &mut Rng, name: &str) -> Value {
    let ports = [
        json!([{"name": "metrics", "containerPort": 9090}]),
        json!([{"name": "grpc", "containerPort": 1}]),
        Value::Null,
    ];
    json!({
        "name": name,
        "args": maybe(rng, json!(["--debug"])),
        "image": maybe(rng, json!("r.io/other:v1")),
        "imagePullPolicy": maybe(rng, json!("Never")),
        "env": maybe(rng, json!([{"name": "A", "value": "b"}])),
        "ports": ports[usize::try_from(rng.below(3)).unwrap_or_default()],
        "volumeMounts": maybe(rng, json!([{"name": "v", "mountPath": "/v"}])),
        "securityContext": maybe(rng, json!({"readOnlyRootFilesystem": true})),
    })
}

fn deployment(rng: &mut Rng) -> Value {
    let mut containers: Vec<Value> = Vec::new();
    for name in ["sidecar", "package-runtime", "last"] {
        if rng.below(2) == 0 {
            containers.push(container(rng, name));
        }
    }
    let pod = json!({
        "containers": containers,
        "serviceAccountName": maybe(rng, json!("mine")),
        "imagePullSecrets": maybe(rng, json!([{"name": "discarded"}])),
        "securityContext": maybe(rng, json!({"runAsUser": 7})),
        "volumes": maybe(rng, json!([{"name": "v", "emptyDir": {"medium": "Memory"}}])),
        "nodeSelector": maybe(rng, json!({"disk": "fast"})),
    });
    let scraped = [json!({"prometheus.io/scrape": "false"}), json!({"x": "y"}), Value::Null];
    let annotations = scraped[usize::try_from(rng.below(3)).unwrap_or_default()].clone();
    let about = json!({"labels": maybe(rng, json!({"app": "x"})), "annotations": annotations});
    let selector = maybe(rng, json!({"matchLabels": {"ignored": "yes"}}));
    let spec = json!({"replicas": maybe(rng, json!(3)), "selector": selector, "template": {"metadata": about, "spec": pod}});
    let mut template = metadata(rng, "deployment-name");
    if template.is_null() {
        template = json!({});
    }
    template["spec"] = maybe(rng, spec);
    maybe(rng, template)
}

fn question(rng: &mut Rng) -> Value {
    let is_function = rng.below(2) == 0;
    let kind = if is_function { "FunctionRevision" } else { "ProviderRevision" };
    let config = json!({
        "deploymentTemplate": deployment(rng),
        "serviceTemplate": metadata(rng, "service-name"),
        "serviceAccountTemplate": metadata(rng, "account-name"),
    });
    let installation = json!({
        "desiredState": "Active", "image": "r.io/acme/p:v1", "revision": 1,
        "packagePullPolicy": maybe(rng, json!("Always")),
        "packagePullSecrets": maybe(rng, json!([{"name": "one"}, {"name": "two"}])),
        "tlsServerSecretName": "p-tls-server",
        "tlsClientSecretName": if is_function { Value::Null } else { json!("p-tls-client") },
    });
    let revision = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": "p-abc", "uid": "some-uid", "labels": {"pkg.crossplane.io/package": "p"}},
        "spec": installation,
        "status": {"resolvedImage": "r.io/acme/p:v1"},
    });
    pruned(json!({
        "area": AREA, "revision": revision, "runtimeConfig": config,
        "pullSecret": maybe(rng, json!("of-image-config")), "accountSecrets": maybe(rng, json!(["of-account"])),
    }))
}

fn answer(question: &Value) -> Value {
    let revision: PackageRevision = serde_json::from_value(question["revision"].clone()).unwrap_or_default();
    let config: DeploymentRuntimeConfigSpec =
        serde_json::from_value(question["runtimeConfig"].clone()).unwrap_or_default();
    let accounts: Vec<String> = transom_object::json::strings(&question["accountSecrets"]);
    let is_function = question["revision"]["kind"] == "FunctionRevision";
    let workload = Workload {
        kind: if is_function { WorkloadKind::Function } else { WorkloadKind::Provider },
        revision: &revision,
        config: &config,
        namespace: NAMESPACE,
        image: "r.io/acme/p:v1",
        image_pull_secret: question["pullSecret"].as_str(),
        account_pull_secrets: &accounts,
        server_secret: revision.spec.tls_server_secret_name.as_deref(),
        client_secret: revision.spec.tls_client_secret_name.as_deref(),
        certificates: None,
        is_idle: false,
    };
    pruned(json!({
        "Service": workload.alias(), "ServiceAccount": workload.service_account(None), "Deployment": workload.deployment(),
    }))
}

/// Without fields that are null or empty: the types of Go write some of these.
fn pruned(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let pruned = map.into_iter().map(|(key, value)| (key, pruned(value)));
            Value::Object(pruned.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.into_iter().map(pruned).collect(),
        other => other,
    }
}
