//! Which Composition, and which revision of it, a composite resource uses.
//!
//! A reference that is set is never changed, except to a Composition that the definition enforces. Decisions are values:
//! nothing is read or written here.

use crate::composite::{Composite, UpdatePolicy};
use crate::composition::{Composition, CompositionRevision, CompositionSpec, LabelMatch, SecretReference};
use crate::constants::label;
use crate::definition::Definition;
use crate::revision;
use transom_object::meta;

/// The event that goes with [`CompositionChoice::Enforced`].
pub const ENFORCED: &str = "Enforced composition has been selected";
/// The event that goes with [`CompositionChoice::Default`].
pub const DEFAULT: &str = "Default composition has been selected";
/// The event that goes with a selector from [`default_revision_selector`].
pub const DEFAULT_REVISION_SELECTOR: &str = "Default revision selector has been selected";

/// The event about a [selector](RevisionChoice::Kept) that no revision matches.
pub const IGNORED_REVISION_SELECTOR: &str = "compositionRevisionSelector has no effect because no revision of the Composition has its \
     labels, and compositionUpdatePolicy is Manual: label the Composition, or name the revision in compositionRevisionRef";

/// Why nothing can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Error {
    #[error("no compatible Compositions found")]
    NoComposition,
    #[error("no compatible CompositionRevisions found")]
    NoRevision,
    #[error("referenced composition is not compatible with this composite resource")]
    NotCompatible,
}

/// How the Composition is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompositionChoice {
    /// The composite resource refers to it already.
    Referenced,
    /// The definition enforces it: the reference must be persisted at once.
    Enforced(String),
    /// It is the default of the definition: the reference is persisted with the next write.
    Default(String),
    /// One of the compatible Compositions with these labels is to be [`choose`]n and persisted.
    Search(LabelMatch),
}

/// How to choose the Composition of a composite resource.
pub fn composition(xr: &Composite, definition: &Definition) -> CompositionChoice {
    let reference = xr.composition_ref();
    if let Some(enforced) = &definition.spec.enforced_composition_ref
        && reference.as_ref() != Some(enforced)
    {
        return CompositionChoice::Enforced(enforced.name.clone());
    }
    if reference.is_some() {
        return CompositionChoice::Referenced;
    }
    match (xr.composition_selector(), &definition.spec.default_composition_ref) {
        (None, Some(default)) => CompositionChoice::Default(default.name.clone()),
        (selector, _) => CompositionChoice::Search(selector.unwrap_or_default()),
    }
}

/// One of the Compositions that have the labels and compose this type of resource, by a number drawn at random:
/// Crossplane promises no order.
pub fn choose<'a>(
    xr: &Composite,
    labels: &LabelMatch,
    compositions: impl IntoIterator<Item = &'a Composition>,
    random: u32,
) -> Result<&'a Composition, Error> {
    let fits = |c: &&Composition| {
        labels.matches(&c.metadata.label_map()) && composes(&c.spec.composite_type_ref, xr)
    };
    let mut fitting: Vec<&Composition> = compositions.into_iter().filter(fits).collect();
    fitting.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let index = (u64::from(random) * fitting.len() as u64) >> 32;
    let index = usize::try_from(index).unwrap_or_default();
    fitting.get(index).copied().ok_or(Error::NoComposition)
}

fn composes(of: &crate::composition::TypeReference, xr: &Composite) -> bool {
    of.api_version == meta::api_version(&xr.object) && of.kind == meta::kind(&xr.object)
}

/// The definition's selector of revisions, for a composite resource that has neither a selector nor a reference.
pub fn default_revision_selector<'a>(xr: &Composite, definition: &'a Definition) -> Option<&'a LabelMatch> {
    let silent = xr.composition_revision_selector().is_none() && xr.composition_revision_ref().is_none();
    definition.spec.default_composition_revision_selector.as_ref().filter(|_| silent)
}

/// How the revision is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevisionChoice {
    /// The revision of this name.
    Pinned(String),
    /// The latest of the Composition that is referred to, among those with the labels: see [`latest`].
    Latest(LabelMatch),
    /// The current revision as long as it has the labels, else the latest with the labels. If none has them, the labels do not
    /// matter.
    Kept {
        /// The name of the current revision.
        current: Option<String>,
        /// The labels.
        labels: LabelMatch,
    },
}

/// How to choose the revision. Under the automatic policy the selector has an effect only if the policy is explicit; under
/// the manual policy it chooses the revision that is kept.
pub fn revision(xr: &Composite) -> RevisionChoice {
    let current = xr.composition_revision_ref().map(|reference| reference.name);
    let selector = xr.composition_revision_selector().filter(|labels| !labels.match_labels.is_empty());
    match (xr.composition_update_policy(), selector, current) {
        (Some(UpdatePolicy::Manual), Some(labels), current) => RevisionChoice::Kept { current, labels },
        (Some(UpdatePolicy::Manual), None, Some(current)) => RevisionChoice::Pinned(current),
        (Some(UpdatePolicy::Automatic), Some(labels), _) => RevisionChoice::Latest(labels),
        _ => RevisionChoice::Latest(LabelMatch::default()),
    }
}

/// Whether a user wrote the selector of revisions: the definition's default is not a mistake of the user.
pub fn is_own_revision_selector(labels: &LabelMatch, definition: &Definition) -> bool {
    definition.spec.default_composition_revision_selector.as_ref() != Some(labels)
}

/// The latest revision of a Composition among those with the labels.
pub fn latest<'a>(
    composition: &Composition,
    labels: &LabelMatch,
    revisions: impl IntoIterator<Item = &'a CompositionRevision>,
) -> Result<&'a CompositionRevision, Error> {
    let named = |r: &&CompositionRevision| {
        r.metadata.label(label::COMPOSITION_NAME) == Some(composition.metadata.name.as_str())
            && labels.matches(&r.metadata.label_map())
    };
    revision::latest(&composition.metadata.uid, revisions.into_iter().filter(named)).ok_or(Error::NoRevision)
}

/// What a composite resource lacks before it can be composed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The label that names the topmost composite resource, to be set to this name.
    pub name_prefix: Option<String>,
    /// Where to write connection details.
    pub connection_secret: Option<SecretReference>,
}

impl Configuration {
    /// Whether there is anything to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Gives the composite resource what it lacks.
    pub fn apply(&self, xr: &mut Composite) {
        if let Some(name) = &self.name_prefix {
            meta::set_label(&mut xr.object, label::COMPOSITE, name);
        }
        if let Some(secret) = &self.connection_secret {
            xr.set_connection_secret_ref(secret);
        }
    }
}

/// What a composite resource lacks before it can be composed by a Composition; an error if that composes another type.
pub fn configure(xr: &Composite, composition: &CompositionSpec) -> Result<Configuration, Error> {
    let prefix = meta::label(&xr.object, label::COMPOSITE).unwrap_or_default();
    let name_prefix = prefix.is_empty().then(|| meta::name(&xr.object).to_owned());
    if !composes(&composition.composite_type_ref, xr) {
        return Err(Error::NotCompatible);
    }
    let namespace = composition.write_connection_secrets_to_namespace.as_ref();
    let wanted = xr.layout == crate::composite::Layout::Legacy && xr.connection_secret_ref().is_none();
    let connection_secret = namespace.filter(|_| wanted).map(|namespace| SecretReference {
        name: meta::uid(&xr.object).to_owned(),
        namespace: namespace.clone(),
    });
    Ok(Configuration { name_prefix, connection_secret })
}

#[cfg(test)]
mod tests;
