//! Generated graphs of packages: what is in the Lock, which objects there are, and which tags the registry has.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_packages::PackageKind;
use transom_packages::lock::{LockDependency, LockPackage};
use transom_packages::solver::{InstalledPackage, Mode};
use transom_testkit::rng::Rng;

/// Tags from which each repository has some. The last ones are not complete versions.
const TAGS: [&str; 12] = [
    "v0.1.0",
    "v1.0.0",
    "v1.1.0",
    "v1.2.0-rc.1",
    "v1.2.0",
    "1.5.0",
    "v2.0.0",
    "v2.1.0",
    "v3.0.0",
    "latest",
    "v1",
    "v2.1",
];
/// How many of them are complete versions.
const COMPLETE: usize = 9;
const CONSTRAINTS: [&str; 18] = [
    "*",
    ">=v1.0.0",
    ">=v1.0.0",
    "<v2.0.0",
    "v1.0.0",
    "v1.1.0",
    "^1.1.0",
    "~1.0",
    ">=v2.0.0",
    ">v1.2.0",
    "<=v1.1.0",
    ">=v1.0.0-0",
    "v2.0.0",
    ">=v1.0.0, <v2.1.0",
    "v1.0.0 || v3.0.0",
    ">=v9.0.0",
    "2",
    "not a version",
];
/// How many of them can be satisfied.
const SATISFIABLE: usize = 15;

/// A graph, and what is asked about it.
pub(crate) struct Graph {
    pub mode: Mode,
    pub lock: Vec<LockPackage>,
    pub objects: Vec<InstalledPackage>,
    pub tags: BTreeMap<String, Vec<String>>,
}

impl Graph {
    pub(crate) fn question(&self) -> Value {
        let objects: Vec<Value> = self.objects.iter().map(object).collect();
        json!({"mode": mode_name(self.mode), "lock": self.lock, "objects": objects, "tags": self.tags})
    }

    pub(crate) fn tags_of(&self, source: &str) -> &[String] {
        self.tags.get(source).map_or(&[], Vec::as_slice)
    }
}

fn object(of: &InstalledPackage) -> Value {
    let resolved = of.resolved.clone().unwrap_or_default();
    json!({"apiVersion": of.api_version, "kind": of.kind, "name": of.name, "package": of.package, "resolved": resolved})
}

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default",
        Mode::Upgrade => "upgrade",
        Mode::Downgrade => "downgrade",
    }
}

pub(crate) fn any_mode(rng: &mut Rng) -> Mode {
    *rng.pick(&[Mode::Default, Mode::Upgrade, Mode::Downgrade])
}

pub(crate) fn source(number: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 26).unwrap_or_default());
    format!("r.io/acme/package-{letter}")
}

/// The kind of package that a source has.
pub(crate) fn kind_of(number: usize) -> PackageKind {
    PackageKind::ALL[number % PackageKind::ALL.len()]
}

pub(crate) fn tags(rng: &mut Rng) -> Vec<String> {
    TAGS.iter().filter(|_| rng.permille(600)).map(|tag| (*tag).to_owned()).collect()
}

pub(crate) fn complete_version(rng: &mut Rng) -> String {
    TAGS[rng.index(COMPLETE)].to_owned()
}

fn digest(rng: &mut Rng) -> String {
    format!("sha256:{}", rng.pick(&["1", "2"]).repeat(64))
}

/// What a dependency asks for; digests and texts that are not constraints are rare.
pub(crate) fn constraint(rng: &mut Rng) -> String {
    if rng.permille(60) {
        return digest(rng);
    }
    let known = if rng.permille(60) { CONSTRAINTS.len() } else { SATISFIABLE };
    CONSTRAINTS[rng.index(known)].to_owned()
}

pub(crate) fn dependency(rng: &mut Rng, on: usize, constraints: String) -> LockDependency {
    let kind = kind_of(on);
    let mut dependency = LockDependency { package: source(on), constraints, ..LockDependency::default() };
    if rng.permille(500) {
        dependency.api_version = Some(kind.api_version().to_owned());
        dependency.kind = Some(kind.kind().to_owned());
    } else {
        dependency.package_type = Some(kind);
    }
    dependency
}

pub(crate) fn entry(
    number: usize,
    name: String,
    version: String,
    dependencies: Vec<LockDependency>,
) -> LockPackage {
    let kind = kind_of(number);
    LockPackage {
        name,
        api_version: Some(kind.api_version().to_owned()),
        kind: Some(kind.kind().to_owned()),
        package_type: None,
        source: source(number),
        version,
        dependencies,
    }
}

pub(crate) fn installed(number: usize, name: String, version: &str) -> InstalledPackage {
    let kind = kind_of(number);
    let separator = if version.starts_with("sha256:") { '@' } else { ':' };
    InstalledPackage {
        api_version: kind.api_version().to_owned(),
        kind: kind.kind().to_owned(),
        name,
        package: format!("{}{separator}{version}", source(number)),
        resolved: None,
    }
}

/// The name that the original gives to a package that is a dependency.
pub(crate) fn name(number: usize) -> String {
    source(number).trim_start_matches("r.io/").replace('/', "-")
}

/// Entries whose dependencies lead to later sources, so that there is no cycle, with an object each. Few graphs have
/// cycles, packages that are there twice, and objects that are not in the Lock.
pub(crate) fn any(rng: &mut Rng) -> Graph {
    let sources = 2 + rng.index(8);
    let entries = 1 + rng.index(sources);
    let (cyclic, twice) = (rng.permille(60), rng.permille(40));
    let mut graph =
        Graph { mode: any_mode(rng), lock: Vec::new(), objects: Vec::new(), tags: BTreeMap::new() };
    for number in 0..sources {
        graph.tags.insert(source(number), tags(rng));
    }
    for number in 0..entries {
        add(rng, &mut graph, number, sources, cyclic);
    }
    if twice {
        let again = rng.index(entries);
        let version = complete_version(rng);
        graph.lock.push(entry(again, format!("again-{again}"), version, Vec::new()));
    }
    for number in entries..sources {
        if rng.permille(80) {
            let named = if rng.permille(500) { name(number) } else { format!("other-{number}") };
            let version = complete_version(rng);
            graph.objects.push(installed(number, named, &version));
        }
    }
    graph
}

fn add(rng: &mut Rng, graph: &mut Graph, number: usize, sources: usize, cyclic: bool) {
    let version = if rng.permille(40) { digest(rng) } else { complete_version(rng) };
    let mut dependencies = Vec::new();
    for _ in 0..rng.index(4) {
        let first = if cyclic { 0 } else { number + 1 };
        let on = first + rng.index(sources.saturating_sub(first));
        if on < sources && dependencies.iter().all(|d: &LockDependency| d.package != source(on)) {
            let constraints = constraint(rng);
            dependencies.push(dependency(rng, on, constraints));
        }
    }
    let mut object = installed(number, name(number), &version);
    if rng.permille(30) {
        object.resolved = Some(format!("mirror.io/{}:{}", name(number), complete_version(rng)));
    }
    graph.objects.push(object);
    graph.lock.push(entry(number, format!("{}-1", name(number)), version, dependencies));
}
