//! Requests from Compositions that people published, where the folder with them lies beside the repository: each of
//! their steps of Go templates, for every example of the composite resource and for two made from its schema; at
//! first with nothing observed, then with all that was desired observed and ready.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use transom_function::{RunFunctionRequest, RunFunctionResponse, answer};
use transom_object::yaml;

const FUNCTION: &str = "function-go-templating";

/// What is different in every call, and what stands in for it.
const SETTLED: [(&str, &str); 3] = [
    ("randAlphaNum", "toString"),
    ("(now)", "(toDate \"2006-01-02\" \"2024-05-06\")"),
    ("{{ now ", "{{ toDate \"2006-01-02\" \"2024-05-06\" "),
];

/// All requests, in a fixed order.
pub(super) static REQUESTS: LazyLock<Vec<Value>> = LazyLock::new(|| Corpus::read().requests());

/// The documents of all repositories, by what they are.
#[derive(Default)]
struct Corpus {
    compositions: Vec<Entry>,
    definitions: Vec<Entry>,
    instances: Vec<Entry>,
    environments: Vec<Entry>,
}

struct Entry {
    repository: String,
    object: Value,
}

impl Corpus {
    fn read() -> Self {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
        let index = std::fs::read(shared.join("corpus/index.json")).unwrap_or_default();
        let index: Vec<Value> = serde_json::from_slice(&index).unwrap_or_default();
        let (mut corpus, mut files) = (Self::default(), BTreeMap::new());
        for entry in &index {
            let Some(object) = document(&shared, entry, &mut files) else { continue };
            let list = match entry["role"].as_str() {
                Some("Composition") => &mut corpus.compositions,
                Some("CompositeResourceDefinition") => &mut corpus.definitions,
                Some("EnvironmentConfig") => &mut corpus.environments,
                _ => &mut corpus.instances,
            };
            list.push(Entry { repository: text(&entry["repo"]), object });
        }
        corpus
    }

    fn requests(&self) -> Vec<Value> {
        let mut requests = Vec::new();
        for composition in &self.compositions {
            let steps = inputs(&composition.object);
            if steps.is_empty() {
                continue;
            }
            let environment = self.environment(&composition.repository);
            for composite in self.composites(&composition.object["spec"]["compositeTypeRef"]) {
                let mut observed = json!({"composite": {"resource": composite}});
                for _ in 0..2 {
                    let desired = run(&steps, &observed, &environment, &mut requests);
                    observed["resources"] = ready(&desired["resources"]);
                }
            }
        }
        requests
    }

    /// What the step that reads EnvironmentConfigs would leave in the context, if it read all of them.
    fn environment(&self, repository: &str) -> Value {
        let configs = self.environments.iter().filter(|entry| entry.repository == repository);
        let data = configs.filter_map(|entry| entry.object["data"].as_object().cloned());
        Value::Object(data.flatten().collect())
    }

    /// Composite resources of a type: the examples, of claims too, and what the schema describes.
    fn composites(&self, of: &Value) -> Vec<Value> {
        let group = text(&of["apiVersion"]).split('/').next().unwrap_or_default().to_owned();
        let definition = self.definitions.iter().find(|entry| {
            let spec = &entry.object["spec"];
            spec["group"] == group && spec["names"]["kind"] == of["kind"]
        });
        let claim = definition.map(|entry| &entry.object["spec"]["claimNames"]["kind"]);
        let examples = self.instances.iter().map(|entry| &entry.object).filter(|instance| {
            instance["apiVersion"] == of["apiVersion"]
                && (instance["kind"] == of["kind"] || claim == Some(&instance["kind"]))
        });
        let mut composites: Vec<Value> = examples.cloned().collect();
        let versions = definition.and_then(|entry| entry.object["spec"]["versions"].as_array());
        let version = versions
            .into_iter()
            .flatten()
            .find(|version| of["apiVersion"] == format!("{group}/{}", text(&version["name"])));
        if let Some(version) = version {
            for all in [true, false] {
                composites.push(sample(&version["schema"]["openAPIV3Schema"], all));
            }
        }
        composites.push(json!({"spec": {}}));
        for (number, composite) in composites.iter_mut().enumerate() {
            composite["apiVersion"] = of["apiVersion"].clone();
            composite["kind"] = of["kind"].clone();
            if composite["metadata"]["name"].is_null() {
                composite["metadata"]["name"] = format!("example-{number}").into();
            }
        }
        composites
    }
}

/// A document of the index, without what makes every call differ.
fn document(shared: &Path, entry: &Value, files: &mut BTreeMap<PathBuf, Vec<Value>>) -> Option<Value> {
    let path = shared.join(entry["file"].as_str()?);
    let documents = files.entry(path.clone()).or_insert_with(|| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let documents = yaml::read_documents(&text).unwrap_or_default();
        documents.into_iter().map(|document| document.value).collect()
    });
    documents.get(usize::try_from(entry["doc"].as_u64()?).ok()?).cloned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The inputs of the steps that are Go templates.
fn inputs(composition: &Value) -> Vec<Value> {
    let steps = composition["spec"]["pipeline"].as_array().into_iter().flatten();
    let inputs = steps.map(|step| &step["input"]).filter(|input| input["kind"] == "GoTemplate");
    let settled = inputs.map(|input| {
        let mut input = input.clone();
        if let Some(template) = input["inline"]["template"].as_str() {
            let settled = SETTLED.iter().fold(template.to_owned(), |text, (from, to)| text.replace(from, to));
            input["inline"]["template"] = settled.into();
        }
        input
    });
    settled.collect()
}

/// Runs the steps one after the other, keeping each request; returns what is desired in the end.
fn run(steps: &[Value], observed: &Value, environment: &Value, requests: &mut Vec<Value>) -> Value {
    let mut desired = json!({});
    let mut context = json!({"apiextensions.crossplane.io/environment": environment});
    for input in steps {
        let request = json!({"observed": observed, "desired": desired, "context": context, "input": input});
        if let Some(response) = ours(&request) {
            desired = serde_json::to_value(&response.desired).unwrap_or_default();
            context = serde_json::to_value(&response.context).unwrap_or_default();
        }
        requests.push(request);
    }
    desired
}

fn ours(request: &Value) -> Option<RunFunctionResponse> {
    let request: RunFunctionRequest = serde_json::from_value(request.clone()).ok()?;
    let function = transom_builtins::find(FUNCTION)?;
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
        runtime.block_on(answer(&*function, request)).ok()
    };
    // The caller may be a runtime's thread, on which no other may block.
    std::thread::scope(|scope| scope.spawn(run).join().ok()?)
}

/// Desired resources as they are observed once all is well.
fn ready(desired: &Value) -> Value {
    let entries = desired.as_object().into_iter().flatten().map(|(name, entry)| {
        let mut resource = entry["resource"].clone();
        let given = json!({"name": format!("observed-{name}"), "uid": "8c1f-22", "generation": 2});
        for (key, value) in given.as_object().into_iter().flatten() {
            resource["metadata"][key] = value.clone();
        }
        let mut provided = resource["spec"]["forProvider"].as_object().cloned().unwrap_or_default();
        for field in ["id", "arn", "status", "endpoint", "vpcId"] {
            provided.insert(field.to_owned(), format!("{field}-of-{name}").into());
        }
        resource["status"] = json!({"atProvider": provided, "phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-05-06T07:08:09Z"},
            {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2024-05-06T07:08:09Z"},
        ]});
        let details = json!({"username": "YWRtaW4=", "password": "c2VjcmV0"});
        (name.clone(), json!({"resource": resource, "connectionDetails": details}))
    });
    Value::Object(entries.collect())
}

/// A value that a schema describes, with all of its fields or only those it requires.
fn sample(schema: &Value, all: bool) -> Value {
    if let Some(given) = schema.get("default").or_else(|| schema["enum"].get(0)) {
        return given.clone();
    }
    match schema["type"].as_str() {
        Some("object") | None if schema["properties"].is_object() => {
            let required = |name: &str| {
                schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name))
            };
            let fields = schema["properties"].as_object().into_iter().flatten();
            // A status is what templates write; observing one is for the examples.
            let wanted =
                fields.filter(|(name, _)| (all && *name != "status") || required(name) || *name == "spec");
            Value::Object(
                wanted.map(|(name, field)| (name.clone(), sample(field, all))).collect::<Map<_, _>>(),
            )
        }
        Some("object") => match &schema["additionalProperties"] {
            entry @ Value::Object(_) => json!({ "key": sample(entry, all) }),
            _ => json!({}),
        },
        Some("array") => json!([sample(&schema["items"], all)]),
        Some("integer") => schema["minimum"].as_i64().unwrap_or(2).into(),
        Some("number") => json!(1.5),
        Some("boolean") => json!(true),
        _ => json!("example"),
    }
}
