//! What is wrong with the objects of the design, and what today's kinds do not express.

use super::field::Field;
use serde_json::Value;
use transom_object::meta;

/// A rule of the design that an object breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {}{problem}", at(field))]
pub struct Mistake {
    /// Which of the objects.
    pub input: usize,
    /// `Kind/name`.
    pub object: String,
    /// The field that is wrong, or missing.
    pub field: Field,
    /// What is wrong with it.
    pub problem: Problem,
}

/// Something that an object has and its translation has not, or has in another way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {}{difference}", at(field))]
pub struct Remark {
    /// Which of the objects.
    pub input: usize,
    /// `Kind/name`.
    pub object: String,
    /// The field.
    pub field: Field,
    /// What became of it, and why.
    pub difference: Difference,
}

/// The field before what is said about it; nothing for the whole object.
fn at(field: &Field) -> String {
    match field.to_string() {
        field if field.is_empty() => field,
        field => format!("{field}: "),
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Problem {
    #[error("is required")]
    Required,
    #[error("must be {0}")]
    Type(&'static str),
    #[error("unknown field{}", hint(suggestion.as_deref()))]
    Unknown { suggestion: Option<String> },
    #[error("must be {0:?}: a definition is named <plural>.<group> after the kind that it defines")]
    DefinitionName(String),
    #[error("must be {0:?}: a publication has the name of the definition that it publishes")]
    PublicationName(String),
    #[error("{0} is defined by another object already")]
    DefinedTwice(String),
    #[error("{0:?} is published by another InfrastructurePublication already")]
    PublishedTwice(String),
    #[error("no InfrastructureDefinition {0:?} is given: convert it together with its publication")]
    NotDefined(String),
    #[error(
        "{0:?} is an ApplicationDefinition: only infrastructure is published; applications are namespaced as they are"
    )]
    NotInfrastructure(String),
    #[error("a definition has one version, and here are {0}: keep the one that is stored")]
    Versions(usize),
    #[error("{given:?} is not the name of the only version, {wanted:?}")]
    Version { given: String, wanted: String },
    #[error(
        "must be {wanted:?}, but is {given:?}: a default or forced composition is a Composition of the design"
    )]
    NotAComposition { wanted: &'static str, given: String },
    #[error("must be {wanted:?}: {kind} resources have this scope")]
    Scope { wanted: &'static str, kind: &'static str },
    #[error("is a field of the control plane in resources of this kind: give it another name")]
    Reserved,
    #[error(
        "connection detail {detail:?} of InfrastructureDefinition {definition:?} is given by none of the resources: exactly one must"
    )]
    DetailMissing { detail: String, definition: String },
    #[error(
        "connection detail {0:?} is given twice: exactly one connectionDetails entry of a Composition gives a detail"
    )]
    DetailTwice(String),
    #[error("{what} is cluster-scoped: applications are composed of namespaced resources only{}", instead(requirement.as_deref()))]
    ClusterScoped { what: String, requirement: Option<String> },
    #[error("{0} is namespaced: infrastructure is composed of cluster-scoped resources only")]
    Namespaced(String),
    #[error("has {0} entries: a resource has one")]
    Several(usize),
    #[error("must be {wanted:?}: a requirement is bound to a resource of the kind that it requires")]
    BoundKind { wanted: String },
    #[error("must be Delete or Retain")]
    ReclaimPolicy,
    #[error("contradicts matchControllerRef beside it, which is today's name of the field")]
    Contradiction,
    #[error("{0} is a field of the control plane that today's resources do not have")]
    NoSuchField(String),
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

fn instead(requirement: Option<&str>) -> String {
    requirement.map(|kind| format!("; use {kind}, which is published for it")).unwrap_or_default()
}

/// What became of a field that has no counterpart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Difference {
    #[error("\"int\" is read as \"integer\": OpenAPI has no type \"int\"")]
    Int,
    #[error("left out: {0}")]
    Unsupported(&'static str),
    #[error("left out: the control plane writes it")]
    WrittenByController,
    #[error(
        "left out: a composite resource is deleted with its claim. To keep external resources, leave Delete out of the \
         managementPolicies of the managed resources"
    )]
    Retain,
    #[error("left out: connection details of applications are not published")]
    DetailsOfApplication,
    #[error(
        "left out: InfrastructureDefinition {0:?} has no connectionDetails, so its resources publish none"
    )]
    DetailsNotDeclared(String),
    #[error("left out: an application composes in its own namespace only")]
    NamespaceOfBase,
    #[error("left out: a requirement writes its Secret in its own namespace")]
    NamespaceOfSecret,
    #[error(
        "no definition of {0} is given: neither its connection details nor the scopes of what it is composed of are checked"
    )]
    Unchecked(String),
    #[error("no definition has this version of the kind: read as {0:?}, which one has")]
    Group(String),
    #[error("no InfrastructurePublication of {0} is given: the control plane serves this kind only with one")]
    NotPublished(String),
}

/// Mistakes and remarks as they are found, object by object.
#[derive(Debug, Default)]
pub(super) struct Notes {
    input: usize,
    object: String,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) remarks: Vec<Remark>,
}

impl Notes {
    /// From here on they are about this object.
    pub(super) fn begin(&mut self, input: usize, object: &Value) {
        self.input = input;
        self.object = match meta::name(object) {
            "" => meta::kind(object).to_owned(),
            name => format!("{}/{name}", meta::kind(object)),
        };
    }

    /// Something is wrong with a field.
    pub(super) fn wrong(&mut self, field: &Field, problem: Problem) {
        let (input, object, field) = (self.input, self.object.clone(), field.clone());
        self.mistakes.push(Mistake { input, object, field, problem });
    }

    /// A field has no counterpart.
    pub(super) fn remark(&mut self, field: &Field, difference: Difference) {
        let (input, object, field) = (self.input, self.object.clone(), field.clone());
        self.remarks.push(Remark { input, object, field, difference });
    }
}
