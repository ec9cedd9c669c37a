//! The life of packages on the embedded server, from a registry in memory: they are installed, upgraded and rolled back, depend
//! on each other, are verified, fail and recover.

mod crash;
mod dependencies;
mod functions;
mod install;
mod lifecycle;
mod on_cluster;
mod pulls;
mod registry;
mod scale;
mod sources;
mod verification;
mod waiting;

pub(super) use on_cluster::OnCluster;
pub(super) use registry::MemoryRegistry;

use crate::life::fixture::*;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_controllers::PullSecretError;
use transom_packages::{Credentials, Digest, names};

pub(super) const CONFIGURATION: &str = "pkg.crossplane.io/v1/Configuration";
pub(super) const CONFIGURATION_REVISION: &str = "pkg.crossplane.io/v1/ConfigurationRevision";
pub(super) const FUNCTION: &str = "pkg.crossplane.io/v1/Function";
pub(super) const FUNCTION_REVISION: &str = "pkg.crossplane.io/v1/FunctionRevision";
pub(super) const PROVIDER: &str = "pkg.crossplane.io/v1/Provider";
pub(super) const PROVIDER_REVISION: &str = "pkg.crossplane.io/v1/ProviderRevision";
pub(super) const LOCK: &str = "pkg.crossplane.io/v1beta1/Lock";

/// A pull secret of tests: the registry's host and the password.
pub(super) fn read_pull_secret(
    data: &BTreeMap<String, Vec<u8>>,
) -> Result<Vec<Credentials>, PullSecretError> {
    let password = data.get("password").ok_or_else(|| PullSecretError("it has no key password".into()))?;
    let password = String::from_utf8_lossy(password).into_owned();
    Ok(vec![Credentials {
        registry: "r.io".to_owned(),
        username: "u".to_owned(),
        password,
        identity_token: None,
    }])
}

/// A Configuration: a document that says what it is, with these lines in its spec, and others.
pub(super) fn configuration(name: &str, spec: &str, documents: &[String]) -> String {
    let mut all =
        format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: {name}}}\n");
    if !spec.is_empty() {
        all.push_str(&format!("spec:\n{spec}"));
    }
    for document in documents {
        all.push_str("---\n");
        all.push_str(document.trim_start());
    }
    all
}

/// A Function: a document that says what it is, with these lines in its spec.
pub(super) fn function_package(name: &str, spec: &str) -> String {
    let meta = format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}}}\n");
    if spec.is_empty() { meta } else { format!("{meta}spec:\n{spec}") }
}

pub(super) fn install_function(name: &str, package: &str) -> String {
    install(name, package).replace("kind: Configuration", "kind: Function")
}

/// A dependency in a Configuration's spec.
pub(super) fn depends_on(dependencies: &[(&str, &str)]) -> String {
    let mut spec = String::from("  dependsOn:\n");
    for (package, version) in dependencies {
        spec.push_str(&format!("  - {{configuration: {package}, version: '{version}'}}\n"));
    }
    spec
}

pub(super) fn install(name: &str, package: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: {name}}}\nspec: {{package: '{package}'}}\n"
    )
}

pub(super) fn revision_of(package: &str, digest: &Digest) -> String {
    names::revision_name(package, digest)
}

pub(super) fn is_healthy(package: &Value) -> bool {
    status_of(package, "Healthy") == "True" && status_of(package, "Installed") == "True"
}

/// Waits until a Configuration is installed and healthy at an image.
pub(super) async fn until_installed(plane: &Plane, name: &str, digest: &Digest) -> Value {
    let revision = revision_of(name, digest);
    plane.until(CONFIGURATION, name, |p| p["status"]["currentRevision"] == *revision && is_healthy(p)).await
}
