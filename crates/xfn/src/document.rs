//! From a request to the document that a function reads, and from the document that it writes to a response.

use crate::{function_io, resource_list};
use serde_json::{Map, Value};
use transom_function::proto::v1;
use transom_function::{ResponseMeta, RunFunctionRequest, RunFunctionResponse, Severity, State, Target};
use transom_object::yaml;
use transom_xapi::InlineFunction;

/// The kind of document that a function reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Observed and desired state.
    FunctionIo,
    /// A list of resources, as of KRM functions.
    ResourceList,
}

impl Io {
    /// What a function asks for.
    pub fn of(function: &InlineFunction) -> Self {
        if function.wants_resource_list() { Self::ResourceList } else { Self::FunctionIo }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::FunctionIo => function_io::KIND,
            Self::ResourceList => resource_list::KIND,
        }
    }
}

/// What a function wants, as it is in its document.
pub(crate) struct Wanted {
    pub(crate) desired: State,
    pub(crate) results: Vec<v1::Result>,
}

/// The document that a function reads, as YAML.
pub fn encode(io: Io, request: &RunFunctionRequest) -> String {
    let document = match io {
        Io::FunctionIo => function_io::document(request),
        Io::ResourceList => resource_list::document(request),
    };
    yaml::write(&document)
}

/// The output of a function that is not the document that it should be.
#[derive(Debug, thiserror::Error)]
#[error("its output is not a {kind}")]
pub struct DocumentError {
    /// The kind of the expected document.
    pub kind: &'static str,
    /// What is wrong with the output.
    pub source: DocumentProblem,
}

/// What is wrong with the output of a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentProblem {
    /// Its bytes are not text.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// There is none.
    #[error("it is empty")]
    Empty,
    /// It is neither YAML nor JSON.
    #[error(transparent)]
    NotYaml(#[from] yaml::Error),
    /// It is a list or a scalar.
    #[error("it is not an object")]
    NotAnObject,
    /// A field is missing or has a wrong value; the text begins with the field.
    #[error("{0}")]
    Field(String),
}

/// The response that a function's output stands for.
pub fn decode(
    io: Io,
    request: &RunFunctionRequest,
    output: &[u8],
) -> Result<RunFunctionResponse, DocumentError> {
    let Wanted { desired, results } =
        read(io, request, output).map_err(|source| DocumentError { kind: io.kind(), source })?;
    let tag = request.meta.as_ref().map(|meta| meta.tag.clone()).unwrap_or_default();
    Ok(RunFunctionResponse {
        meta: Some(ResponseMeta { tag, ttl: None }),
        desired: Some(desired),
        context: request.context.clone(),
        results,
        ..RunFunctionResponse::default()
    })
}

fn read(io: Io, request: &RunFunctionRequest, output: &[u8]) -> Result<Wanted, DocumentProblem> {
    let text = std::str::from_utf8(output).map_err(|_| DocumentProblem::NotUtf8)?;
    if text.trim().is_empty() {
        return Err(DocumentProblem::Empty);
    }
    let document = yaml::read(text)?;
    let fields = document.as_object().ok_or(DocumentProblem::NotAnObject)?;
    check_kind(io.kind(), fields).map_err(DocumentProblem::Field)?;
    let wanted = match io {
        Io::FunctionIo => function_io::wanted(request, fields),
        Io::ResourceList => resource_list::wanted(request, fields),
    };
    wanted.map_err(DocumentProblem::Field)
}

/// Documents need not say what they are, as in Crossplane. One that says that it is something else is refused.
fn check_kind(kind: &str, fields: &Map<String, Value>) -> Result<(), String> {
    match fields.get("kind").and_then(Value::as_str) {
        Some(other) if other != kind => Err(format!("its kind is {other:?}")),
        _ => Ok(()),
    }
}

/// The results in a document. `severity` reads its severities.
pub(crate) fn results(
    fields: &Map<String, Value>,
    severity: impl Fn(&str) -> Option<Severity>,
) -> Result<Vec<v1::Result>, String> {
    let mut results = Vec::new();
    for (index, result) in list(fields, "results")?.iter().enumerate() {
        let text = result.get("severity").and_then(Value::as_str).unwrap_or_default();
        let Some(severity) = severity(text) else {
            return Err(format!("results[{index}].severity: {text:?} is not a severity"));
        };
        let message = result.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (severity, target) = (severity as i32, Some(Target::Composite as i32));
        results.push(v1::Result { severity, message, reason: None, target });
    }
    Ok(results)
}

/// A list in a document; empty if it is not there.
pub(crate) fn list<'d>(fields: &'d Map<String, Value>, name: &str) -> Result<&'d [Value], String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{name}: not a list")),
    }
}

/// The part of an object that is wanted of a composite resource: its type and its status, without the conditions that the
/// control plane sets.
pub(crate) fn wanted_status(object: &Value) -> Value {
    let mut wanted = Map::new();
    for field in ["apiVersion", "kind"] {
        wanted.extend(object.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    if let Some(status) = object.get("status").and_then(Value::as_object) {
        let mut status = status.clone();
        status.remove("conditions");
        if !status.is_empty() {
            wanted.insert("status".to_owned(), status.into());
        }
    }
    Value::Object(wanted)
}

/// The composite resource that a function may change: as it is, but with the status that is wanted so far.
pub(crate) fn composite(request: &RunFunctionRequest) -> Value {
    let resource = |state: &Option<State>| {
        state.as_ref().and_then(|state| state.composite.as_ref()).map(|found| found.object().clone())
    };
    let mut composite = resource(&request.observed).unwrap_or_default();
    let desired = resource(&request.desired).unwrap_or_default();
    if let Some(fields) = composite.as_object_mut() {
        fields.remove("status");
        fields.extend(desired.get("status").map(|status| ("status".to_owned(), status.clone())));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    composite
}
