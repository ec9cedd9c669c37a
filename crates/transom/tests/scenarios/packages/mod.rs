//! Packages on the real binary, from registries in the process of the test: the behavioural vectors of packages, what users
//! of the original complained about, and hostile registries and packages. `complaints.txt` lists the vectors and complaints
//! with their tests.

mod complaints;
mod establishing;
mod hostile;
mod identity;
mod lock;
pub(crate) mod registries;
mod story;
mod vectors;

use crate::scenarios::user::*;
use serde_json::Value;
use transom_oci::testing::Server;
use transom_oci::testing::images::{CONFIG, image, package_layer};
use transom_packages::{Digest, names};

pub(super) const CONFIGURATION: &str = "pkg.crossplane.io/v1/Configuration";
pub(super) const CONFIGURATION_REVISION: &str = "pkg.crossplane.io/v1/ConfigurationRevision";
pub(super) const PROVIDER: &str = "pkg.crossplane.io/v1/Provider";
pub(super) const FUNCTION: &str = "pkg.crossplane.io/v1/Function";
pub(super) const LOCK: &str = "pkg.crossplane.io/v1beta1/Lock";

/// The variable of a plane that logs all that it and its libraries do.
pub(super) const LOG_EVERYTHING: [(&str, &str); 1] = [("RUST_LOG", "trace")];

/// A registry for packages of any repository.
pub(super) struct Registry(pub Server);

impl Registry {
    pub(super) async fn start() -> Self {
        Self(Server::start().await)
    }

    /// A repository or image with the registry's host.
    pub(super) fn at(&self, image: &str) -> String {
        format!("{}/{image}", self.0.host)
    }

    /// Pushes a package as `repository:tag`.
    pub(super) fn push(&self, at: &str, package: &str) -> Digest {
        let (repository, tag) = at.rsplit_once(':').expect("a tag");
        self.0.push(repository, tag, &image(CONFIG, &[package_layer(package)], true))
    }

    /// Pushes a Configuration with one Composition, which has its name, and these dependencies: `kind repository version`,
    /// where the repository may have a host.
    pub(super) fn push_simple(&self, at: &str, dependencies: &[&str]) -> Digest {
        let name = at.rsplit('/').next().and_then(|name| name.split(':').next()).expect("a name");
        let of_kind = composition(name, "Thing", &serde_json::json!({}), &[("nothing", Value::Null)]);
        self.push(at, &self.configuration(name, dependencies, &[of_kind]))
    }

    /// A Configuration: what it says of itself, and its documents.
    pub(super) fn configuration(&self, name: &str, dependencies: &[&str], documents: &[String]) -> String {
        let mut all = format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: {name}\n"
        );
        if !dependencies.is_empty() {
            all.push_str("spec:\n  dependsOn:\n");
        }
        for dependency in dependencies {
            let mut words = dependency.splitn(3, ' ');
            let mut word = || words.next().expect("kind, repository and version");
            let (kind, repository, version) = (word(), word(), word());
            let has_host = repository.split('/').next().is_some_and(|host| host.contains('.'));
            let source = if has_host { repository.to_owned() } else { self.at(repository) };
            all.push_str(&format!("  - {kind}: {source}\n    version: '{version}'\n"));
        }
        for document in documents {
            all.push_str(&format!("---\n{}\n", document.trim()));
        }
        all
    }

    /// What the registry was asked for, and forgets.
    pub(super) fn take_requests(&self) -> Vec<String> {
        let seen = std::mem::take(&mut self.0.state.lock().unwrap().seen);
        seen.into_iter().map(|seen| seen.request).collect()
    }
}

/// A Configuration that installs a package, with more fields of its spec.
pub(super) fn install_with(name: &str, package: &str, more: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: {name}}}\n\
         spec: {{package: '{package}'{more}}}\n"
    )
}

pub(super) fn install(name: &str, package: &str) -> String {
    install_with(name, package, "")
}

pub(super) fn image_config(name: &str, prefix: &str, spec: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {{name: {name}}}\nspec:\n  \
         matchImages: [{{type: Prefix, prefix: '{prefix}'}}]\n  {spec}\n"
    )
}

pub(super) fn revision_of(package: &str, digest: &Digest) -> String {
    names::revision_name(package, digest)
}

pub(super) fn is_healthy(package: &Value) -> bool {
    status_of(package, "Healthy") == "True" && status_of(package, "Installed") == "True"
}

/// Whether nothing of a package is installed, because its image cannot be used.
pub(super) fn is_unpacking(package: &Value) -> bool {
    reason_of(package, "Installed") == "UnpackingPackage" && status_of(package, "Healthy") == "False"
}

impl User {
    /// A user of a plane without functions, and with the kinds of packages.
    pub(super) async fn of_packages(flags: &[&str]) -> Self {
        let user = Self::without_functions(flags, &[]).await;
        user.until_served().await;
        user
    }

    async fn until_served(&self) {
        self.until(CRD, "configurations.pkg.crossplane.io", |crd| status_of(crd, "Established") == "True")
            .await;
    }

    pub(super) async fn until_healthy(&self, name: &str) -> Value {
        self.until(CONFIGURATION, name, is_healthy).await
    }

    /// Waits until a Configuration is installed and healthy at an image.
    pub(super) async fn until_installed(&self, name: &str, digest: &Digest) -> Value {
        let revision = revision_of(name, digest);
        let installed = |p: &Value| p["status"]["currentRevision"] == *revision && is_healthy(p);
        self.until(CONFIGURATION, name, installed).await
    }

    /// Waits for words in the message of a Configuration's condition `Healthy`. Returns the message.
    pub(super) async fn until_unhealthy(&self, name: &str, words: &str) -> String {
        let named =
            |p: &Value| status_of(p, "Healthy") == "False" && message_of(p, "Healthy").contains(words);
        message_of(&self.until(CONFIGURATION, name, named).await, "Healthy").to_owned()
    }

    /// Sets another image.
    pub(super) async fn set_package(&self, name: &str, package: &str) {
        self.patch(CONFIGURATION, name, serde_json::json!({"spec": {"package": package}})).await;
    }

    /// The names of the objects of a kind.
    pub(super) async fn names(&self, kind: &str) -> Vec<String> {
        self.list(kind).await.iter().map(|object| transom_object::meta::name(object).to_owned()).collect()
    }

    /// A Secret in the namespace of the controllers.
    pub(super) async fn secret(&self, name: &str, key: &str, value: &str) {
        self.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: crossplane-system}\n").await;
        let secret = serde_json::json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "crossplane-system"},
            "stringData": {key: value},
        });
        self.apply(&secret.to_string()).await;
    }
}
