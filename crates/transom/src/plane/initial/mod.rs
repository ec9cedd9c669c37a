//! Initial content: the packages that a plane installs at its start, as the original's initializer does.
//!
//! A package that is not there is created, named after its repository; one of the same source in another version is
//! changed to the version that was asked for; nothing is deleted. A start that finds everything as it should be writes
//! nothing and asks no registry.
//!
//! The kind of a package is that of the flag, of the installed object, or of the built-in function; only if none of these
//! says it, the package itself is looked at, which may take as long as its registry is out of reach: that happens while
//! the plane serves.

mod roots;

use super::args::PackageArgs;
use super::functions::builtin_kind;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use transom_console::Failure;
use transom_controllers::{Announce, Notice};
use transom_engine::Cluster;
use transom_object::{GroupVersionKind, meta};
use transom_oci::layout::LocalRegistry;
use transom_packages::{PackageKind, Reference, Registry, image_config, stream};
use transom_xapi::ImageConfig;
use transom_xapi::constants::{group, owner};

/// The longest wait between two attempts to look at a package.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A package to install.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// Without it, the package says it.
    kind: Option<PackageKind>,
    reference: Reference,
}

/// The packages that are installed at the start.
pub(crate) struct InitialContent(Vec<Wanted>);

impl InitialContent {
    /// What the flags ask for, in the order of the original: Providers, Configurations, Functions.
    pub(super) async fn of(args: &PackageArgs, given: &[Arc<LocalRegistry>]) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for (kind, references) in [
            (Some(PackageKind::Provider), &args.provider),
            (Some(PackageKind::Configuration), &args.configuration),
            (Some(PackageKind::Function), &args.function),
            (None, &args.package),
        ] {
            all.extend(references.iter().map(|reference| Wanted { kind, reference: reference.clone() }));
        }
        for local in given {
            all.extend(roots::roots(local).await?);
        }
        let mut once: Vec<Wanted> = Vec::new();
        for wanted in all {
            let source = wanted.reference.source();
            match once.iter().find(|other| other.reference.source() == source) {
                None => once.push(wanted),
                Some(other) if other.reference == wanted.reference => {}
                Some(other) => {
                    let (one, two) = (other.reference.identifier(), wanted.reference.identifier());
                    let problem = format!("{source} is to be installed at the start as {one} and as {two}");
                    return Err(Failure::new(problem).remedy("give one version of it"));
                }
            }
        }
        Ok(Self(once))
    }

    /// Installs what can be installed at once, and returns what cannot.
    pub(super) async fn install(
        self,
        client: kube::Client,
        registry: Arc<dyn Registry>,
        announce: Announce,
    ) -> Result<Option<LaterContent>, Failure> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let cluster = Cluster::new(client);
        let mut unknown = Vec::new();
        for wanted in self.0 {
            let installed = installed(&cluster).await.map_err(|e| refused(&wanted.reference, &e))?;
            let kind = wanted.kind.or_else(|| kind_here(&installed, &wanted.reference));
            match kind {
                Some(kind) => apply(&cluster, &installed, kind, &wanted.reference)
                    .await
                    .map_err(|e| refused(&wanted.reference, &e))?,
                None => unknown.push(wanted.reference),
            }
        }
        Ok((!unknown.is_empty()).then_some(LaterContent { cluster, registry, announce, unknown }))
    }
}

fn refused(reference: &Reference, error: &transom_engine::Error) -> Failure {
    Failure::new(format!("cannot install {reference} at the start: {}", error.chain()))
}

/// A package object that exists.
struct Existing {
    kind: PackageKind,
    name: String,
    package: String,
}

async fn installed(cluster: &Cluster) -> Result<Vec<Existing>, transom_engine::Error> {
    let mut all = Vec::new();
    for kind in PackageKind::ALL {
        let listed = cluster.list(&kind.gvk(), "", &std::collections::BTreeMap::new()).await?;
        all.extend(listed.iter().map(|object| Existing {
            kind,
            name: meta::name(object).to_owned(),
            package: package_of(object).to_owned(),
        }));
    }
    Ok(all)
}

fn package_of(object: &Value) -> &str {
    object.pointer("/spec/package").and_then(Value::as_str).unwrap_or_default()
}

fn source_of(package: &str) -> Option<String> {
    Reference::parse(package).ok().map(|reference| reference.source())
}

/// The kind of a package that needs no registry: that of the object of the same source, or of what comes with the binary.
fn kind_here(installed: &[Existing], reference: &Reference) -> Option<PackageKind> {
    let source = reference.source();
    let same = installed.iter().find(|existing| source_of(&existing.package).as_ref() == Some(&source));
    let builtin = || builtin_kind(reference);
    same.map(|existing| existing.kind).or_else(builtin)
}

/// Creates a package, or changes its version. One that is as it should be is not written.
async fn apply(
    cluster: &Cluster,
    installed: &[Existing],
    kind: PackageKind,
    reference: &Reference,
) -> Result<(), transom_engine::Error> {
    let (package, source) = (reference.to_string(), reference.source());
    let of_kind = || installed.iter().filter(|existing| existing.kind == kind);
    let same = of_kind().find(|existing| source_of(&existing.package).as_ref() == Some(&source));
    let existing = same.or_else(|| of_kind().find(|existing| existing.name == reference.package_name()));
    let name = existing.map_or_else(|| reference.package_name(), |existing| existing.name.clone());
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name},
    });
    match existing {
        Some(existing) if existing.package == package => {}
        Some(_) => {
            let patch = json!({"spec": {"package": package}});
            cluster.merge_patch(&object, &patch, owner::DEFAULT).await?;
        }
        None => {
            object["spec"] = json!({"package": package});
            cluster.create(&object, owner::DEFAULT).await?;
        }
    }
    Ok(())
}

/// Packages whose kind is not known before they were looked at.
pub(super) struct LaterContent {
    cluster: Cluster,
    registry: Arc<dyn Registry>,
    announce: Announce,
    unknown: Vec<Reference>,
}

impl LaterContent {
    /// Installs them one after another, however long their registries are out of reach. A package that cannot be
    /// installed is announced once for each cause, and does not keep the others waiting.
    pub(super) async fn run(self) {
        let mut left: Vec<(Reference, String)> =
            self.unknown.iter().map(|reference| (reference.clone(), String::new())).collect();
        let mut wait = Duration::from_secs(1);
        while !left.is_empty() {
            let mut failed = Vec::new();
            for (reference, before) in left {
                if let Err(problem) = self.try_one(&reference).await {
                    if problem != before {
                        self.report(&reference, &problem);
                    }
                    failed.push((reference, problem));
                }
            }
            left = failed;
            if !left.is_empty() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_MAX);
            }
        }
    }

    async fn try_one(&self, reference: &Reference) -> Result<(), String> {
        let kind = self.kind(reference).await?;
        let installed = installed(&self.cluster).await.map_err(|e| e.chain().to_string())?;
        let applied = apply(&self.cluster, &installed, kind, reference).await;
        applied.map_err(|e| e.chain().to_string())
    }

    /// The kind that a package says it is, at the place that ImageConfigs lead to.
    async fn kind(&self, reference: &Reference) -> Result<PackageKind, String> {
        let gvk = GroupVersionKind::new(group::PKG, "v1beta1", "ImageConfig");
        let listed = self.cluster.list(&gvk, "", &std::collections::BTreeMap::new()).await;
        let listed = listed.map_err(|e| e.chain().to_string())?;
        let configs: Vec<ImageConfig> =
            listed.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect();
        let place = image_config::plan(&configs, reference).map_err(|e| e.to_string())?.resolved;
        let explain = |e: transom_packages::RegistryError| {
            let remedy =
                "give it as --provider, --configuration or --function, and its kind need not be looked up";
            format!("{}; {remedy}", e.message)
        };
        let digest = self.registry.resolve(&place, &[]).await.map_err(explain)?;
        let fetched = self.registry.fetch(&place.at(digest), &[]).await.map_err(explain)?;
        let package = stream::parse(&fetched.content).map_err(|e| format!("{place}: {e}"))?;
        Ok(package.kind)
    }

    fn report(&self, reference: &Reference, problem: &str) {
        (self.announce)(&Notice {
            kind: "package".to_owned(),
            namespace: String::new(),
            name: reference.to_string(),
            problem: Some(problem.to_owned()),
        });
    }
}
