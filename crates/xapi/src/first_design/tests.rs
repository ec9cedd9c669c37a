//! Rules of the design, and what becomes of its fields. The examples of the design are in `crates/transom/tests/first_design`.

mod rules;

use super::*;
use serde_json::json;
use transom_object::yaml;

const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructureDefinition
metadata: {name: caches.example.org}
spec:
  connectionDetails: [host, token]
  crdSpecTemplate:
    group: example.org
    version: v1
    names: {kind: Cache, plural: caches}
    validation:
      openAPIV3Schema: {type: object, properties: {megabytes: {type: int}, sizes: {type: array, items: {type: int}}}}
";
const PUBLICATION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructurePublication
metadata: {name: caches.example.org}
spec: {infrastructureDefinitionReference: {name: caches.example.org}}
";
const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: cheap}
spec:
  from: {apiVersion: example.org/v1, kind: Cache}
  to:
  - base: {apiVersion: cloud.example.org/v1, kind: Server}
    patches: [{fromFieldPath: spec.megabytes, toFieldPath: spec.size}]
    connectionDetails: [{fromConnectionSecretKey: host}, {name: token, fromConnectionSecretKey: password}]
";
const APPLICATION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ApplicationDefinition
metadata: {name: shops.example.org}
spec:
  crdSpecTemplate:
    group: example.org
    version: v1
    names: {kind: Shop, plural: shops}
    validation: {openAPIV3Schema: {type: object}}
";
const SHOP: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: shop}
spec:
  from: {apiVersion: example.org/v1, kind: Shop}
  to:
  - base: {apiVersion: v1, kind: ConfigMap}
";

fn translated(texts: &[&str]) -> Translation {
    let documents = texts.iter().flat_map(|text| yaml::read_documents(text).unwrap());
    let objects: Vec<Value> =
        documents.map(|document| document.value).filter(|value| !value.is_null()).collect();
    translate(&objects)
}

fn mistakes(texts: &[&str]) -> Vec<String> {
    translated(texts).mistakes.iter().map(ToString::to_string).collect()
}

fn remarks(texts: &[&str]) -> Vec<String> {
    let translation = translated(texts);
    assert_eq!(translation.mistakes, []);
    translation.remarks.iter().map(ToString::to_string).collect()
}

/// The only object of a kind.
fn one(texts: &[&str], kind: &str) -> Value {
    let translation = translated(texts);
    assert_eq!(translation.mistakes, []);
    let mut found = translation.objects.into_iter().map(|one| one.object).filter(|o| meta::kind(o) == kind);
    found.next().unwrap_or_else(|| panic!("no {kind}"))
}

/// A text with a part of it replaced.
fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

#[test]
fn a_published_definition_has_claims() {
    let definition = one(&[DEFINITION, PUBLICATION], "CompositeResourceDefinition");
    let schema = json!({"type": "object", "properties": {
        "megabytes": {"type": "integer"}, "sizes": {"type": "array", "items": {"type": "integer"}},
    }});
    assert_eq!(
        definition,
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": "caches.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "LegacyCluster",
                "names": {"kind": "Cache", "plural": "caches"},
                "claimNames": {
                    "kind": "CacheRequirement", "listKind": "CacheRequirementList",
                    "plural": "cacherequirements", "singular": "cacherequirement",
                },
                "connectionSecretKeys": ["host", "token"],
                "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": schema}},
                }}],
            },
        })
    );
    let alone = one(&[DEFINITION], "CompositeResourceDefinition");
    assert_eq!(alone["spec"].get("claimNames"), None, "without its publication");
    let said = remarks(&[DEFINITION]);
    let place = "InfrastructureDefinition/caches.example.org: spec.crdSpecTemplate.validation.openAPIV3Schema.properties";
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with(&format!("{place}.megabytes.type: \"int\" is read as \"integer\"")),
        "{said:?}"
    );
    assert!(said[1].starts_with(&format!("{place}.sizes.items.type")), "{said:?}");
}

#[test]
fn schemas_of_whole_objects_stay_as_they_are() {
    let whole = "{type: object, properties: {spec: {type: object, properties: {type: {type: string}}}, status: {type: object}}}";
    let definition =
        with(APPLICATION, "openAPIV3Schema: {type: object}", &format!("openAPIV3Schema: {whole}"));
    let today = one(&[&definition], "CompositeResourceDefinition");
    let schema = &today["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(*schema, yaml::read(whole).unwrap());
    assert_eq!(
        (&today["apiVersion"], &today["spec"]["scope"]),
        (&json!("apiextensions.crossplane.io/v2"), &json!("Namespaced"),)
    );
}

#[test]
fn the_rest_of_a_template_is_carried_over() {
    let more =
        "    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    additionalPrinterColumns: [{name: SIZE, type: integer, JSONPath: .spec.n}]
    preserveUnknownFields: true
    scope: Namespaced
  serviceAccountRef: {name: composer}
  defaultComposition: {name: a}
  forceComposition: {apiVersion: apiextensions.crossplane.io/v1alpha1, kind: Composition, name: b}
";
    let definition = format!("{APPLICATION}{more}");
    let spec = one(&[&definition], "CompositeResourceDefinition")["spec"].take();
    assert_eq!(spec["serviceAccountRef"], json!({"name": "composer"}));
    assert_eq!(
        (&spec["defaultCompositionRef"], &spec["enforcedCompositionRef"]),
        (&json!({"name": "a"}), &json!({"name": "b"}))
    );
    let version = &spec["versions"][0];
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{"name": "SIZE", "type": "integer", "jsonPath": ".spec.n"}])
    );
    assert_eq!(version["subresources"]["scale"]["specReplicasPath"], ".spec.n");
    assert_eq!(version["subresources"].get("status"), None);
    let said = remarks(&[&definition]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("spec.crdSpecTemplate.preserveUnknownFields: left out"), "{said:?}");
}

#[test]
fn a_composition_has_named_templates() {
    let twice = format!("{COMPOSITION}  - base: {{apiVersion: cloud.example.org/v1, kind: Server}}\n");
    let composition = one(&[DEFINITION, &twice], "Composition");
    assert_eq!(
        composition["spec"],
        json!({
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Cache"},
            "mode": "Resources",
            "writeConnectionSecretsToNamespace": "crossplane-system",
            "resources": [
                {
                    "name": "server",
                    "base": {"apiVersion": "cloud.example.org/v1", "kind": "Server"},
                    "patches": [{"fromFieldPath": "spec.megabytes", "toFieldPath": "spec.size"}],
                    "connectionDetails": [
                        {"name": "host", "fromConnectionSecretKey": "host"},
                        {"name": "token", "fromConnectionSecretKey": "password"},
                    ],
                },
                {"name": "server-2", "base": {"apiVersion": "cloud.example.org/v1", "kind": "Server"}},
            ],
        })
    );
}

#[test]
fn applications_have_neither_details_nor_other_namespaces() {
    let shop = with(SHOP, "kind: ConfigMap", "kind: ConfigMap, metadata: {namespace: other}");
    let shop = format!("{shop}    connectionDetails: [{{fromConnectionSecretKey: a}}]\n");
    let composition = one(&[APPLICATION, &shop], "Composition");
    let base = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let ready = json!([{"type": "None"}]);
    assert_eq!(
        composition["spec"]["resources"],
        json!([{"name": "configmap", "base": base, "readinessChecks": ready}])
    );
    let said = remarks(&[APPLICATION, &shop]);
    assert!(said[0].contains("spec.to[0].base.metadata.namespace: left out"), "{said:?}");
    assert!(said[1].contains("spec.to[0].connectionDetails: left out"), "{said:?}");
}

#[test]
fn blocks_become_fields_of_the_control_plane() {
    let instances = "
apiVersion: example.org/v1
kind: Shop
metadata: {name: a, namespace: ns, uid: u, annotations: {kubectl.kubernetes.io/last-applied-configuration: x, kept: text}}
spec: {size: 1, application: {compositionRef: [{name: shop}], composedRefs: [{kind: A, name: b}]}}
status: {a: b}
---
apiVersion: example.org/v1
kind: CacheRequirement
metadata: {name: c, namespace: ns}
spec:
  megabytes: 1
  infrastructure:
    resourceRef: [{apiVersion: example.org/v1, kind: Cache, name: d}]
    compositionSelector: {matchLabels: {a: b}}
    writeConnectionSecretToRef: {name: s, namespace: ns}
---
apiVersion: example.org/v1
kind: Cache
metadata: {name: d}
spec:
  megabytes: 1
  infrastructure:
    requirementRef: {apiVersion: example.org/v1, kind: CacheRequirement, namespace: ns, name: c}
    compositionRef: {name: cheap}
    writeConnectionSecretToRef: {name: s, namespace: ns}
    reclaimPolicy: Retain
";
    let bound = json!({"apiVersion": "example.org/v1", "kind": "Cache", "name": "d"});
    let claim =
        json!({"apiVersion": "example.org/v1", "kind": "CacheRequirement", "namespace": "ns", "name": "c"});
    let secret = json!({"name": "s", "namespace": "ns"});
    let expected = [
        json!({"size": 1, "crossplane": {"compositionRef": {"name": "shop"}}}),
        json!({
            "megabytes": 1, "resourceRef": bound, "compositionSelector": {"matchLabels": {"a": "b"}},
            "writeConnectionSecretToRef": {"name": "s"},
        }),
        json!({
            "megabytes": 1, "claimRef": claim, "compositionRef": {"name": "cheap"}, "writeConnectionSecretToRef": secret,
        }),
    ];
    // With the definitions and, by their shape, without them.
    for definitions in [&[APPLICATION, DEFINITION, PUBLICATION][..], &[]] {
        let texts = [definitions, &[instances]].concat();
        for (kind, expected) in ["Shop", "CacheRequirement", "Cache"].iter().zip(&expected) {
            assert_eq!(one(&texts, kind)["spec"], *expected);
        }
        let shop = one(&texts, "Shop");
        assert_eq!(
            shop["metadata"],
            json!({"name": "a", "namespace": "ns", "annotations": {"kept": "text"}})
        );
        assert_eq!(shop.get("status"), None);
        let said = remarks(&texts);
        for words in [
            "Shop/a: spec.application.composedRefs: left out: the control plane writes it",
            "CacheRequirement/c: spec.infrastructure.writeConnectionSecretToRef.namespace: left out",
            "Cache/d: spec.infrastructure.reclaimPolicy: left out: a composite resource is deleted with its claim",
        ] {
            assert!(said.iter().any(|said| said.starts_with(words)), "{words}: {said:#?}");
        }
    }
    let said = remarks(&[DEFINITION, instances]);
    assert!(
        said.iter().any(|said| said.contains("no InfrastructurePublication of Cache is given")),
        "{said:#?}"
    );
}

#[test]
fn paths_and_selectors_in_templates_are_todays() {
    let composition = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: c}
spec:
  from: {apiVersion: example.org/v1, kind: Cache}
  to:
  - base:
      apiVersion: example.org/v1
      kind: Inner
      metadata:
      spec:
        infrastructure: {compositionSelector: {matchLabels: {a: b}}}
        list: [{zoneSelector: {matchComposite: true, matchLabels: {c: d}}}]
    patches:
    - {fromFieldPath: 'spec.infrastructure.compositionRef[0].name', toFieldPath: spec.infrastructure.writeConnectionSecretToRef.name}
    - {fromFieldPath: spec.infrastructure.requirementRef.name, toFieldPath: spec.infrastructureOfMine}
";
    let template = one(&[composition], "Composition")["spec"]["resources"][0].take();
    assert_eq!(
        template["base"],
        json!({"apiVersion": "example.org/v1", "kind": "Inner", "spec": {
            "compositionSelector": {"matchLabels": {"a": "b"}},
            "list": [{"zoneSelector": {"matchControllerRef": true, "matchLabels": {"c": "d"}}}],
        }})
    );
    assert_eq!(
        template["patches"],
        json!([
            {"fromFieldPath": "spec.compositionRef.name", "toFieldPath": "spec.writeConnectionSecretToRef.name"},
            {"fromFieldPath": "spec.claimRef.name", "toFieldPath": "spec.infrastructureOfMine"},
        ])
    );
    let said =
        mistakes(&[&with(composition, "infrastructure.requirementRef.name", "infrastructure.reclaimPolicy")]);
    assert!(
        said[0].starts_with(
            "Composition/c: spec.to[0].patches[1].fromFieldPath: spec.infrastructure.reclaimPolicy"
        ),
        "{said:?}"
    );
    let said = mistakes(&[&with(
        composition,
        "matchComposite: true,",
        "matchComposite: true, matchControllerRef: false,",
    )]);
    assert!(
        said[0].contains("spec.to[0].base.spec.list[0].zoneSelector.matchComposite: contradicts"),
        "{said:?}"
    );
}

#[test]
fn objects_of_other_kinds_are_left_alone_and_come_in_order() {
    let others = "
apiVersion: argo.example.org/v1
kind: Deployment
metadata: {name: other, uid: kept}
spec: {application: {repository: a}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: new}
spec: {from: a}
---
apiVersion: v1
kind: Namespace
metadata: {name: ns}
";
    let instance =
        "apiVersion: example.org/v1\nkind: CacheRequirement\nmetadata: {name: c, namespace: ns}\nspec: {}\n";
    let translation = translated(&[instance, others, COMPOSITION, PUBLICATION, DEFINITION]);
    assert_eq!(translation.mistakes, []);
    let order: Vec<(usize, &str)> =
        translation.objects.iter().map(|one| (one.input, meta::kind(&one.object))).collect();
    assert_eq!(
        order,
        [
            (3, "Namespace"),
            (6, "CompositeResourceDefinition"),
            (2, "Composition"),
            (4, "Composition"),
            (1, "Deployment"),
            (0, "CacheRequirement"),
        ]
    );
    assert_eq!(translation.objects[4].object["metadata"]["uid"], "kept");
    assert_eq!(translation.objects[2].object["spec"], json!({"from": "a"}));
}

#[test]
fn an_instance_in_another_group_than_its_definition_is_meant_for_it() {
    let shop = "apiVersion: org/v1\nkind: Shop\nmetadata: {name: a}\nspec: {application: {compositionRef: [{name: b}]}}\n";
    assert_eq!(one(&[APPLICATION, shop], "Shop")["apiVersion"], "example.org/v1");
    let said = remarks(&[APPLICATION, shop]);
    assert!(
        said[0].contains(
            "Shop/a: apiVersion: no definition has this version of the kind: read as \"example.org/v1\""
        ),
        "{said:?}"
    );
    assert_eq!(one(&[shop], "Shop")["apiVersion"], "org/v1");
    let elsewhere = APPLICATION.replace("example.org", "third.org");
    assert_eq!(
        one(&[APPLICATION, &elsewhere, shop], "Shop")["apiVersion"],
        "org/v1",
        "it is not known which"
    );
}
