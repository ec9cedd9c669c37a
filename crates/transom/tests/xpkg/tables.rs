//! Tables of the real command line's own unit tests, when they are at hand.

use super::{Folder, META};
use serde_json::{Value, json};
use transom_testkit::tables;

/// The fields of the cases of a table, with their names.
fn cases(table: &str) -> Vec<(String, Value)> {
    let cases = tables::cases(&format!("crossplane/cli-literals/xpkg-{table}.json")).into_iter();
    cases.map(|case| (case["name"].to_string(), case["value"]["fields"].clone())).collect()
}

/// The value that a literal of Go stands for.
fn literal(of: &Value) -> Value {
    match of {
        Value::Object(fields) if fields.contains_key("$call") => literal(&of["args"][0]),
        Value::Object(fields) if fields.contains_key("items") => {
            of["items"].as_array().into_iter().flatten().map(literal).collect()
        }
        Value::Object(fields) if fields.contains_key("fields") => {
            let inner = of["fields"].as_object().into_iter().flatten();
            Value::Object(inner.map(|(key, value)| (key.clone(), literal(value))).collect())
        }
        other => other.clone(),
    }
}

fn texts(of: &Value) -> Vec<String> {
    let literal = literal(of);
    literal.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn annotations_are_those_of_the_original() {
    for (name, case) in cases("annotations.TestParseAnnotations") {
        let folder = Folder::new();
        folder.build("p", &[("crossplane.yaml", META)]);
        let annotations = texts(&case["args"]["fields"]["kvs"]);
        // Nothing listens there: what is wrong with the command line is found before.
        let mut arguments = vec!["push", "127.0.0.1:1/acme/p:v1", "-f", "p.xpkg"];
        arguments.extend(annotations.iter().flat_map(|annotation| ["-a", annotation]));
        let is_wrong = case["want"]["fields"].get("err").is_some();
        folder.error(&arguments, if is_wrong { 80 } else { 1 });
        assert!(is_wrong || annotations.iter().all(|annotation| annotation.contains('=')), "{name}");
    }
}

/// A CRD of a table; `testCRD` is a variable of upstream's test.
fn crd(of: &Value) -> Value {
    if of["$id"] == "testCRD" {
        let version = json!({"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        return json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "tests.example.org"},
            "spec": {"group": "example.org", "names": {"kind": "Test", "plural": "tests"}, "versions": [version]},
        });
    }
    let crd = literal(of);
    let versions = crd["Spec"]["Versions"].as_array().into_iter().flatten();
    let versions: Vec<Value> =
        versions.map(|v| json!({"name": v["Name"], "storage": v["Storage"]})).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": crd["ObjectMeta"]["Name"]},
        "spec": {"group": crd["Spec"]["Group"], "names": {"kind": crd["Spec"]["Names"]["Kind"]}, "versions": versions},
    })
}

/// Writes the CRDs of each case, and compares the files with those that upstream writes.
fn files_are_those_of_the_original(table: &str, flags: &[&str]) {
    for (name, case) in cases(table) {
        let folder = Folder::new();
        let given = case["args"]["fields"].clone();
        for (number, of) in given["crds"]["items"].as_array().into_iter().flatten().enumerate() {
            folder.write(&format!("in/{number}.yaml"), &crd(of).to_string());
        }
        let mut arguments = [&["get-crds", "in", "-o", "written"], flags].concat();
        if given["flat"] == true {
            arguments.push("--flat");
        }
        let said = folder.ok(&arguments);
        let output = given["outputDir"].as_str().expect("a folder");
        let mut expected: Vec<String> = texts(&case["want"]["fields"]["files"]);
        expected.iter_mut().for_each(|path| *path = path.replacen(output, "wrote written", 1));
        let written: Vec<&str> = said.lines().filter(|line| line.starts_with("wrote ")).collect();
        assert_eq!(written.len(), expected.len(), "{name}: {said}");
        assert!(expected.iter().all(|line| written.contains(&line.as_str())), "{name}: {said}");
        assert!(said.contains(&format!("Total {} ", expected.len())), "{name}: {said}");
    }
}

#[test]
fn crds_are_written_where_the_original_does() {
    files_are_those_of_the_original("get_crds.TestWriteCRDs", &[]);
}

#[test]
fn schemas_are_written_where_the_original_does() {
    files_are_those_of_the_original("get_crds.TestWriteJSONSchemas", &["--json-schema"]);
}

#[test]
fn variables_are_those_of_the_original() {
    for (name, case) in cases("service_metadata.TestValidateTemplateMetadataValue") {
        let folder = Folder::new();
        folder.build("base", &[("crossplane.yaml", META)]);
        folder.write("package/crossplane.yaml.tmpl", &META.replace("Configuration", "Provider"));
        folder.write("package/crds/one.crd.yaml", &crd(&json!({"$id": "testCRD"})).to_string());
        folder.write("bin/linux_amd64/one", "");
        folder.write("variables.yaml", &json!({"one": {"variable": literal(&case["in"])}}).to_string());
        let common = ["batch", "--family-base-image", "base.xpkg", "--provider-name", "acme", "-p", "bin"];
        let more = ["--smaller-providers", "one", "--platform", "linux_amd64", "--build-only"];
        let format = ["--family-package-url-format", "registry.example.org/%s:v1"];
        let arguments = [&common[..], &more, &format, &["--service-metadata", "variables.yaml"]].concat();
        match case.get("wantErr").is_some() {
            false => drop(folder.ok(&arguments)),
            true => assert!(folder.error(&arguments, 1).contains("one.variable is neither"), "{name}"),
        }
    }
}
