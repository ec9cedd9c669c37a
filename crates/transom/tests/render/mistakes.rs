//! Mistakes are pointed at, and a remedy is named.

use crate::fixtures::Files;

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
        &["unknown field \"pipelines\"", "a.yaml:10:3", "did you mean pipeline?"],
    );
    files.change(COMPOSITION, "b.yaml", "  mode: Pipeline", "  mode: [Pipeline]");
    says(&files, &["xr.yaml", "b.yaml"], 1, &["\"mode\" is a list, not a text", "b.yaml:9:3"]);
    files.change(COMPOSITION, "c.yaml", "step: ready", "step: compose");
    says(&files, &["xr.yaml", "c.yaml"], 1, &["two pipeline steps named \"compose\""]);
    files.change(COMPOSITION, "d.yaml", "  mode: Pipeline", "  mode: Magic");
    says(&files, &["xr.yaml", "d.yaml"], 1, &["unknown mode \"Magic\"", "use Pipeline"]);
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
    files.change("functions.yaml", "python-functions.yaml", "function-auto-ready", "function-python");
    let development = "render.crossplane.io/runtime: Development";
    says(&files, &["xr.yaml", "python.yaml", "python-functions.yaml"], 1, &["is not built in", development]);
    let runtime = ["xr.yaml", COMPOSITION, "functions.yaml", "-a", "render.crossplane.io/runtime=Magic"];
    says(&files, &runtime, 1, &["unknown runtime \"Magic\""]);
    let nobody = [
        &["xr.yaml", COMPOSITION, "functions.yaml", "-a", "render.crossplane.io/runtime=Development"][..],
        &["-a", "render.crossplane.io/runtime-development-target=localhost:1", "--timeout", "500ms"],
    ];
    says(&files, &nobody.concat(), 1, &["localhost:1", "step \"compose\"", "composition.yaml:11:5"]);
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
