//! Files to render, and the command that renders them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;
use transom_testkit::process::transom;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/render")
}

/// A directory with files to render: those of the example, and what a test writes.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for file in std::fs::read_dir(examples()).expect("the example").flatten() {
            std::fs::copy(file.path(), dir.path().join(file.file_name())).expect("a copy");
        }
        Self(dir)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
        self
    }

    /// Copies a file with one text replaced by another.
    pub(super) fn change(&self, from: &str, to: &str, old: &str, new: &str) -> &Self {
        let text = std::fs::read_to_string(self.0.path().join(from)).expect("a file");
        assert!(text.contains(old), "{from} has no {old:?}");
        self.write(to, &text.replace(old, new))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(&[], arguments)
    }

    /// Runs with variables of the environment.
    pub(super) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = transom(&[]);
        command.envs(variables.iter().copied()).args(arguments).current_dir(self.0.path());
        command.output().expect("transom runs")
    }

    /// The documents that a run prints; it must succeed.
    pub(super) fn render(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(&[&["render"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        documents(&output.stdout)
    }

    /// What a run that fails says, and its exit code. It prints no documents.
    pub(super) fn fail(&self, arguments: &[&str]) -> (String, i32) {
        let output = self.run(&[&["render"], arguments].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "stdout carries documents only");
        let said = String::from_utf8(output.stderr).expect("text");
        (said, output.status.code().expect("an exit code"))
    }
}

pub(super) fn documents(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("text");
    let documents = transom_object::yaml::read_documents(text).expect("YAML");
    documents.into_iter().map(|document| document.value).collect()
}
