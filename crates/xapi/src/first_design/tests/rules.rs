//! The rules of the design, and how mistakes are worded.

use super::*;

#[test]
fn each_connection_detail_is_given_exactly_once() {
    let missing = with(COMPOSITION, ", {name: token, fromConnectionSecretKey: password}", "");
    let given: &[(&str, &[&str])] = &[
        (COMPOSITION, &[]),
        (
            &missing,
            &[
                "Composition/cheap: spec.to: connection detail \"token\" of InfrastructureDefinition \"caches.example.org\"",
            ],
        ),
        (
            &with(COMPOSITION, "name: token", "name: host"),
            &["spec.to[0].connectionDetails[1].name: connection detail \"host\" is given twice", "\"token\""],
        ),
        (
            &format!(
                "{COMPOSITION}  - base: {{apiVersion: a/v1, kind: B}}\n    connectionDetails: [{{fromConnectionSecretKey: token}}]\n"
            ),
            &[
                "spec.to[1].connectionDetails[0].fromConnectionSecretKey: connection detail \"token\" is given twice",
            ],
        ),
    ];
    for (composition, expected) in given {
        let said = mistakes(&[DEFINITION, composition]);
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        assert!(said.iter().zip(*expected).all(|(said, words)| said.contains(words)), "{said:#?}");
    }
    // A detail that two templates give is wrong in any case; that one is missing is only known with the definition.
    assert_eq!(mistakes(&[&missing]), [""; 0]);
    assert!(remarks(&[&missing])[0].contains("no definition of Cache of example.org/v1 is given"));
    // A definition without connection details publishes none.
    let silent = with(DEFINITION, "  connectionDetails: [host, token]\n", "");
    let said = remarks(&[&silent, COMPOSITION]);
    assert!(said.last().unwrap().contains("spec.to[0].connectionDetails: left out"), "{said:#?}");
    assert!(!one(&[&silent, COMPOSITION], "Composition").to_string().contains("onnection"));
}

#[test]
fn scopes_are_those_of_the_design() {
    let base = "apiVersion: v1, kind: ConfigMap";
    let composing = |base_of: &str| with(SHOP, base, base_of);
    let cluster = composing("apiVersion: example.org/v1, kind: Cache");
    let said = mistakes(&[APPLICATION, DEFINITION, PUBLICATION, &cluster]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("spec.to[0].base.kind: Cache of example.org/v1 is cluster-scoped"), "{said:?}");
    assert!(said[0].ends_with("; use CacheRequirement, which is published for it"), "{said:?}");
    assert!(!mistakes(&[APPLICATION, DEFINITION, &cluster])[0].contains("use "));
    for (base, is_refused) in [
        ("apiVersion: example.org/v1, kind: CacheRequirement", false),
        ("apiVersion: example.org/v1, kind: Shop", false),
        ("apiVersion: unknown.example.org/v1, kind: Thing", false),
        ("apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole", true),
        ("apiVersion: crds.example.org/v1, kind: Zone", true),
    ] {
        let zone = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: z}\nspec: {group: crds.example.org, names: {kind: Zone}, scope: Cluster}\n";
        let said = mistakes(&[APPLICATION, DEFINITION, PUBLICATION, zone, &composing(base)]);
        assert_eq!(!said.is_empty(), is_refused, "{base}: {said:?}");
    }
    for base in [
        "apiVersion: v1, kind: ConfigMap",
        "apiVersion: example.org/v1, kind: CacheRequirement",
        "apiVersion: example.org/v1, kind: Shop",
        "apiVersion: unknown.example.org/v1, kind: Thing, metadata: {namespace: a}",
    ] {
        let composition = with(COMPOSITION, "apiVersion: cloud.example.org/v1, kind: Server", base);
        let said = mistakes(&[APPLICATION, DEFINITION, PUBLICATION, &composition]);
        assert!(
            said.len() == 1 && said[0].contains("is namespaced: infrastructure is composed of"),
            "{said:?}"
        );
    }
}

#[test]
fn what_breaks_a_rule_is_named_with_its_field() {
    let other = with(PUBLICATION, "metadata: {name: caches.example.org}", "metadata: {name: published}");
    let absent = PUBLICATION.replace("caches.", "stores.");
    let application = PUBLICATION.replace("caches.", "shops.");
    let cache =
        "\n---\napiVersion: example.org/v1\nkind: Cache\nmetadata: {name: d}\nspec: {infrastructure: {}}\n";
    let cases: &[(&[&str], &str)] = &[
        (
            &[&with(DEFINITION, "caches.example.org", "caches")],
            "InfrastructureDefinition/caches: metadata.name: must be \"caches.example.org\"",
        ),
        (
            &[&with(DEFINITION, "version: v1", "versions: [{name: v1}, {name: v2}]")],
            "spec.crdSpecTemplate.versions: a definition has one version, and here are 2",
        ),
        (
            &[&with(DEFINITION, "version: v1", "version: v1\n    versions: [{name: v2}]")],
            "spec.crdSpecTemplate.versions[0].name: \"v2\" is not",
        ),
        (&[&with(DEFINITION, "    version: v1\n", "")], "spec.crdSpecTemplate.version: is required"),
        (
            &[&with(DEFINITION, "plural: caches", "plural: 1")],
            "spec.crdSpecTemplate.names.plural: must be a text",
        ),
        (
            &[&with(DEFINITION, "connectionDetails", "connectionDetail")],
            "spec.connectionDetail: unknown field; did you mean \"connectionDetails\"?",
        ),
        (
            &[&with(DEFINITION, "megabytes:", "claimRef:")],
            "properties.claimRef: is a field of the control plane",
        ),
        (
            &[&with(DEFINITION, "    version: v1\n", "    version: v1\n    scope: Namespaced\n")],
            "spec.crdSpecTemplate.scope: must be \"Cluster\"",
        ),
        (
            &[&format!("{DEFINITION}  serviceAccountRef: {{name: a}}\n")],
            "spec.serviceAccountRef.namespace: is required",
        ),
        (
            &[&format!("{DEFINITION}  forceComposition: {{kind: Cache, name: a}}\n")],
            "spec.forceComposition.kind: must be \"Composition\", but is \"Cache\"",
        ),
        (&[DEFINITION, DEFINITION], "metadata.name: Cache of example.org is defined by another object"),
        (
            &[DEFINITION, &other],
            "InfrastructurePublication/published: metadata.name: must be \"caches.example.org\"",
        ),
        (
            &[DEFINITION, PUBLICATION, PUBLICATION],
            "infrastructureDefinitionReference.name: \"caches.example.org\" is published by another",
        ),
        (&[DEFINITION, &absent], "no InfrastructureDefinition \"stores.example.org\" is given"),
        (&[APPLICATION, &application], "\"shops.example.org\" is an ApplicationDefinition"),
        (
            &[DEFINITION, &with(COMPOSITION, "  from: {apiVersion: example.org/v1, kind: Cache}\n", "")],
            "Composition/cheap: spec.from: is required",
        ),
        (
            &[&with(SHOP, "base: {apiVersion: v1, kind: ConfigMap}", "patches: []")],
            "spec.to[0].base: is required",
        ),
        (
            &[DEFINITION, &with(cache, "{}", "{compositionRef: [{name: a}, {name: b}]}")],
            "Cache/d: spec.infrastructure.compositionRef: has 2 entries",
        ),
        (
            &[DEFINITION, &with(cache, "{}", "{reclaimPolicy: Recycle}")],
            "spec.infrastructure.reclaimPolicy: must be Delete or Retain",
        ),
        (
            &[DEFINITION, &with(cache, "{}", "{writeConnectionSecretToRef: {name: a}}")],
            "writeConnectionSecretToRef.namespace: is required",
        ),
        (
            &[DEFINITION, &with(cache, "{}", "{compositionSelctor: {}}")],
            "did you mean \"compositionSelector\"?",
        ),
        (
            &[
                "apiVersion: example.org/v1\nkind: CacheRequirement\nmetadata: {name: a}\nspec: {infrastructure: {resourceRef: [{apiVersion: example.org/v1, kind: Store, name: a}]}}\n",
            ],
            "resourceRef[0].kind: must be \"Cache\"",
        ),
    ];
    for (texts, expected) in cases {
        let said = mistakes(texts);
        assert!(said.iter().any(|said| said.contains(expected)), "{expected}: {said:#?}");
    }
}
