//! `transom xpkg`: packages are built, pushed to a registry in this process, looked at, bundled and installed.

mod batch;
mod build;
mod bundle;
mod crds;
mod environment;
mod former;
mod guide;
mod init;
mod initial;
mod install;
mod plan;
mod progress;
mod registry;
mod tables;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use transom_testkit::process::transom;

pub(crate) const META: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: platform\n";
pub(crate) const COMPOSITION: &str = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: apps\n\
    spec:\n  compositeTypeRef: {apiVersion: example.org/v1, kind: App}\n  mode: Pipeline\n  pipeline: []\n";

/// A folder to run commands in. No configuration of the user is used.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.0.path().join(name)).expect("a file")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(&[&["xpkg"], arguments].concat()).output().expect("the binary runs")
    }

    /// A command of the binary, to be run here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = transom(arguments);
        for variable in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "KUBECONFIG",
            "DOCKER_HOST",
        ] {
            command.env_remove(variable);
        }
        command.current_dir(self.0.path()).env("DOCKER_CONFIG", self.0.path());
        command.env("XDG_CACHE_HOME", self.0.path().join("caches")).env("HOME", self.0.path());
        command
    }

    /// What a command that succeeds prints, without the end of the line.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    /// What a command says that fails in this way. It prints nothing else.
    pub(crate) fn error(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        stderr
    }

    /// Builds a package of some files.
    pub(crate) fn build(&self, package: &str, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            self.write(&format!("{package}-files/{name}"), text);
        }
        let (root, file) = (format!("{package}-files"), format!("{package}.xpkg"));
        self.ok(&["build", "-f", &root, "-o", &file])
    }
}

/// The meta object of a Configuration with dependencies on other ones: sources and constraints.
pub(crate) fn meta(name: &str, dependencies: &[(&str, &str)]) -> String {
    let mut text = META.replace("name: platform", &format!("name: {name}"));
    if !dependencies.is_empty() {
        text.push_str("spec:\n  dependsOn:\n");
    }
    for (package, version) in dependencies {
        text.push_str(&format!("  - configuration: {package}\n    version: '{version}'\n"));
    }
    text
}

/// The definition of a kind, with these fields of its spec.
pub(crate) fn definition(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("{field}: {{type: string}}")).collect();
    format!(
        "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\n\
         metadata: {{name: apps.example.org}}\nspec:\n  group: example.org\n  scope: Namespaced\n  \
         names: {{kind: App, plural: apps}}\n  versions:\n  - name: v1\n    served: true\n    \
         referenceable: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec: {{type: object, properties: {{{}}}}}\n",
        fields.join(", ")
    )
}

/// The content of a file that `xpkg extract` wrote.
pub(crate) fn gunzip(bytes: &[u8]) -> String {
    use std::io::Read;
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}
