//! A Configuration with two levels of dependencies, in a registry in this process: it depends on another Configuration and on
//! a built-in function, and that Configuration on a Provider and on the same function.

use crate::platform::{composition, definition, documents};
use crate::scenario::{Action, Done, Scenario, Step, apply, delete};
use transom_oci::tarball::{self, Package};
use transom_oci::testing::{Server, client};
use transom_packages::Reference;

const FUNCTION: &str = "xpkg.example.org/crossplane-contrib/function-go-templating";
/// The name of the Function that is installed for it.
const INSTALLED_FUNCTION: &str = "crossplane-contrib-function-go-templating";
const HALL: &str = "/apis/example.org/v1/halls/one";

/// What is compared beside the kinds of composite resources. Definitions are read one by one: the plane has large ones of
/// its own.
const COMPARED: &[&str] = &[
    "/apis/pkg.crossplane.io/v1/configurations",
    "/apis/pkg.crossplane.io/v1/configurationrevisions",
    "/apis/pkg.crossplane.io/v1/providers",
    "/apis/pkg.crossplane.io/v1/providerrevisions",
    "/apis/pkg.crossplane.io/v1/functions",
    "/apis/pkg.crossplane.io/v1/functionrevisions",
    "/apis/pkg.crossplane.io/v1beta1/locks",
    "/apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions",
    "/apis/apiextensions.crossplane.io/v1alpha1/managedresourceactivationpolicies",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/halls.example.org",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/towers.example.org",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/links.example.org",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/buckets.example.org",
];

fn meta(kind: &str, name: &str, dependencies: &[(&str, &str, &str)]) -> String {
    let mut text =
        format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n");
    text.push_str("  crossplane: {version: '>=v1.20.0'}\n  dependsOn:\n");
    for (kind, source, version) in dependencies {
        text.push_str(&format!("  - {{{kind}: '{source}', version: '{version}'}}\n"));
    }
    text
}

/// A Composition that writes a text into the status.
fn writes(kind: &str, plural: &str, size: &str) -> String {
    let template = format!("apiVersion: example.org/v1\nkind: {kind}\nstatus: {{size: {size}}}");
    composition(kind, plural, &template)
        .replace("function-go-templating", INSTALLED_FUNCTION)
        .replace("  - step: ready\n    functionRef: {name: function-auto-ready}\n", "")
}

fn crd() -> String {
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buckets.example.org}\nspec:\n  \
     group: example.org\n  scope: Cluster\n  names: {kind: Bucket, plural: buckets}\n  versions:\n  - name: v1\n    served: true\n    \
     storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
        .to_owned()
}

/// All packages: repository, tag, documents.
fn images(host: &str) -> Vec<(&'static str, &'static str, Vec<String>)> {
    let source = |name: &str| format!("{host}/acme/{name}");
    let (network, storage, provider) = (source("network"), source("storage"), source("provider"));
    let function = ("function", FUNCTION, ">=v0.9.0");
    let halls = |size| writes("Hall", "halls", size);
    let links = |size| writes("Link", "links", size);
    let hall = definition("Hall", "halls", "Cluster", "");
    let wider = hall.replace("size: {type: integer}", "size: {type: integer}, width: {type: integer}");
    let platform = |dependencies: &[_]| meta("Configuration", "platform", dependencies);
    let of_network = || meta("Configuration", "network", &[("provider", &*provider, ">=v1.0.0"), function]);
    let needs = ("configuration", &*network, ">=v1.0.0");
    vec![
        (
            "acme/platform",
            "v1.0.0",
            // The second version has no Composition `annexes`.
            vec![platform(&[needs, function]), hall, halls("a"), writes("Annex", "annexes", "x")],
        ),
        (
            "acme/platform",
            "v2.0.0",
            vec![
                platform(&[needs, function, ("configuration", &*storage, "v1.0.0")]),
                wider,
                halls("b"),
                definition("Tower", "towers", "Namespaced", ""),
                writes("Tower", "towers", "t"),
            ],
        ),
        (
            "acme/network",
            "v1.0.0",
            vec![of_network(), definition("Link", "links", "Cluster", ""), links("a")],
        ),
        (
            "acme/network",
            "v1.1.0",
            vec![of_network(), definition("Link", "links", "Cluster", ""), links("b")],
        ),
        (
            "acme/storage",
            "v1.0.0",
            vec![meta("Configuration", "storage", &[function]), writes("Shelf", "shelves", "s")],
        ),
        (
            "acme/provider",
            "v1.0.0",
            vec![
                "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider}\n"
                    .to_owned(),
                crd(),
            ],
        ),
    ]
}

/// Pushes all packages to a registry.
pub(crate) async fn registry() -> Server {
    let server = Server::start().await;
    let scratch = tempfile::TempDir::new().expect("a temporary directory");
    for (repository, tag, documents) in images(&server.host) {
        let stream = documents.join("\n---\n");
        let package = Package { stream: stream.as_bytes(), examples: None, base: None };
        let image = tarball::build(package, scratch.path()).expect("an image");
        let reference =
            Reference::parse(&format!("{}/{repository}:{tag}", server.host)).expect("a reference");
        client().push(&reference, &image, &[], &|_| {}).await.expect("it can be pushed");
    }
    server
}

/// Install, use, upgrade, change of a dependency to an older version, roll back, remove. The highest versions of dependencies
/// are installed.
pub(crate) fn scenario(host: &str) -> Scenario {
    let path = |name: &str| format!("/apis/pkg.crossplane.io/v1/configurations/{name}");
    let install = |step: &'static str, name: &str, repository: &str, tag: &str| {
        let image = format!("{host}/{repository}:{tag}");
        let manifest = format!(
            "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: {name}}}\nspec: {{package: '{image}'}}\n"
        );
        let action = Action::Apply(documents(&manifest));
        Step { name: step, action, subject: path(name), done: Done::Installed(image), removes: Some(&[]) }
    };
    let hall = "apiVersion: example.org/v1\nkind: Hall\nmetadata: {name: one}\nspec: {size: 1}\n";
    let remove = |step: Step, removes: &'static [&'static str]| Step { removes: Some(removes), ..step };
    Scenario {
        name: "packages",
        initial: String::new(),
        steps: vec![
            install("install", "platform", "acme/platform", "v1.0.0"),
            remove(apply("use", hall, (HALL, "a")), &[]),
            install("upgrade", "platform", "acme/platform", "v2.0.0"),
            install("change dependency", "acme-network", "acme/network", "v1.0.0"),
            install("roll back", "platform", "acme/platform", "v1.0.0"),
            remove(
                delete("remove", &path("platform"), false),
                &["halls.example.org", "towers.example.org", "halls", "annexes", "towers"],
            ),
            remove(delete("remove dependency", &path("acme-network"), true), &["links.example.org", "links"]),
        ],
        compared: COMPARED,
    }
}
