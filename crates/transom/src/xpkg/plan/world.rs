//! What is installed in a control plane.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_console::Failure;
use transom_console::control_plane::{explain, within};
use transom_engine::Cluster;
use transom_object::{GroupVersionKind, meta};
use transom_packages::PackageKind;
use transom_packages::lock::LockPackage;
use transom_packages::solver::InstalledPackage;
use transom_xapi::constants::{LOCK_NAME, group, kind, label};
use transom_xapi::{ImageConfig, Lock};

/// What is installed in a control plane. An empty one has none that could be asked.
pub(super) struct World {
    pub(super) cluster: Option<Cluster>,
    pub(super) installed: Vec<InstalledPackage>,
    pub(super) lock: Vec<LockPackage>,
    pub(super) image_configs: Vec<ImageConfig>,
    /// The package objects, and their revisions.
    objects: Vec<Value>,
    revisions: Vec<Value>,
}

impl World {
    pub(super) fn empty() -> Self {
        Self {
            cluster: None,
            installed: Vec::new(),
            lock: Vec::new(),
            image_configs: Vec::new(),
            objects: Vec::new(),
            revisions: Vec::new(),
        }
    }

    pub(super) async fn read(cluster: Cluster) -> Result<Self, Failure> {
        let list = async |gvk: &GroupVersionKind| {
            let subject = gvk.kind.clone();
            let listed = within(&subject, cluster.list(gvk, "", &BTreeMap::new())).await?;
            listed.map_err(|e| explain(&subject, &e))
        };
        let (mut objects, mut revisions) = (Vec::new(), Vec::new());
        for of in PackageKind::ALL {
            objects.extend(list(&of.gvk()).await?);
            revisions.extend(list(&of.revision_gvk()).await?);
        }
        let configs = list(&GroupVersionKind::new(group::PKG, "v1beta1", "ImageConfig")).await?;
        let locks = list(&GroupVersionKind::new(group::PKG, "v1beta1", kind::LOCK)).await?;
        let lock = locks.into_iter().find(|lock| meta::name(lock) == LOCK_NAME);
        let lock: Option<Lock> = lock.and_then(|lock| serde_json::from_value(lock).ok());
        let image_configs = configs.into_iter().filter_map(|config| serde_json::from_value(config).ok());
        Ok(Self {
            installed: objects.iter().map(installed).collect(),
            lock: lock.unwrap_or_default().packages,
            image_configs: image_configs.collect(),
            cluster: Some(cluster),
            objects,
            revisions,
        })
    }

    /// A package object.
    pub(super) fn object(&self, kind: PackageKind, name: &str) -> Option<&Value> {
        self.objects.iter().find(|object| meta::kind(object) == kind.kind() && meta::name(object) == name)
    }

    /// The revisions of a package.
    pub(super) fn revisions<'w>(
        &'w self,
        of: PackageKind,
        package: &'w str,
    ) -> impl Iterator<Item = &'w Value> {
        self.revisions.iter().filter(move |revision| {
            meta::kind(revision) == of.revision_kind()
                && meta::label(revision, label::PACKAGE) == Some(package)
        })
    }
}

fn installed(object: &Value) -> InstalledPackage {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
    InstalledPackage {
        api_version: meta::api_version(object).to_owned(),
        kind: meta::kind(object).to_owned(),
        name: meta::name(object).to_owned(),
        package: text("/spec/package").unwrap_or_default(),
        resolved: text("/status/resolvedPackage").filter(|resolved| !resolved.is_empty()),
    }
}
