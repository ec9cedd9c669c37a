//! `package.yaml`: the stream of documents that a package consists of.
//!
//! One document is the meta object, all others are objects of known kinds. The stream is split at its `---` lines, and
//! one document is read at a time, so that the limits hold before memory is spent.
//!
//! Unlike the original, [`parse`] does not check the types of an object's fields: the API server does, in the dry run
//! that precedes establishing.

mod render;

pub use render::render;

use crate::content::{is_known, known_versions};
use crate::meta::{Meta, MetaError};
use serde_json::Value;
use transom_object::yaml::{self, Document};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::PackageKind;
use transom_xapi::constants::group;

/// How much a stream may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its size.
    pub bytes: usize,
    /// How many documents that are not empty.
    pub documents: usize,
    /// The size of one document. An API server stores no object that is nearly as large.
    pub document_bytes: usize,
    /// What all documents take in memory, about: their text, and a fixed weight for each value in them. A small text can
    /// have many values, and aliases repeat them.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 200 << 20, documents: 10_000, document_bytes: 4 << 20, memory_bytes: 512 << 20 }
    }
}

/// What a value takes in memory, about.
const VALUE_BYTES: usize = 64;

/// A package.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// Its kind.
    pub kind: PackageKind,
    /// What it says about itself.
    pub meta: Meta,
    /// The same as it was written.
    pub meta_object: Value,
    /// All other objects, in their order.
    pub objects: Vec<PackageObject>,
}

impl Package {
    /// A package of which nothing is known but its kind.
    pub fn empty(kind: PackageKind) -> Self {
        Self { kind, meta: Meta::empty(kind), meta_object: Value::Null, objects: Vec::new() }
    }
}

/// An object of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageObject {
    /// Its kind.
    pub gvk: GroupVersionKind,
    /// The object.
    pub value: Value,
    /// Where it stands in the stream.
    pub at: DocumentPosition,
}

/// Where a document stands in a stream. Both count from one; empty documents do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentPosition {
    /// The number of the document.
    pub document: usize,
    /// The line of the stream on which its content begins.
    pub line: usize,
}

impl std::fmt::Display for DocumentPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "document {} (line {})", self.document, self.line)
    }
}

/// Why bytes are not a package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Too many bytes.
    #[error("package.yaml has {bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many documents.
    #[error("package.yaml has more than {limit} documents")]
    TooManyDocuments {
        /// The limit.
        limit: usize,
    },
    /// A document with too many bytes.
    #[error("package.yaml, {at}: it has {bytes} bytes; at most {limit} are allowed for one object")]
    DocumentTooLarge {
        /// The document.
        at: DocumentPosition,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many values.
    #[error(
        "package.yaml, {at}: up to here, the documents take more than {limit} bytes of memory, which is refused"
    )]
    TooManyValues {
        /// The document.
        at: DocumentPosition,
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("package.yaml is not text: line {line} is not UTF-8")]
    NotText {
        /// The line.
        line: usize,
    },
    /// A document that is not YAML.
    #[error("package.yaml, {at}: line {line}, column {column}: {problem}")]
    Malformed {
        /// The document.
        at: DocumentPosition,
        /// The line of the stream.
        line: usize,
        /// The column.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A document without `apiVersion` or `kind`.
    #[error("package.yaml, {at}: it has no {field}; every document of a package is an object")]
    NotAnObject {
        /// The document.
        at: DocumentPosition,
        /// What is missing.
        field: &'static str,
    },
    /// An object of a kind that packages do not hold.
    #[error("package.yaml, {at}: packages cannot hold {kind} of {api_version}{remedy}")]
    UnknownKind {
        /// The document.
        at: DocumentPosition,
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
        /// What could be meant.
        remedy: String,
    },
    /// No meta object.
    #[error(
        "package.yaml: not exactly one package meta type: there is none; add a Configuration, Provider or Function of \
         meta.pkg.crossplane.io/v1"
    )]
    NoMeta,
    /// Two meta objects.
    #[error("package.yaml: not exactly one package meta type: {first} and {second} are; a package has one")]
    TwoMetas {
        /// The first.
        first: DocumentPosition,
        /// The second.
        second: DocumentPosition,
    },
    /// A meta object with wrong fields.
    #[error("package.yaml, {at}: {error}")]
    Meta {
        /// The document, or the line in it where the field is.
        at: DocumentPosition,
        /// What is wrong.
        error: MetaError,
    },
    /// A package of another kind than the object that installs it.
    #[error(
        "package meta type is not {}: the package is a {}; install it by a {} object", expected.kind(), found.kind(),
        found.kind()
    )]
    WrongKind {
        /// What was asked for.
        expected: PackageKind,
        /// What it is.
        found: PackageKind,
    },
}

/// Reads a package within the default [`Limits`].
pub fn parse(bytes: &[u8]) -> Result<Package, StreamError> {
    parse_within(bytes, Limits::default())
}

/// Reads a package.
pub fn parse_within(bytes: &[u8], limits: Limits) -> Result<Package, StreamError> {
    if bytes.len() > limits.bytes {
        return Err(StreamError::TooLarge { bytes: bytes.len(), limit: limits.bytes });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        StreamError::NotText { line: 1 + before.iter().filter(|&&b| b == b'\n').count() }
    })?;
    let mut content = Content::default();
    let mut memory = 0_usize;
    for (lines_before, chunk) in chunks(text) {
        let at = DocumentPosition { document: content.documents + 1, line: lines_before + 1 };
        if chunk.len() > limits.document_bytes {
            let (bytes, limit) = (chunk.len(), limits.document_bytes);
            return Err(StreamError::DocumentTooLarge { at, bytes, limit });
        }
        for document in read_chunk(chunk, at, lines_before)? {
            if content.documents == limits.documents {
                return Err(StreamError::TooManyDocuments { limit: limits.documents });
            }
            memory = memory.saturating_add(memory_bytes(&document.value));
            if memory > limits.memory_bytes {
                return Err(StreamError::TooManyValues { at, limit: limits.memory_bytes });
            }
            content.documents += 1;
            content.add(document, lines_before)?;
        }
    }
    let (_, meta, meta_object) = content.meta.ok_or(StreamError::NoMeta)?;
    Ok(Package { kind: meta.kind, meta, meta_object, objects: content.objects })
}

/// The parts between `---` lines that hold more than comments, each with the number of lines before it.
fn chunks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = Some(text);
    let mut lines = 0;
    let split = std::iter::from_fn(move || {
        let here = rest?;
        let (chunk, after) = split_at_marker(here);
        let before = lines;
        lines += chunk.lines().count() + 1;
        rest = after;
        Some((before, chunk))
    });
    split.filter(|(_, chunk)| !chunk.lines().all(is_empty_line))
}

/// What precedes the first `---` line, and what follows it.
fn split_at_marker(text: &str) -> (&str, Option<&str>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty()) {
            return (&text[..start], Some(&text[start + line.len()..]));
        }
        start += line.len();
    }
    (text, None)
}

fn is_empty_line(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
}

fn read_chunk(chunk: &str, at: DocumentPosition, lines_before: usize) -> Result<Vec<Document>, StreamError> {
    yaml::read_documents(chunk).map_err(|error| {
        let line = lines_before + error.line;
        StreamError::Malformed { at, line, column: error.column, problem: error.message }
    })
}

fn memory_bytes(value: &Value) -> usize {
    let inside: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + memory_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + inside
}

/// What was read so far.
#[derive(Default)]
struct Content {
    documents: usize,
    meta: Option<(DocumentPosition, Meta, Value)>,
    objects: Vec<PackageObject>,
}

impl Content {
    fn add(&mut self, document: Document, lines_before: usize) -> Result<(), StreamError> {
        let at = DocumentPosition { document: self.documents, line: lines_before + document.line };
        let gvk = gvk(&document.value, at)?;
        if let Some(read) = Meta::read(&document.value) {
            let read = read.map_err(|error| {
                let field = match &error {
                    MetaError::Dependency { index } | MetaError::DependencyTooLong { index } => {
                        format!("spec.dependsOn[{index}]")
                    }
                    MetaError::TooManyDependencies { .. } | MetaError::Malformed { .. } => "spec".to_owned(),
                };
                let line = document.span_of_field(&field).map_or(at.line, |span| lines_before + span.line);
                StreamError::Meta { at: DocumentPosition { line, ..at }, error }
            })?;
            if let Some((first, _, _)) = &self.meta {
                return Err(StreamError::TwoMetas { first: *first, second: at });
            }
            self.meta = Some((at, read, document.value));
            return Ok(());
        }
        if !is_known(&gvk) {
            let (api_version, remedy) = (gvk.api_version(), remedy(&gvk));
            return Err(StreamError::UnknownKind { at, api_version, kind: gvk.kind, remedy });
        }
        self.objects.push(PackageObject { gvk, value: document.value, at });
        Ok(())
    }
}

fn gvk(value: &Value, at: DocumentPosition) -> Result<GroupVersionKind, StreamError> {
    for (field, text) in [("apiVersion", meta::api_version(value)), ("kind", meta::kind(value))] {
        if text.is_empty() {
            return Err(StreamError::NotAnObject { at, field });
        }
    }
    meta::gvk(value).ok_or(StreamError::NotAnObject { at, field: "valid apiVersion" })
}

/// Names the versions of the kind that packages can hold, and the mistake of putting an installation into a package.
fn remedy(gvk: &GroupVersionKind) -> String {
    let is_package = PackageKind::ALL.into_iter().any(|kind| kind.kind() == gvk.kind);
    let versions = known_versions(&gvk.group_kind());
    if !versions.is_empty() {
        return format!("; they can hold version {}", versions.join(" and "));
    }
    if gvk.group == group::META_PKG && is_package {
        return "; use version v1".to_owned();
    }
    if gvk.group == group::PKG && is_package {
        return "; name other packages in spec.dependsOn of the meta object".to_owned();
    }
    String::new()
}

impl Package {
    /// Whether the package is of the kind of the object that installs it.
    pub fn must_be(&self, expected: PackageKind) -> Result<(), StreamError> {
        if self.kind == expected {
            return Ok(());
        }
        Err(StreamError::WrongKind { expected, found: self.kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: c\n";
    const COMPOSITION: &str = "kind: Composition\napiVersion: apiextensions.crossplane.io/v1\nspec: {}\n";

    fn error(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn documents_know_their_place() {
        let text =
            format!("# licence\n---\n---\n{META}--- \n# why\n{COMPOSITION}---\n\n{COMPOSITION}\n---\n");
        let package = parse(text.as_bytes()).unwrap();
        assert_eq!((package.kind, package.meta.name.as_str()), (PackageKind::Configuration, "c"));
        let places: Vec<_> = package.objects.iter().map(|o| (o.at.document, o.at.line)).collect();
        assert_eq!(places, [(2, 10), (3, 15)]);
        assert_eq!(package.objects[0].gvk.kind, "Composition");
        let marked = format!("\u{feff}{META}");
        assert_eq!(parse(marked.as_bytes()).unwrap().meta_object, package.meta_object);
        assert_eq!(parse(META.replace('\n', "\r\n").as_bytes()).unwrap().meta_object, package.meta_object);
    }

    #[test]
    fn what_is_not_a_package_is_refused_by_document_and_line() {
        assert_eq!(error("").split(':').next(), Some("package.yaml"));
        assert!(error(COMPOSITION).contains("there is none"));
        let two = error(&format!("{META}---\n{META}"));
        assert!(two.contains("document 1 (line 1) and document 2 (line 6) are"), "{two}");
        let unknown = error(&format!("{META}---\napiVersion: v1\nkind: Secret\n"));
        assert!(unknown.contains("document 2 (line 6): packages cannot hold Secret of v1"), "{unknown}");
        let malformed = error(&format!("{META}---\na: b\nc: [\n"));
        assert!(malformed.contains("document 2 (line 6): line "), "{malformed}");
        assert!(error(&format!("{META}---\nkind: X\n")).contains("it has no apiVersion"));
        assert!(error(&format!("{META}---\n- x\n")).contains("it has no apiVersion"));
        assert!(error(&format!("{META}---\napiVersion: v1\n")).contains("it has no kind"));
        assert!(error(&format!("{META}---\napiVersion: a/b/c\nkind: X\n")).contains("valid apiVersion"));
        let depends = error(&format!("{META}spec:\n  dependsOn:\n  - provider: a.b/c\n  - version: x\n"));
        assert!(depends.contains("document 1 (line 8): spec.dependsOn[1]"), "{depends}");
        let bytes = [META.as_bytes(), b"a: \xff\n"].concat();
        assert_eq!(parse(&bytes).unwrap_err(), StreamError::NotText { line: 5 });
    }

    #[test]
    fn the_remedy_is_named() {
        for (document, remedy) in [
            (
                "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: Composition\n",
                "; they can hold version v1",
            ),
            ("apiVersion: meta.pkg.crossplane.io/v9\nkind: Function\n", "; use version v1"),
            ("apiVersion: pkg.crossplane.io/v1\nkind: Function\n", "spec.dependsOn"),
        ] {
            assert!(error(document).contains(remedy), "{document}");
        }
    }

    #[test]
    fn limits_hold() {
        let text = format!("{META}---\n{COMPOSITION}---\n{COMPOSITION}");
        let within = |bytes, documents| {
            parse_within(text.as_bytes(), Limits { bytes, documents, ..Limits::default() })
        };
        assert!(within(text.len(), 3).is_ok());
        assert!(matches!(within(text.len() - 1, 3), Err(StreamError::TooLarge { .. })));
        assert_eq!(within(text.len(), 2), Err(StreamError::TooManyDocuments { limit: 2 }));
        let deep = format!("{META}---\na: {}{}\n", "[".repeat(2_000), "]".repeat(2_000));
        assert!(error(&deep).contains("limit exceeded"), "{}", error(&deep));
        let separators = "---\n".repeat(100_000);
        assert_eq!(parse(separators.as_bytes()), Err(StreamError::NoMeta));
    }

    #[test]
    fn memory_is_limited_before_it_is_spent() {
        let large = format!("{META}---\n{COMPOSITION}a: {}\n", "x".repeat(4 << 20));
        assert!(error(&large).contains("document 2 (line 6): it has 4194"), "{}", error(&large));
        // Short text, many values: numbers, and aliases of a list.
        let numbers = format!("{COMPOSITION}a: [{}]\n", "0,".repeat(1_000));
        let aliases = format!("{COMPOSITION}a: &a [{}]\nb: [{}]\n", "0,".repeat(99), "*a,".repeat(99));
        for document in [numbers, aliases] {
            let text = format!("{META}---\n{document}---\n{document}");
            let within =
                |memory_bytes| parse_within(text.as_bytes(), Limits { memory_bytes, ..Limits::default() });
            assert!(within(2 << 20).is_ok());
            let error = within(64 << 10).unwrap_err().to_string();
            assert!(error.contains("more than 65536 bytes of memory"), "{error}");
        }
    }

    #[test]
    fn the_kind_must_be_that_of_the_installing_object() {
        let package = parse(META.as_bytes()).unwrap();
        assert_eq!(package.must_be(PackageKind::Configuration), Ok(()));
        let error = package.must_be(PackageKind::Provider).unwrap_err().to_string();
        assert!(error.starts_with("package meta type is not Provider"), "{error}");
    }

    #[test]
    fn rendering_sorts_keys_and_is_read_back() {
        let package = parse(format!("{COMPOSITION}---\n{META}").as_bytes()).unwrap();
        let text = render(&package);
        let composition =
            "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {}\nspec: {}\n";
        let expected = format!("---\n{META}spec: {{}}\n---\n{composition}---\n");
        assert_eq!(text, expected);
        assert_eq!(render(&parse(text.as_bytes()).unwrap()), text);
    }
}
