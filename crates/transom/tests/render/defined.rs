//! Rendering with the definition of the composite resource: claims, and what an API server would refuse.

use super::fixtures::{Files, documents};

const DEFINITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: apps.example.org
spec:
  group: example.org
  names: {kind: App, plural: apps}
  claimNames: {kind: AppClaim, plural: appclaims}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [image]
            properties:
              image: {type: string}
              region: {type: string, enum: [eu, us]}
              replicas: {type: integer, default: 7}
";

fn files() -> Files {
    let files = Files::new();
    files.write("xrd.yaml", DEFINITION);
    files.change("xr.yaml", "claim.yaml", "kind: App", "kind: AppClaim");
    files
}

#[test]
fn the_composite_resource_of_a_claim_is_rendered() {
    let files = files();
    files.change("claim.yaml", "short.yaml", "  replicas: 2\n", "  compositeDeletePolicy: Foreground\n");
    let output = files.run(&["render", "short.yaml", "composition.yaml", "--xrd", "xrd.yaml", "-x"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("note: AppClaim/shop is a claim; this is the App shop-"), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let printed = documents(&output.stdout);
    let xr = &printed[0];
    assert_eq!((&xr["kind"], &xr["metadata"]["namespace"]), (&"App".into(), &serde_json::Value::Null));
    assert_eq!(xr["spec"]["claimRef"]["name"], "shop");
    assert_eq!(xr["spec"]["compositeDeletePolicy"], serde_json::Value::Null, "that is the claim's own");
    assert_eq!(printed[1]["spec"]["replicas"], 7, "defaulted");
    assert_eq!(printed[1]["metadata"]["labels"]["crossplane.io/claim-name"], "shop");
    let again = files.run(&["render", "short.yaml", "composition.yaml", "--xrd", "xrd.yaml", "-x"]);
    assert_eq!(again.stdout, output.stdout, "the generated name is the same every time");
}

#[test]
fn without_a_definition_a_claim_is_only_guessed() {
    let (said, _) = files().fail(&["claim.yaml", "composition.yaml"]);
    assert!(said.contains("if this is a claim, give its definition with --xrd"), "{said}");
}

/// Crossplane renders what no API server would accept: so it is done here, too, but not without a word.
#[test]
fn what_an_api_server_would_refuse_is_warned_of() {
    let files = files();
    for (file, old, new, expected) in [
        (
            "xr.yaml",
            "  replicas: 2",
            "  replicas: two",
            &["spec.replicas in body must be of type integer: \"string\"", "bad.yaml:8:3"][..],
        ),
        ("xr.yaml", "  region: eu", "  region: ue", &["Unsupported value: \"ue\"", "did you mean \"eu\"?"]),
        (
            "xr.yaml",
            "  replicas: 2",
            "  replica: 2",
            &["unknown field \"replica\"", "did you mean \"replicas\"?"],
        ),
        ("xr.yaml", "  image: nginx:1.27\n", "", &["spec.image: Required value", "bad.yaml:6:1"]),
        (
            "claim.yaml",
            "  replicas: 2",
            "  replicas: two",
            &["spec.replicas in body must be of type integer"],
        ),
    ] {
        files.change(file, "bad.yaml", old, new);
        let output = files.run(&["render", "bad.yaml", "composition.yaml", "--xrd", "xrd.yaml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        for words in expected.iter().chain(&["warning: "]) {
            assert!(said.contains(words), "{said}");
        }
        let without = files.run(&["render", "bad.yaml", "composition.yaml"]);
        assert!(
            !String::from_utf8_lossy(&without.stderr).contains("warning"),
            "unknown without the definition"
        );
    }
}
