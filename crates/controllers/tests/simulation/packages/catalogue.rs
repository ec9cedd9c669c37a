//! The packages in the registry. `a` depends on `b` and later on `c`, these on each other and on `d`, and not all of their
//! versions fit together.

use serde_json::{Value, json};
use transom_packages::Digest;

pub(crate) const REGISTRY: &str = "r.io/acme";
/// A tag that moves.
pub(crate) const EDGE: &str = "edge";
/// How many contents the tag that moves can have.
pub(crate) const EDGES: u64 = 3;

/// One package: a source and a version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The last part of its source.
    pub name: &'static str,
    pub version: &'static str,
    /// Names and constraints.
    pub dependencies: &'static [(&'static str, &'static str)],
    /// The Compositions that it brings.
    pub compositions: &'static [&'static str],
    /// Whether it brings a definition.
    pub defines: bool,
}

const fn image(
    name: &'static str,
    version: &'static str,
    dependencies: &'static [(&'static str, &'static str)],
    compositions: &'static [&'static str],
    defines: bool,
) -> Image {
    Image { name, version, dependencies, compositions, defines }
}

pub(crate) const IMAGES: [Image; 11] = [
    image("a", "v1.0.0", &[("b", ">=v1.0.0")], &["a", "a-old"], true),
    image("a", "v2.0.0", &[("b", ">=v1.0.0"), ("c", ">=v1.0.0")], &["a", "a-new"], true),
    image("b", "v1.0.0", &[("d", ">=v1.0.0")], &["b"], false),
    image("b", "v1.1.0", &[], &["b", "b-more"], false),
    image("c", "v1.0.0", &[("b", ">=v1.1.0")], &["c"], false),
    image("c", "v1.1.0", &[("d", "<v1.1.0")], &["c"], false),
    image("d", "v1.0.0", &[], &["d"], false),
    image("d", "v1.1.0", &[], &["d"], true),
    // What the tag that moves leads to.
    image("d", "edge-0", &[], &["d"], false),
    image("d", "edge-1", &[("b", "v1.1.0")], &["d", "d-more"], false),
    image("d", "edge-2", &[], &["d"], true),
];

/// The names of all packages.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) fn source(name: &str) -> String {
    format!("{REGISTRY}/{name}")
}

/// The name of the package object of a source: the one that the controllers choose for a dependency.
pub(crate) fn object_name(name: &str) -> String {
    format!("acme-{name}")
}

/// The tags of a source.
pub(crate) fn tags(name: &str) -> Vec<&'static str> {
    let of = IMAGES.iter().filter(|image| image.name == name);
    let mut tags: Vec<&str> = of.clone().map(|image| image.version).filter(|v| v.starts_with('v')).collect();
    if of.clone().any(|image| image.version.starts_with(EDGE)) {
        tags.push(EDGE);
    }
    tags
}

/// The image at a tag, where the tag that moves is at the n-th place.
pub(crate) fn at(name: &str, tag: &str, edge: u64) -> Option<Image> {
    let version = if tag == EDGE { format!("{EDGE}-{edge}") } else { tag.to_owned() };
    IMAGES.into_iter().find(|image| image.name == name && image.version == version)
}

impl Image {
    /// The documents of the package.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let mut objects: Vec<Value> = self.compositions.iter().map(|name| self.composition(name)).collect();
        if self.defines {
            objects.push(self.definition());
        }
        objects
    }

    fn composition(&self, name: &str) -> Value {
        let input = json!({"apiVersion": "sim.example.org/v1", "kind": "Input", "of": self.version});
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": name, "labels": {"version": self.version}},
            "spec": {
                "compositeTypeRef": {"apiVersion": "pack.example.org/v1", "kind": self.name.to_uppercase()},
                "mode": "Pipeline",
                "pipeline": [{"step": "parts", "functionRef": {"name": "parts"}, "input": input}],
            },
        })
    }

    fn definition(&self) -> Value {
        let plural = format!("{}s", self.name);
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("{plural}.pack.example.org"), "labels": {"version": self.version}},
            "spec": {
                "group": "pack.example.org", "scope": "Cluster",
                "names": {"kind": self.name.to_uppercase(), "plural": plural},
                "versions": [{
                    "name": "v1", "served": true, "referenceable": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    }}},
                }],
            },
        })
    }

    /// The content of `package.yaml`.
    pub(crate) fn stream(&self) -> String {
        let depends_on: Vec<Value> = self
            .dependencies
            .iter()
            .map(|(name, version)| json!({"configuration": source(name), "version": version}))
            .collect();
        let mut meta = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": self.name},
        });
        if !depends_on.is_empty() {
            meta["spec"] = json!({"dependsOn": depends_on});
        }
        // JSON is YAML.
        let documents: Vec<String> =
            std::iter::once(meta).chain(self.objects()).map(|document| document.to_string()).collect();
        documents.join("\n---\n")
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.stream().as_bytes())
    }
}
