//! Go templates through the command, with nothing said about functions: the example of the documentation, and what a
//! mistake in a template looks like.

use super::fixtures::{Files, documents};
use serde_json::{Value, json};

/// The example in the documentation: a step, what it is given, and what it answers.
fn example() -> [Value; 3] {
    let page = include_str!("../../../../docs/functions/go-templating.md");
    let fenced = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<Value> = fenced.flat_map(|block| documents(block.as_bytes())).collect();
    blocks.try_into().expect("three blocks")
}

/// Writes the files of a run: a composite resource, and a Composition of one step.
fn write(files: &Files, xr: &Value, step: &Value) {
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "templates"},
        "spec": {
            "compositeTypeRef": {"apiVersion": xr["apiVersion"], "kind": xr["kind"]},
            "mode": "Pipeline", "pipeline": [step],
        },
    });
    files.write("xr.yaml", &xr.to_string()).write("composition.yaml", &composition.to_string());
}

#[test]
fn the_documented_example_is_rendered_as_documented() {
    let [steps, given, answer] = example();
    let files = Files::new();
    write(&files, &given["observed"]["composite"]["resource"], &steps[0]);
    let observed: String = given["observed"]["resources"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, observed)| {
            let mut object = observed["resource"].clone();
            object["metadata"] = json!({
                "name": format!("observed-{name}"), "annotations": {"crossplane.io/composition-resource-name": name},
            });
            format!("---\n{object}\n")
        })
        .collect();
    files.write("observed.yaml", &observed);
    let printed = files.render(&["xr.yaml", "composition.yaml", "-o", "observed.yaml"]);
    let (composite, composed) = printed.split_first().expect("the composite resource");
    assert_eq!(
        composite["status"]["buckets"],
        answer["desired"]["composite"]["resource"]["status"]["buckets"]
    );
    let expected = answer["desired"]["resources"].as_object().expect("resources");
    assert_eq!(composed.len(), expected.len());
    for resource in composed {
        let name = &resource["metadata"]["annotations"]["crossplane.io/composition-resource-name"];
        let wanted = &expected[name.as_str().expect("a name")]["resource"];
        for field in ["apiVersion", "kind", "spec"] {
            assert_eq!(resource[field], wanted[field], "{name} {field}");
        }
    }
    let ready = &composite["status"]["conditions"].as_array().expect("conditions")[..];
    let ready = ready.iter().find(|condition| condition["type"] == "Ready").expect("a condition");
    assert_eq!(ready["status"], "False");
    assert!(ready["message"].as_str().is_some_and(|message| message.contains("bucket-1")), "{ready}");
}

#[test]
fn a_mistake_names_step_template_and_place() {
    let files = Files::new();
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "shop"}, "spec": {"image": "nginx", "db": null},
    });
    let step = |input: Value| {
        json!({"step": "write-manifests", "functionRef": {"name": "function-go-templating"}, "input": {
            "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline", "inline": input,
        }})
    };
    let head = "{{ $xr := .observed.composite.resource }}\n";
    let nil = "manifests:2:12: executing \"manifests\" at <$xr.spec.db.size>: nil pointer evaluating interface {}.size
  2 | size: {{ $xr.spec.db.size }}
    |                     ^ what should have the field size is null";
    let kind = "range can't iterate over nginx\n  2 | {{ range $xr.spec.image }}{{ end }}\n    |";
    for (template, expected) in [
        ("size: {{ $xr.spec.db.size }}", nil),
        ("{{ range $xr.spec.image }}{{ end }}", kind),
        (
            "n: {{ atoi $xr.spec.image | nope }}",
            "manifests:2: function \"nope\" not defined\n  2 | n: {{ atoi",
        ),
        ("{{ if }}", "manifests:2: missing value for if\n  2 | {{ if }}"),
    ] {
        write(&files, &xr, &step(json!({"template": format!("{head}{template}")})));
        let (said, code) = files.fail(&["xr.yaml", "composition.yaml"]);
        assert!(said.contains("write-manifests") && said.contains(expected), "{template} says:\n{said}");
        assert_eq!(code, 1);
    }
    // Of several templates, the one is named, with its own line.
    write(&files, &xr, &step(json!({"templates": ["# one", format!("{head}{{{{ fail \"no\" }}}}")]})));
    let (said, _) = files.fail(&["xr.yaml", "composition.yaml"]);
    assert!(
        said.contains("in inline.templates[1]:2:3\n  4 | {{ fail \"no\" }}\n    |    ^ fail failed"),
        "{said}"
    );
}
