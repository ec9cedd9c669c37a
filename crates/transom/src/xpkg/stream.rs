//! The files of a package as one stream, so that what is wrong in the stream can be shown in the files.

use super::files::FileText;
use std::path::Path;
use transom_console::{Failure, SourceLocation};
use transom_object::{meta, yaml};
use transom_packages::lint::{Violation, lint};
use transom_packages::meta::Meta;
use transom_packages::stream::{self, Package, StreamError};

/// What ends a file in a stream of examples, as the original writes it.
const EXAMPLE_END: &[u8] = b"\n...\n\n---\n";

/// The files of a package as one stream.
pub(super) struct Stream {
    /// The folder, as the user named it.
    root: String,
    bytes: Vec<u8>,
    files: Vec<Part>,
}

/// A file in the stream.
struct Part {
    name: String,
    /// How many lines of the stream are before it.
    lines_before: usize,
    text: String,
}

impl Stream {
    pub(super) fn join(root: &Path, files: Vec<FileText>) -> Self {
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        let mut lines = 0;
        for file in files {
            let content = file.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&file.bytes);
            let lines_before = lines;
            bytes.extend_from_slice(content);
            if !content.ends_with(b"\n") {
                bytes.push(b'\n');
                lines += 1;
            }
            bytes.extend_from_slice(b"---\n");
            lines += 1 + content.iter().filter(|b| **b == b'\n').count();
            let text = String::from_utf8_lossy(content).into_owned();
            parts.push(Part { name: file.path.display().to_string(), lines_before, text });
        }
        Self { root: root.display().to_string(), bytes, files: parts }
    }

    /// The package, without anything that does not belong into it.
    pub(super) fn parse(&self) -> Result<Package, Failure> {
        let package = stream::parse(&self.bytes).map_err(|error| self.explain(&error))?;
        if package.meta.name.is_empty() {
            let failure = Failure::new("the package has no name").remedy("write metadata.name");
            return Err(match self.meta_place("metadata") {
                Some(place) => failure.at(place),
                None => failure,
            });
        }
        Failure::all(lint(&package).iter().map(|violation| self.violation(violation)))?;
        Ok(package)
    }

    /// Where a line of the stream stands in the files.
    fn place(&self, line: usize, column: usize) -> Option<SourceLocation> {
        let part = self.files.iter().rfind(|part| part.lines_before < line)?;
        let line = line - part.lines_before;
        let text = part.text.lines().nth(line - 1).unwrap_or_default().to_owned();
        Some(SourceLocation { file: part.name.clone(), line, column, text })
    }

    fn at(&self, failure: Failure, line: usize, column: usize) -> Failure {
        match self.place(line, column) {
            Some(place) => failure.at(place),
            None => failure,
        }
    }

    fn explain(&self, error: &StreamError) -> Failure {
        let (failure, line, column) = match error {
            StreamError::Malformed { line, column, problem, .. } => {
                (Failure::new(format!("this is not YAML: {problem}")), *line, *column)
            }
            StreamError::NotText { line } => {
                (Failure::new("this is not UTF-8").remedy("save the file as UTF-8"), *line, 1)
            }
            StreamError::NotAnObject { at, field } => (
                Failure::new(format!("the document has no {field}")).remedy(
                    "every document of a package is an object; --ignore leaves out files that are none",
                ),
                at.line,
                1,
            ),
            StreamError::UnknownKind { at, api_version, kind, remedy } => {
                let failure = Failure::new(format!("packages cannot hold {kind} of {api_version}"));
                let remedy = remedy.trim_start_matches("; ");
                let remedy = if remedy.is_empty() {
                    "move the file out of the package root, or leave it out by --ignore"
                } else {
                    remedy
                };
                (failure.remedy(remedy), at.line, 1)
            }
            StreamError::TwoMetas { first, second } => {
                let first = self.place(first.line, 1);
                let first = first.map(|p| format!("{}:{}", p.file, p.line)).unwrap_or_default();
                let failure =
                    Failure::new(format!("the package has a second meta object; {first} is the first"));
                (
                    failure.remedy("a package has one: remove the other, or leave it out by --ignore"),
                    second.line,
                    1,
                )
            }
            StreamError::Meta { at, error } => (Failure::new(error.to_string()), at.line, 1),
            StreamError::NoMeta => {
                return Failure::new(format!("no file in {} says what the package is", self.root)).remedy(
                    "add crossplane.yaml with a Configuration, Provider or Function of meta.pkg.crossplane.io/v1",
                );
            }
            other => return Failure::new(format!("{}: {other}", self.root)),
        };
        self.at(failure, line, column)
    }

    fn violation(&self, violation: &Violation) -> Failure {
        match violation.at {
            Some(at) => {
                let failure = Failure::new(violation.problem.clone())
                    .remedy("move the file out of the package root, or leave it out by --ignore");
                self.at(failure, at.line, 1)
            }
            None => {
                let failure = Failure::new(violation.problem.clone());
                let field = violation.problem.split(": ").next().unwrap_or_default();
                match self.meta_place(field) {
                    Some(place) => failure.at(place),
                    None => failure,
                }
            }
        }
    }

    /// Where a field of the meta object is, or the object.
    fn meta_place(&self, field: &str) -> Option<SourceLocation> {
        for part in &self.files {
            for document in yaml::read_documents(&part.text).unwrap_or_default() {
                if meta::gvk(&document.value).is_none() || Meta::read(&document.value).is_none() {
                    continue;
                }
                let (line, column) = match document.span_of_field(field) {
                    Some(span) => (span.line, span.column),
                    None => (document.line, 1),
                };
                return self.place(part.lines_before + line, column);
            }
        }
        None
    }
}

/// Examples as one stream, unchanged; each must be YAML.
pub(super) fn examples(files: Vec<FileText>) -> Result<Vec<u8>, Failure> {
    let mut stream = Vec::new();
    for file in files {
        let name = file.path.display().to_string();
        let text = std::str::from_utf8(&file.bytes)
            .map_err(|_| Failure::new(format!("{name} is not UTF-8")).remedy("save the file as UTF-8"))?;
        yaml::read_documents(text).map_err(|e| {
            let text = text.lines().nth(e.line.saturating_sub(1)).unwrap_or_default().to_owned();
            let place = SourceLocation { file: name.clone(), line: e.line, column: e.column, text };
            Failure::new(format!("this example is not YAML: {}", e.message)).at(place)
        })?;
        stream.extend_from_slice(&file.bytes);
        stream.extend_from_slice(EXAMPLE_END);
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const META: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n";

    fn stream(files: &[(&str, &str)]) -> Stream {
        let text =
            |(name, text): &(&str, &str)| FileText { path: PathBuf::from(name), bytes: (*text).into() };
        Stream::join(Path::new("root"), files.iter().map(text).collect())
    }

    fn error(files: &[(&str, &str)]) -> String {
        stream(files).parse().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_shown_in_the_files_of_the_user() {
        let composition =
            "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: x}";
        let secret = "# why\napiVersion: v1\nkind: Secret";
        let depends =
            format!("\u{feff}{META}spec:\n  dependsOn:\n  - function: a.b/c\n    version: nonsense");
        for (files, expected) in [
            (vec![("c.yaml", META), ("d.yaml", composition), ("s.yaml", secret)], "s.yaml:2:1"),
            (vec![("c.yaml", META), ("bad.yaml", "a: b\nc: [")], "bad.yaml:"),
            (vec![("c.yaml", META), ("e.yaml", META)], "e.yaml:1:1"),
            (vec![("c.yaml", META), ("e.yaml", META)], "c.yaml:1 is the first"),
            (vec![("a.yaml", composition), ("c.yaml", &depends)], "c.yaml:7:"),
            (vec![("c.yaml", &META.replace("{name: c}", "{}"))], "c.yaml:3:"),
            (
                vec![("f.yaml", &META.replace("Configuration", "Function")), ("x.yaml", composition)],
                "x.yaml:1:1",
            ),
            (vec![("x.yaml", composition)], "no file in root says"),
        ] {
            let error = error(&files);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        assert!(stream(&[("a.yaml", composition), ("c.yaml", META)]).parse().is_ok());
    }
}
