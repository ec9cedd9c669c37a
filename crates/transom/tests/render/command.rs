//! What `transom render` prints for what it is given.

use super::fixtures::{Files, documents};
use serde_json::{Value, json};
use transom_testkit::process::transom;

fn kinds(documents: &[Value]) -> Vec<&str> {
    documents.iter().map(|document| document["kind"].as_str().unwrap_or_default()).collect()
}

const RUN: &[&str] = &["xr.yaml", "composition.yaml"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [RUN, more].concat()
}

#[test]
fn the_example_is_rendered_byte_for_byte_the_same() {
    let files = Files::new();
    let run = |arguments: &[&str]| files.run(arguments).stdout;
    let first = run(&["render", "xr.yaml", "composition.yaml"]);
    assert!(first.starts_with(b"---\n"));
    for same in [
        &["render", "xr.yaml", "composition.yaml"][..],
        &["render", "xr.yaml", "composition.yaml", "functions.yaml"],
        &["composition", "render", "xr.yaml", "composition.yaml", "functions.yaml"],
        &["beta", "render", "xr.yaml", "composition.yaml"],
        &["render", "xr.yaml", "composition.yaml", "-o", "yaml"],
    ] {
        assert_eq!(run(same), first, "{same:?}");
    }
    let printed = documents(&first);
    assert_eq!(kinds(&printed), ["App", "Deployment", "Service"]);
    assert_eq!(printed[1]["spec"]["replicas"], 2);
    assert_eq!(printed[2]["metadata"]["labels"]["region"], "eu-central-1");
    let references = printed[0]["spec"]["crossplane"]["resourceRefs"].as_array().unwrap();
    assert_eq!(references[0]["name"], printed[1]["metadata"]["name"]);
}

/// Processor time in user mode, in seconds, of rendering so many resources. `times` of the shell prints it.
#[cfg(target_os = "linux")]
fn processor_seconds_to_render(files: &Files, resources: usize) -> f64 {
    let template = format!(
        "{{{{ range $i := until {resources} }}}}\n          ---\n          apiVersion: v1\n          kind: ConfigMap\n          \
         metadata:\n            name: map-{{{{ $i }}}}\n            annotations: \
         {{gotemplating.fn.crossplane.io/composition-resource-name: map-{{{{ $i }}}}}}\n          {{{{ end }}}}\n"
    );
    files.write(
        "many.yaml",
        &format!(
            "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: many}}\nspec:\n  \
             compositeTypeRef: {{apiVersion: example.org/v1, kind: App}}\n  mode: Pipeline\n  pipeline:\n  \
             - step: many\n    functionRef: {{name: function-go-templating}}\n    input:\n      \
             apiVersion: gotemplating.fn.crossplane.io/v1beta1\n      kind: GoTemplate\n      source: Inline\n      \
             inline:\n        template: |\n          {template}"
        ),
    );
    let script = "\"$0\" render xr.yaml many.yaml > printed.yaml && times";
    let program = transom(&[]).get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-c", script]).arg(program).current_dir(files.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = std::fs::read_to_string(files.path("printed.yaml")).unwrap();
    assert_eq!(printed.matches("kind: ConfigMap").count(), 2 * resources, "objects, and references to them");
    let times = String::from_utf8(output.stdout).unwrap();
    let of_children = times.lines().nth(1).and_then(|line| line.split_whitespace().next());
    let (minutes, seconds) = of_children.and_then(|user| user.trim_end_matches('s').split_once('m')).unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

/// Rendering once took time that grew with the square of the number of resources.
#[cfg(target_os = "linux")]
#[test]
fn the_cost_of_rendering_grows_with_the_number_of_resources() {
    let files = Files::new();
    let (few, many) =
        (processor_seconds_to_render(&files, 1_000), processor_seconds_to_render(&files, 8_000));
    assert!(
        many < 2.0 * 8.0 * few.max(0.01),
        "1,000 resources took {few} s of processor time, and 8,000 took {many} s"
    );
}

#[test]
fn json_is_printed_on_demand() {
    let files = Files::new();
    for format in [&["-o", "json"][..], &["--output", "json"]] {
        let output = files.run(&[&["render"], RUN, format].concat());
        let stream = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        let printed: Vec<Value> = stream.map(|document| document.expect("JSON")).collect();
        assert_eq!(printed, files.render(RUN));
    }
}

#[test]
fn results_context_and_the_full_xr_are_included_on_demand() {
    let files = Files::new();
    let context = r#"config={"a": [1]}"#;
    let printed = files.render(&with(&["-r", "-c", "-x", "--context-values", context]));
    assert_eq!(kinds(&printed), ["App", "Deployment", "Service", "Result", "Result", "Result", "Context"]);
    assert_eq!(printed[0]["spec"]["image"], "nginx:1.27", "the input");
    assert!(printed[0]["spec"]["crossplane"]["resourceRefs"].is_array(), "and the output");
    assert_eq!(
        printed[3],
        json!({
            "apiVersion": "render.crossplane.io/v1beta1", "kind": "Result", "severity": "Normal",
            "reason": "SelectComposition", "message": "Successfully selected composition: app",
        })
    );
    assert_eq!(printed[6]["fields"]["config"], json!({"a": [1]}));
    files.write("value.yaml", "from: file\n");
    let both = files.render(&with(&[
        "-c",
        "--context-files",
        "a=value.yaml",
        "--context-files",
        "b=value.yaml",
        "--context-values",
        "b=2",
    ]));
    assert_eq!(both[3]["fields"]["a"], json!({"from": "file"}));
    assert_eq!(both[3]["fields"]["b"], 2, "values win over files");
}

#[test]
fn the_classic_form_has_neither_names_nor_references() {
    let files = Files::new();
    let printed = files.render(&with(&["--classic-output"]));
    assert_eq!(
        printed[0],
        json!({
            "apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "shop", "namespace": "demo"},
            "status": {"conditions": [{
                "lastTransitionTime": "2024-01-01T00:00:00Z", "message": "Unready resources: deployment, service",
                "reason": "Creating", "status": "False", "type": "Ready",
            }]},
        })
    );
    let metadata = &printed[1]["metadata"];
    assert_eq!((metadata.get("name"), &metadata["generateName"]), (None, &json!("shop-")));
    assert_eq!(metadata["ownerReferences"][0]["uid"], "");
    let full = files.render(&with(&["--classic-output", "-x"]));
    assert_eq!(full[0]["spec"], json!({"image": "nginx:1.27", "replicas": 2, "region": "eu"}));
}

#[test]
fn observed_resources_exist_already() {
    let files = Files::new();
    files.write(
        "observed/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: existing\n  namespace: demo\n  annotations:\n    crossplane.io/composition-resource-name: deployment\nstatus:\n  availableReplicas: 2\n  conditions:\n  - type: Available\n    status: \"True\"\n",
    );
    for form in [&[][..], &["--classic-output"]] {
        let printed = files.render(&[RUN, &["-o", "observed"], form].concat());
        assert_eq!(printed[1]["metadata"]["name"], "existing");
        assert_eq!(printed[0]["status"]["replicas"], 2, "patched from what is observed");
    }
}

#[test]
fn several_composite_resources_are_rendered_in_turn() {
    let files = Files::new();
    files.change("xr.yaml", "xrs/2.yaml", "shop", "second").change("xr.yaml", "xrs/1.yaml", "shop", "first");
    files.write("xrs/readme.txt", "not YAML: [");
    let printed = files.render(&["xrs", "composition.yaml"]);
    assert_eq!(kinds(&printed), ["App", "Deployment", "Service", "App", "Deployment", "Service"]);
    assert_eq!(
        (&printed[0]["metadata"]["name"], &printed[3]["metadata"]["name"]),
        (&json!("first"), &json!("second"))
    );
}

#[test]
fn the_definition_gives_defaults_and_the_layout() {
    let files = Files::new();
    files.change("xr.yaml", "short.yaml", "  replicas: 2\n", "").write(
        "xrd.yaml",
        "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata:\n  name: apps.example.org\nspec:\n  group: example.org\n  names:\n    kind: App\n    plural: apps\n  versions:\n  - name: v1\n    served: true\n    referenceable: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              image: {type: string}\n              region: {type: string}\n              replicas: {type: integer, default: 7}\n",
    );
    let printed = files.render(&["short.yaml", "composition.yaml", "--xrd", "xrd.yaml"]);
    assert_eq!(printed[1]["spec"]["replicas"], 7);
    assert!(printed[0]["spec"]["resourceRefs"].is_array(), "a v1 definition without a scope is a legacy one");
}

#[test]
fn templates_of_the_first_version_are_rendered() {
    let files = Files::new();
    files.write(
        "templates.yaml",
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: templates\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: App\n  mode: Resources\n  resources:\n  - base:\n      apiVersion: v1\n      kind: ConfigMap\n    patches:\n    - fromFieldPath: spec.image\n      toFieldPath: data.image\n      transforms:\n      - string:\n          fmt: \"image %s\"\n        type: string\n",
    );
    let printed = files.render(&["xr.yaml", "templates.yaml"]);
    assert_eq!(printed[1]["data"]["image"], "image nginx:1.27");
    assert_eq!(printed[1]["metadata"]["annotations"]["crossplane.io/composition-resource-name"], "0");
}

/// Results go to stdout, and a reader that has seen enough is not a failure.
#[test]
fn results_of_other_commands_go_to_stdout() {
    let files = Files::new();
    for (arguments, expected) in [
        (&["version"][..], "transom 0"),
        (&["completion", "bash"], "_transom()"),
        (&["completion", "zsh"], "#compdef transom"),
        (&["function", "list"], "function-auto-ready\n"),
    ] {
        let output = files.run(arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
        assert!(said.starts_with(expected), "{arguments:?}: {said}");
        let hidden = ["transom,composition", "(composition)", "transom,beta", "(beta)"];
        assert!(
            !hidden.iter().any(|name| said.contains(name)),
            "{arguments:?} names hidden commands: {said}"
        );
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = transom(&[]);
    let run = command.args(["completion", "bash"]).stdout(writer).output().expect("transom runs");
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn the_help_lists_what_users_need_first() {
    let help = String::from_utf8(Files::new().run(&["--help"]).stdout).expect("text");
    let place =
        |command: &str| help.find(&format!("\n  {command} ")).unwrap_or_else(|| panic!("{command}: {help}"));
    let order = ["up", "render", "function", "db", "completion", "version"].map(place);
    assert!(order.is_sorted(), "{help}");
}

const ENVIRONMENT: &str = r"apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: templates
spec:
  compositeTypeRef:
    apiVersion: example.org/v1
    kind: App
  mode: Resources
  publishConnectionDetailsWithStoreConfigRef:
    name: default
  environment:
    defaultData:
      zone: a
    environmentConfigs:
    - type: Reference
      ref:
        name: shared
  resources:
  - name: map
    base:
      apiVersion: v1
      kind: ConfigMap
    patches:
    - type: FromEnvironmentFieldPath
      fromFieldPath: region
      toFieldPath: data.region
    - type: FromEnvironmentFieldPath
      fromFieldPath: zone
      toFieldPath: data.zone
";

#[test]
fn environments_of_the_first_version_are_rendered() {
    let files = Files::new();
    files.write("templates.yaml", ENVIRONMENT);
    for version in ["v1alpha1", "v1beta1"] {
        files.write(
            "env.yaml",
            &format!(
                "apiVersion: apiextensions.crossplane.io/{version}\nkind: EnvironmentConfig\nmetadata:\n  name: shared\n\
                 data:\n  region: eu\n"
            ),
        );
        let printed = files.render(&["xr.yaml", "templates.yaml", "-e", "env.yaml"]);
        assert_eq!(printed[1]["data"], json!({"region": "eu", "zone": "a"}), "{version}");
    }
    let (said, code) = files.fail(&["xr.yaml", "templates.yaml"]);
    assert_eq!(code, 1);
    assert!(said.contains("\"shared\" not found") && said.contains("templates.yaml:12"), "{said}");
    files.write("typo.yaml", &ENVIRONMENT.replace("defaultData", "defaultDate"));
    let (said, _) = files.fail(&["xr.yaml", "typo.yaml"]);
    assert!(said.contains("did you mean \"defaultData\"?"), "{said}");
    files.write("store.yaml", &ENVIRONMENT.replace("name: default", "name: vault"));
    let (said, _) = files.fail(&["xr.yaml", "store.yaml"]);
    assert!(said.contains("writeConnectionSecretsToNamespace"), "{said}");
}

#[test]
fn a_composition_with_a_pipeline_and_resources_is_refused() {
    let files = Files::new();
    let steps =
        "  pipeline:\n  - step: ready\n    functionRef:\n      name: function-auto-ready\n  resources:";
    files.write(
        "both.yaml",
        &ENVIRONMENT.replace("  resources:", steps).replace("name: shared", "name: none"),
    );
    files.change(
        "both.yaml",
        "fine.yaml",
        "    environmentConfigs:\n    - type: Reference\n      ref:\n        name: none\n",
        "",
    );
    let output = files.run(&["render", "xr.yaml", "fine.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("pipeline and resources are mutually exclusive"),
        "{said}"
    );
}
