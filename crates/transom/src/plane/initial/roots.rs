//! What is installed from a folder or file: the packages that a bundle was made for; of an OCI layout or a folder, the
//! packages that no other package in it depends on, each in its highest version. Dependencies follow by themselves.
//!
//! Files often have no reference. A package in such a file has the source by which another package depends on it, or else
//! one below `packages.local`; its version is in the name of its file (`NAME-VERSION.xpkg`), or it is known by its digest.

use super::Wanted;
use std::collections::{BTreeMap, BTreeSet};
use transom_console::Failure;
use transom_oci::layout::{LocalPackage, LocalRegistry};
use transom_packages::constraint::versions;
use transom_packages::meta::Meta;
use transom_packages::{PackageKind, Reference, Registry, stream};

/// The registry of packages that are known by their files only.
const NO_REGISTRY: &str = "packages.local";

/// A package that was read.
struct Candidate {
    local: LocalPackage,
    kind: PackageKind,
    meta: Meta,
}

/// What is to be installed from a folder or file.
pub(super) async fn roots(local: &LocalRegistry) -> Result<Vec<Wanted>, Failure> {
    let all = local.packages();
    let marked: Vec<LocalPackage> = all.iter().filter(|package| package.root).cloned().collect();
    let is_bundle = !marked.is_empty();
    let mut candidates = Vec::new();
    for package in if is_bundle { marked } else { all } {
        candidates.push(read(local, package).await?);
    }
    let needed: BTreeSet<&str> = match is_bundle {
        true => BTreeSet::new(),
        false => candidates.iter().flat_map(dependencies).collect(),
    };
    let found = independent(&candidates, &needed)?;
    if found.is_empty() {
        let path = local.path().display();
        return Err(Failure::new(format!("--packages: {path} has no packages with a name"))
            .remedy("name what is to be installed with --package, and give the path by --package-source"));
    }
    let wanted = |(one, reference): (&Candidate, Reference)| Wanted { kind: Some(one.kind), reference };
    Ok(found.into_iter().map(wanted).collect())
}

async fn read(local: &LocalRegistry, package: LocalPackage) -> Result<Candidate, Failure> {
    let any = Reference {
        registry: NO_REGISTRY.to_owned(),
        repository: package.stem.clone().unwrap_or_default(),
        tag: None,
        digest: None,
    };
    let named = package.reference.clone().unwrap_or(any);
    let path = local.path().display();
    let failed = |problem: String| Failure::new(format!("--packages: {path}: {problem}"));
    let fetched = local.fetch(&named.at(package.digest.clone()), &[]).await;
    let fetched = fetched.map_err(|e| failed(e.message))?;
    let content = stream::parse(&fetched.content).map_err(|e| failed(format!("{named}: {e}")))?;
    Ok(Candidate { local: package, kind: content.kind, meta: content.meta })
}

fn dependencies(one: &Candidate) -> impl Iterator<Item = &str> {
    one.meta.dependencies.iter().map(|dependency| dependency.package.as_str())
}

/// The packages whose sources no other one needs, each in its highest version.
fn independent<'c>(
    candidates: &'c [Candidate],
    needed: &BTreeSet<&str>,
) -> Result<Vec<(&'c Candidate, Reference)>, Failure> {
    let mut by_source: BTreeMap<String, Vec<(&Candidate, Reference)>> = BTreeMap::new();
    for one in candidates {
        let reference = reference(one, needed)?;
        by_source.entry(reference.source()).or_default().push((one, reference));
    }
    let is_needed = |source: &String| needed.contains(source.as_str());
    // Packages that all depend on each other are all installed; the Lock reports the cycle.
    let all_needed = by_source.keys().all(is_needed);
    let chosen = by_source.into_iter().filter(|(source, _)| all_needed || !is_needed(source));
    Ok(chosen.filter_map(|(_, of_source)| highest(of_source)).collect())
}

fn highest(of_source: Vec<(&Candidate, Reference)>) -> Option<(&Candidate, Reference)> {
    let tags: Vec<&str> = of_source.iter().filter_map(|(_, reference)| reference.tag.as_deref()).collect();
    let highest = versions(&tags).last().map(|version| version.original.clone());
    let is_highest = |reference: &Reference| highest.is_none() || reference.tag == highest;
    of_source.into_iter().rev().find(|(_, reference)| is_highest(reference))
}

/// The reference of a package: its own, or one that is made of the name of its file.
fn reference(one: &Candidate, needed: &BTreeSet<&str>) -> Result<Reference, Failure> {
    if let Some(own) = &one.local.reference {
        return Ok(own.clone());
    }
    let sources = needed.iter().filter_map(|source| Reference::parse_source(source).ok());
    let own = format!("{NO_REGISTRY}/{}", one.meta.name);
    let own = Reference::parse_source(&own).map_err(|e| Failure::new(format!("--packages: {e}")))?;
    for source in sources.chain([own.clone()]) {
        let version = one.local.tag_for(&source).map(|tag| versions(&[tag]));
        if let Some(version) = version.as_deref().and_then(<[_]>::first) {
            let tag = Some(version.original.clone());
            return Ok(Reference { tag, ..source });
        }
    }
    Ok(own.at(one.local.digest.clone()))
}
