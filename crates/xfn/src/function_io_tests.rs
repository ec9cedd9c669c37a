//! Tests of FunctionIO documents.

use crate::document::{DocumentProblem, Io, decode, encode};
use serde_json::{Value, json};
use transom_function::testing::RequestBuilder;
use transom_function::{Ready, RunFunctionRequest, RunFunctionResponse, Severity};
use transom_object::error_chain::chain;
use transom_object::yaml;

fn request() -> RunFunctionRequest {
    let xr = json!({
        "apiVersion": "e.org/v1", "kind": "X",
        "metadata": {"name": "x", "managedFields": [{}]}, "spec": {"n": 1},
        "status": {"old": true, "conditions": [{"type": "Ready", "status": "False"}]},
    });
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let mut request = RequestBuilder::new(xr)
        .input(json!({"apiVersion": "v1", "kind": "C", "colour": "red"}))
        .observed("bucket", json!({"apiVersion": "v1", "kind": "B", "metadata": {"name": "x-b"}, "status": {"conditions": ready}}))
        .desired("bucket", json!({"apiVersion": "v1", "kind": "B"}))
        .desired("topic", json!({"apiVersion": "v1", "kind": "T"}))
        .context("k", json!("v"))
        .build();
    let desired = request.desired.as_mut().unwrap();
    desired.resources.get_mut("topic").unwrap().set_ready(Ready::True);
    let composite = desired.composite.get_or_insert_default();
    composite.set("status.fresh", 1).unwrap();
    composite.connection_details.insert("user".into(), b"u".to_vec());
    request
}

fn document() -> Value {
    yaml::read(&encode(Io::FunctionIo, &request())).unwrap()
}

fn decoded(document: &Value) -> Result<RunFunctionResponse, String> {
    let decoded = decode(Io::FunctionIo, &request(), document.to_string().as_bytes());
    decoded.map_err(|error| chain(&error))
}

#[test]
fn a_request_is_written_as_crossplane_writes_it() {
    let document = document();
    assert_eq!(document["config"]["colour"], "red");
    assert_eq!(document["observed"]["composite"]["resource"]["status"]["old"], true);
    assert_eq!(document["observed"]["resources"][0]["name"], "bucket");
    let desired = &document["desired"]["composite"];
    assert_eq!(desired["resource"]["spec"]["n"], 1, "what is composed can be read there, too");
    assert_eq!(desired["resource"]["status"], json!({"fresh": 1}), "only what is desired");
    assert_eq!(desired["resource"]["metadata"].get("managedFields"), None);
    assert_eq!(desired["connectionDetails"], json!([{"name": "user", "value": "u"}]));
    assert_eq!(
        document["desired"]["resources"][0],
        json!({"name": "bucket", "resource": {"apiVersion": "v1", "kind": "B"}})
    );
    assert_eq!(document["desired"]["resources"][1]["readinessChecks"], json!([{"type": "None"}]));
}

#[test]
fn an_unchanged_document_changes_nothing() {
    let response = decoded(&document()).unwrap();
    let (desired, before) = (response.desired.unwrap(), request().desired.unwrap());
    assert_eq!(desired.resources["topic"], before.resources["topic"]);
    assert_eq!(desired.resources["bucket"].ready(), Ready::True, "by its condition, as no step said");
    let composite = desired.composite.unwrap();
    assert_eq!(composite.object()["status"], json!({"fresh": 1}));
    assert_eq!(composite.object().get("spec"), None);
    assert_eq!(composite.connection_details["user"], b"u");
    assert_eq!(response.context, request().context);
    assert_eq!(response.meta.unwrap().tag, request().meta.unwrap_or_default().tag);
}

#[test]
fn a_function_changes_removes_and_adds() {
    let mut document = document();
    document["desired"]["resources"] = json!([
        {"name": "new", "resource": {"apiVersion": "v1", "kind": "N"}},
        {
            "name": "bucket", "resource": {"apiVersion": "v1", "kind": "B"},
            "readinessChecks": [{"type": "NonEmpty", "fieldPath": "status.nothing"}],
            "connectionDetails": [{"type": "FromFieldPath", "fromFieldPath": "metadata.name", "name": "bucket"}],
        },
    ]);
    document["results"] =
        json!([{"severity": "Warning", "message": "w"}, {"severity": "Fatal", "message": "f"}]);
    let response = decoded(&document).unwrap();
    let desired = response.desired.unwrap();
    assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["bucket", "new"]);
    assert_eq!(desired.resources["new"].ready(), Ready::False, "it does not exist");
    assert_eq!(desired.resources["bucket"].ready(), Ready::False, "by its own check");
    assert_eq!(desired.composite.unwrap().connection_details["bucket"], b"x-b");
    let severities: Vec<Severity> = response.results.iter().map(|result| result.severity()).collect();
    assert_eq!(severities, [Severity::Warning, Severity::Fatal]);
}

#[test]
fn incomplete_output_is_an_error_and_deletes_nothing() {
    for (output, words) in [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("- a\n", "it is not an object"),
        ("a: [b", ""),
        ("{}", "it has no field desired"),
        ("desired: null", "it has no field desired"),
        ("kind: ResourceList\ndesired: {}", "its kind is \"ResourceList\""),
        ("desired: {resources: {}}", "desired.resources: not a list"),
        ("desired: {resources: [{resource: {}}]}", "desired.resources[0]: it has no name"),
        ("desired: {resources: [{name: a}]}", "desired.resources[0]: resource: "),
        (
            "desired: {resources: [{name: a, resource: {}}, {name: a, resource: {}}]}",
            "is the name of another resource",
        ),
        ("desired: {}\nresults: [{severity: Bad}]", "results[0].severity: \"Bad\""),
    ] {
        let error = chain(&decode(Io::FunctionIo, &request(), output.as_bytes()).unwrap_err());
        assert!(
            error.starts_with("its output is not a FunctionIO: ") && error.contains(words),
            "{output:?}: {error}"
        );
    }
    let error = decode(Io::FunctionIo, &request(), b"\xff").unwrap_err();
    assert!(matches!(error.source, DocumentProblem::NotUtf8), "{error:?}");
    let nothing = decode(Io::FunctionIo, &request(), b"desired: {}").unwrap();
    assert!(nothing.desired.unwrap().resources.is_empty(), "that is how nothing is desired");
}
