//! Mistakes are pointed at, and a remedy is named.

use super::fixtures::Files;

const COMPOSITION: &str = "composition.yaml";

/// Checks that a run fails with an exit code and says all of these.
fn says(files: &Files, arguments: &[&str], code: i32, expected: &[&str]) {
    let (said, exit) = files.fail(arguments);
    for words in expected {
        assert!(said.contains(words), "{arguments:?} should say {words:?}, but says:\n{said}");
    }
    assert_eq!(exit, code, "{said}");
}

#[test]
fn the_wrong_use_of_the_command_exits_with_80() {
    let files = Files::new();
    says(&files, &["xr.yaml"], 80, &["COMPOSITION"]);
    says(&files, &["xr.yaml", COMPOSITION, "--nope"], 80, &["--nope"]);
    says(&files, &["xr.yaml", COMPOSITION, "-a", "not-a-pair"], 80, &["KEY=VALUE"]);
    says(&files, &["xr.yaml", COMPOSITION, "--timeout", "soon"], 80, &["write it like 90s"]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let files = Files::new();
    for arguments in [
        &["missing.yaml", COMPOSITION][..],
        &["xr.yaml", "missing.yaml"],
        &["xr.yaml", COMPOSITION, "missing.yaml"],
        &["xr.yaml", COMPOSITION, "--xrd", "missing.yaml"],
        &["xr.yaml", COMPOSITION, "-o", "missing.yaml"],
        &["xr.yaml", COMPOSITION, "-e", "missing.yaml", "-e", "xr.yaml"],
        &["xr.yaml", COMPOSITION, "--extra-resources", "missing.yaml"],
        &["xr.yaml", COMPOSITION, "--function-credentials", "missing.yaml"],
        &["xr.yaml", COMPOSITION, "--context-files", "a=missing.yaml"],
        &["xr.yaml", COMPOSITION, "-s", "missing"],
    ] {
        says(&files, arguments, 1, &["missing"]);
    }
    files.write("empty/readme.txt", "");
    says(&files, &["xr.yaml", COMPOSITION, "-o", "empty"], 1, &[".yaml or .yml"]);
}

#[test]
fn what_is_not_yaml_is_pointed_at() {
    let files = Files::new();
    files.write("bad.yaml", "a: b\n  c: d\n").write("list.yaml", "- a\n");
    says(&files, &["bad.yaml", COMPOSITION], 1, &["not YAML", "bad.yaml:2:4", "2 |   c: d", "\n  |    ^"]);
    says(&files, &["xr.yaml", "list.yaml"], 1, &["list.yaml:1:1", "a manifest is an object"]);
    says(&files, &["xr.yaml", COMPOSITION, "--context-values", "a={"], 1, &["context key \"a\""]);
}

#[test]
fn the_wrong_kinds_are_pointed_at() {
    let files = Files::new();
    says(&files, &["xr.yaml", "xr.yaml"], 1, &["not a Composition: App/shop", "xr.yaml:2:1"]);
    says(&files, &["xr.yaml", COMPOSITION, "xr.yaml"], 1, &["not a Function: App/shop"]);
    says(&files, &["xr.yaml", COMPOSITION, "--xrd", "xr.yaml"], 1, &["not a CompositeResourceDefinition"]);
    files.change("xr.yaml", "other.yaml", "kind: App", "kind: Other");
    let kind = "compositeTypeRef.kind (App) does not match XR's kind (Other)";
    says(&files, &["other.yaml", COMPOSITION], 1, &[kind, "other.yaml:2:1", "2 | kind: Other"]);
    files.change("xr.yaml", "version.yaml", "example.org/v1", "example.org/v2");
    says(&files, &["version.yaml", COMPOSITION], 1, &["apiVersion (example.org/v1)", "version.yaml:1:1"]);
    files.change("xr.yaml", "nameless.yaml", "  name: shop\n", "");
    says(&files, &["nameless.yaml", COMPOSITION], 1, &["has no name", "metadata.name"]);
}

#[test]
fn selectors_must_select_the_composition() {
    let files = Files::new();
    let selector = "spec:\n  crossplane:\n    compositionSelector:\n      matchLabels:\n        tier: gold\n";
    files.change("xr.yaml", "gold.yaml", "spec:\n", selector);
    says(&files, &["gold.yaml", COMPOSITION], 1, &["missing required label \"tier\"", "gold.yaml:10:9"]);
    files.change(COMPOSITION, "silver.yaml", "  name: app\n", "  name: app\n  labels:\n    tier: silver\n");
    says(&files, &["gold.yaml", "silver.yaml"], 1, &[r#"want "gold", got "silver""#]);
}

#[test]
fn misspelt_and_misplaced_fields_are_pointed_at() {
    let files = Files::new();
    files.change(COMPOSITION, "a.yaml", "  pipeline:", "  pipelines:");
    says(
        &files,
        &["xr.yaml", "a.yaml"],
        1,
        &["unknown field \"pipelines\"", "a.yaml:10:3", "did you mean \"pipeline\"?"],
    );
    let nested = "      name: function-auto-ready\n    inputt: {}\n    crdentials: []\n";
    files.change(COMPOSITION, "b.yaml", "      name: function-auto-ready\n", nested);
    let both = ["did you mean \"input\"?", "b.yaml:64:5", "did you mean \"credentials\"?", "b.yaml:65:5"];
    says(&files, &["xr.yaml", "b.yaml"], 1, &both);
}

/// Whatever the API server would refuse about a Composition is refused in its words, where it was written.
#[test]
fn compositions_that_an_api_server_refuses_are_pointed_at() {
    let files = Files::new();
    let step = "  - step: ready\n";
    for (old, new, expected) in [
        (
            "  mode: Pipeline",
            "  mode: [Pipeline]",
            &["spec.mode in body must be of type string: \"array\"", "bad.yaml:9:3"][..],
        ),
        (
            "  mode: Pipeline",
            "  mode: Pipelin",
            &["spec.mode: Unsupported value: \"Pipelin\"", "bad.yaml:9:3", "did you mean \"Pipeline\"?"],
        ),
        ("step: ready", "step: compose", &["spec.pipeline[1]: Duplicate value", "bad.yaml:61:5"]),
        (
            step,
            "  - step: ready\n    maxIterations: 0\n",
            &["spec.pipeline[1].maxIterations: Invalid value: 0: ", "at least 1, or -1", "bad.yaml:62:5"],
        ),
        (step, "  - step: ready\n    maxIterations: -2\n", &["maxIterations: Invalid value: -2: "]),
        (
            step,
            "  - step: ready\n    allowedExtraResources:\n    - apiVersion: v1\n      kind: Secret\n      name: a\n      matchLabels: {b: c}\n",
            &["name, matchName and matchLabels are mutually exclusive", "bad.yaml:63:7"],
        ),
        ("    kind: App", "", &["spec.compositeTypeRef.kind: Required value", "bad.yaml:6:3"]),
        ("      kind: Resources\n", "", &["spec.pipeline[0].input.kind: Required value", "bad.yaml:14:5"]),
    ] {
        files.change(COMPOSITION, "bad.yaml", old, new);
        says(&files, &["xr.yaml", "bad.yaml"], 1, expected);
    }
}

#[test]
fn what_crossplane_v1_writes_into_every_composition_is_accepted() {
    let files = Files::new();
    let store = "  mode: Pipeline\n  publishConnectionDetailsWithStoreConfigRef:\n    name: default\n";
    files.change(COMPOSITION, "v1.yaml", "  mode: Pipeline\n", store);
    let output = files.run(&["render", "xr.yaml", "v1.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// A mistake in the input of a built-in function is pointed at, not the step that has it.
#[test]
fn mistakes_in_inputs_are_pointed_at() {
    let files = Files::new();
    for (old, new, expected) in [
        (
            "          toFieldPath: status.replicas",
            "          toFieldPth: status.replicas",
            &[
                "error: in the input of pipeline step \"compose\": unknown field \"toFieldPth\"\n",
                "bad.yaml:42:11",
                "42 |           toFieldPth: status.replicas\n   |           ^\n   = did you mean \"toFieldPath\"?",
            ][..],
        ),
        (
            "          - type: map\n",
            "          - type: mpa\n",
            &[
                "unsupported value \"mpa\"",
                "bad.yaml:57:13",
                "did you mean \"map\"? supported are map, match,",
            ],
        ),
        ("      - name: service\n", "      -\n", &["required field \"name\" is missing", "bad.yaml:44:9"]),
    ] {
        files.change(COMPOSITION, "bad.yaml", old, new);
        says(&files, &["xr.yaml", "bad.yaml"], 1, expected);
        let (said, _) = files.fail(&["xr.yaml", "bad.yaml"]);
        assert!(!said.contains("v1beta1.Resources") && !said.contains("unmarshal"), "{said}");
    }
}

#[test]
fn all_mistakes_in_inputs_are_reported() {
    let files = Files::new();
    files.change(COMPOSITION, "one.yaml", "toFieldPath: spec.replicas", "toFieldPth: spec.replicas");
    files.change("one.yaml", "two.yaml", "fromFieldPath: spec.image", "fromField: spec.image");
    says(&files, &["xr.yaml", "two.yaml"], 1, &["two.yaml:36:11", "two.yaml:38:11"]);
    // The classic form also says what the original says.
    let genuine = "step \"compose\" returned a fatal result: cannot get Function input: cannot get function input *v1beta1";
    says(
        &files,
        &["xr.yaml", "two.yaml", "--classic-output"],
        1,
        &[genuine, "two.yaml:36:11", "two.yaml:38:11"],
    );
    says(&files, &["xr.yaml", "two.yaml", "functions.yaml"], 1, &["two.yaml:36:11"]);
}

#[test]
fn mistakes_in_templates_of_the_first_version_are_pointed_at() {
    let files = Files::new();
    files.write(
        "templates.yaml",
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: templates\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: App\n  mode: Resources\n  resources:\n  - base:\n      apiVersion: v1\n      kind: ConfigMap\n    patches:\n    - fromFieldPath: spec.image\n      toFieldPth: data.image\n",
    );
    says(
        &files,
        &["xr.yaml", "templates.yaml"],
        1,
        &[
            "in the templates: unknown field \"toFieldPth\"",
            "templates.yaml:16:7",
            "did you mean \"toFieldPath\"?",
        ],
    );
}

/// What a function ignores is rarely what was meant: it is rendered, with a warning.
#[test]
fn what_functions_ignore_is_warned_of() {
    let files = Files::new();
    files.change(COMPOSITION, "kind.yaml", "kind: Resources", "kind: Resource");
    files.change("xr.yaml", "second.yaml", "shop", "second");
    let both = std::fs::read_to_string(files.path("xr.yaml")).unwrap();
    let second = std::fs::read_to_string(files.path("second.yaml")).unwrap();
    files.write("both.yaml", &format!("{both}---\n{second}"));
    let output = files.run(&["render", "both.yaml", "kind.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("expects an input of kind \"Resources\", not \"Resource\""), "{said}");
    assert!(said.contains("kind.yaml:16:7"), "{said}");
    assert_eq!(said.matches("warning:").count(), 1, "once, whatever is rendered: {said}");
}

/// Diagnostics have colours on terminals only.
#[test]
fn piped_diagnostics_have_no_colour() {
    let files = Files::new();
    let (said, _) = files.fail(&["xr.yaml", "xr.yaml"]);
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let forced = files.run_with(&[("CLICOLOR_FORCE", "1")], &["render", "xr.yaml", "xr.yaml"]);
    let said = String::from_utf8_lossy(&forced.stderr);
    assert!(said.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m not a Composition"), "{said:?}");
    let refused = files.run_with(&[("NO_COLOR", "1"), ("CLICOLOR", "1")], &["render", "xr.yaml", "xr.yaml"]);
    assert!(!String::from_utf8_lossy(&refused.stderr).contains('\u{1b}'));
}

#[test]
fn a_denied_requirement_names_the_list() {
    let files = Files::new();
    let step = "  - step: extra\n    functionRef:\n      name: function-extra-resources\n    allowedExtraResources:\n    - apiVersion: v1\n      kind: ConfigMap\n    input:\n      apiVersion: extra-resources.fn.crossplane.io/v1beta1\n      kind: Input\n      spec:\n        extraResources:\n        - apiVersion: v1\n          kind: Secret\n          into: secrets\n          ref:\n            name: top\n";
    files.change(COMPOSITION, "denied.yaml", "  - step: ready\n", &format!("{step}  - step: ready\n"));
    says(
        &files,
        &["xr.yaml", "denied.yaml"],
        1,
        &["allowedExtraResources do not allow", "denied.yaml:64:5", "add this to allowedExtraResources"],
    );
    assert!(!files.fail(&["xr.yaml", "denied.yaml"]).0.contains("the function re"));
}

#[test]
fn functions_that_cannot_run_are_pointed_at() {
    let files = Files::new();
    files.change(COMPOSITION, "python.yaml", "name: function-auto-ready", "name: function-python");
    says(
        &files,
        &["xr.yaml", "python.yaml"],
        1,
        &["\"function-python\" is not built in", "python.yaml:63:7", "built in are"],
    );
    says(
        &files,
        &["xr.yaml", "python.yaml", "functions.yaml"],
        1,
        &["does it exist in your Functions file?"],
    );
    files.change(
        COMPOSITION,
        "typo.yaml",
        "name: function-patch-and-transform",
        "name: function-patch-and-transfrom",
    );
    let meant = ["typo.yaml:13:7", "did you mean \"function-patch-and-transform\"?"];
    says(&files, &["xr.yaml", "typo.yaml"], 1, &meant);
    says(&files, &["xr.yaml", "typo.yaml", "functions.yaml"], 1, &meant);
    files.change("functions.yaml", "python-functions.yaml", "function-auto-ready", "function-python");
    let development = "render.crossplane.io/runtime: Development";
    let packaged = ["xr.yaml", "python.yaml", "python-functions.yaml", "--container-runtime", "none"];
    says(&files, &packaged, 1, &["is not built in", development]);
    let runtime = ["xr.yaml", COMPOSITION, "functions.yaml", "-a", "render.crossplane.io/runtime=Magic"];
    says(&files, &runtime, 1, &["unknown runtime \"Magic\""]);
    let endpoint = ["xr.yaml", COMPOSITION, "functions.yaml", "-a", "transom.io/endpoint=elsewhere"];
    let address = "\"elsewhere\" is not an address of a function; write it like localhost:9443: it needs a host and a port";
    says(&files, &endpoint, 1, &[address, "functions.yaml:"]);
    let unreachable = [
        &["xr.yaml", COMPOSITION, "functions.yaml", "-a", "render.crossplane.io/runtime=Development"][..],
        &["-a", "render.crossplane.io/runtime-development-target=localhost:1", "--timeout", "500ms"],
    ];
    says(&files, &unreachable.concat(), 1, &["localhost:1", "step \"compose\"", "composition.yaml:11:5"]);
}

const ANSWERED: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: answered}
spec:
  compositeTypeRef: {apiVersion: API_VERSION, kind: App}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-dummy}
    input: {apiVersion: dummy.fn.crossplane.io/v1beta1, kind: Response, response: ANSWER}
";

/// A Composition for the type of the example whose only function gives this answer.
fn answered(files: &Files, name: &str, answer: &str) {
    let example = files.render(&["xr.yaml", COMPOSITION]);
    let api_version = example[0]["apiVersion"].as_str().expect("a type");
    files.write(name, &ANSWERED.replace("API_VERSION", api_version).replace("ANSWER", answer));
}

#[test]
fn two_resources_that_are_one_object_are_refused_as_a_plane_does() {
    let files = Files::new();
    let map =
        |name: &str| format!("{{resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}}}");
    let both = |left: &str, right: &str| {
        format!("{{desired: {{resources: {{left: {}, right: {}}}}}}}", map(left), map(right))
    };
    answered(&files, "twins.yaml", &both("twin", "twin"));
    let words = "composed resources \"left\" and \"right\" have the same name: both are ConfigMap \"twin\"";
    says(&files, &["xr.yaml", "twins.yaml"], 1, &[words]);
    says(&files, &["xr.yaml", "twins.yaml", "--classic-output"], 1, &[words]);
    answered(&files, "two.yaml", &both("one", "two"));
    assert_eq!(files.render(&["xr.yaml", "two.yaml"]).len(), 3);
}

#[test]
fn what_has_no_effect_is_reported_on_stderr_only() {
    let files = Files::new();
    let plain = files.run(&["render", "xr.yaml", COMPOSITION]);
    assert!(plain.stderr.is_empty(), "{}", String::from_utf8_lossy(&plain.stderr));
    let pinned = "name: function-auto-ready\n    functionRevisionRef:\n      name: function-auto-ready-1";
    files.change(COMPOSITION, "pinned.yaml", "name: function-auto-ready", pinned);
    let output = files.run(&["render", "xr.yaml", "pinned.yaml"]);
    assert_eq!(output.stdout, plain.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("revisions of functions are not chosen offline"), "{said}");
    assert!(said.contains("the function of step \"ready\" is called as its Function is given"), "{said}");
    assert!(!said.contains("step \"compose"), "{said}");
    answered(&files, "wishful.yaml", "{desired: {composite: {resource: {spec: {planet: mars}}}}}");
    let said = files.run(&["render", "xr.yaml", "wishful.yaml"]).stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("Pipeline step \"compose\": has no effect: spec.planet; "), "{said}");
}

#[test]
fn a_resource_without_a_name_is_refused() {
    let files = Files::new();
    let map = "{resource: {apiVersion: v1, kind: ConfigMap}}";
    answered(&files, "nameless.yaml", &format!(r#"{{desired: {{resources: {{"": {map}}}}}}}"#));
    let words =
        "pipeline step \"compose\" (function \"function-dummy\") returned a composed resource without a name";
    says(&files, &["xr.yaml", "nameless.yaml"], 1, &[words, "nameless.yaml:8:5"]);
}

#[test]
fn a_misspelt_function_is_recognised() {
    let files = Files::new();
    files.change(COMPOSITION, "typo.yaml", "name: function-auto-ready", "name: function-auto-redy");
    says(&files, &["xr.yaml", "typo.yaml"], 1, &["did you mean \"function-auto-ready\"?"]);
    says(&files, &["xr.yaml", "typo.yaml", "functions.yaml"], 1, &["did you mean \"function-auto-ready\"?"]);
}

#[test]
fn a_fatal_result_shows_what_was_wanted_and_names_the_step() {
    let files = Files::new();
    // The first step succeeds; the second has a map without the key.
    let second = "\n  - step: broken\n    functionRef:\n      name: function-patch-and-transform\n    input:\n      apiVersion: pt.fn.crossplane.io/v1beta1\n      kind: Resources\n      resources:\n      - name: other\n        base:\n          apiVersion: v1\n          kind: ConfigMap\n        patches:\n        - type: FromCompositeFieldPath\n          fromFieldPath: spec.region\n          toFieldPath: data.region\n          transforms:\n          - type: map\n            map:\n              us: x\n";
    files.change(
        COMPOSITION,
        "fatal.yaml",
        "\n  - step: ready\n    functionRef:\n      name: function-auto-ready\n",
        second,
    );
    let expected = [
        "kind: Deployment",
        "wanted before the pipeline failed",
        "step \"broken\"",
        "key eu is not found in map",
        "fatal.yaml:61:5",
    ];
    says(&files, &["xr.yaml", "fatal.yaml"], 1, &expected);
    says(&files, &["xr.yaml", "fatal.yaml", "--classic-output"], 1, &["step \"broken\""]);
}

#[test]
fn a_field_path_that_does_not_parse_is_pointed_at() {
    let files = Files::new();
    files.change(COMPOSITION, "path.yaml", "fromFieldPath: spec.image", "fromFieldPath: spec.image[");
    says(
        &files,
        &["xr.yaml", "path.yaml"],
        1,
        &["cannot parse path \"spec.image[\"", "fromFieldPath: spec.image[\n", "^"],
    );
}
