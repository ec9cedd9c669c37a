//! Reading manifests from files, with positions, so that mistakes are reported with line and column.

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use transom_console::{Failure, SourceLocation};
use transom_object::{meta, yaml};

/// A text and the name of its file.
#[derive(Debug)]
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn location(&self, line: usize, column: usize) -> SourceLocation {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
        SourceLocation { file: self.name.clone(), line, column, text }
    }
}

/// An object and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) object: Value,
    document: yaml::Document,
    source: Arc<Source>,
}

impl Manifest {
    /// Where the value at a JSON pointer was written, or what is around it.
    pub(crate) fn location(&self, pointer: &str) -> SourceLocation {
        let mut pointer = pointer;
        loop {
            if let Some(found) = self.document.span_of(pointer).filter(|_| !pointer.is_empty()) {
                return self.source.location(found.line, found.column);
            }
            match pointer.rsplit_once('/') {
                Some((around, _)) => pointer = around,
                None => return self.source.location(self.document.line, 1),
            }
        }
    }

    /// A failure about the value at a JSON pointer.
    pub(crate) fn wrong(&self, pointer: &str, what: impl Into<String>) -> Failure {
        Failure::new(what).at(self.location(pointer))
    }

    /// `Kind/name`, or as much of it as there is.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", meta::kind(&self.object), meta::name(&self.object))
    }
}

/// The manifests in a file, in the YAML files directly in a directory, or on stdin (`-`). `what` names them in errors.
pub(crate) fn load(path: &Path, what: &str) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for source in sources(path, what)? {
        let documents = yaml::read_documents(&source.text).map_err(|e| {
            Failure::new(format!("{what}: this is not YAML: {}", e.message))
                .at(source.location(e.line, e.column))
        })?;
        for document in documents.into_iter().filter(|document| !document.value.is_null()) {
            let manifest = Manifest { object: document.value.clone(), document, source: Arc::clone(&source) };
            if !manifest.object.is_object() {
                return Err(
                    manifest.wrong("", format!("{what}: a manifest is an object with apiVersion and kind"))
                );
            }
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

fn sources(path: &Path, what: &str) -> Result<Vec<Arc<Source>>, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|e| Failure::new(format!("cannot read {what} from stdin: {e}")))?;
        return Ok(vec![Arc::new(Source { name: "stdin".to_owned(), text })]);
    }
    let files = if path.is_dir() { yaml_files(path, what)? } else { vec![path.to_owned()] };
    files.iter().map(|file| read(file, what)).collect()
}

fn read(file: &Path, what: &str) -> Result<Arc<Source>, Failure> {
    let cannot = |e: std::io::Error| {
        let failure = Failure::new(format!("cannot read {what} from {}: {e}", file.display()));
        match e.kind() {
            std::io::ErrorKind::NotFound => failure.remedy("check the path"),
            std::io::ErrorKind::InvalidData => failure.remedy("manifests are UTF-8 text"),
            _ => failure,
        }
    };
    let text = std::fs::read_to_string(file).map_err(cannot)?;
    Ok(Arc::new(Source { name: file.display().to_string(), text }))
}

/// The YAML files directly in a directory, by name.
fn yaml_files(dir: &Path, what: &str) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read {what} from {}: {e}", dir.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::new(format!("no {what} in {}", dir.display()))
            .remedy("the directory holds no file that ends in .yaml or .yml")),
        false => Ok(files),
    }
}

/// A value in JSON or YAML, for a context key.
pub(crate) fn value(text: &str, what: &str) -> Result<Value, Failure> {
    yaml::read(text).map_err(|e| {
        let source = Source { name: what.to_owned(), text: text.to_owned() };
        Failure::new(format!("{what} is neither JSON nor YAML: {}", e.message))
            .at(source.location(e.line, e.column))
    })
}
