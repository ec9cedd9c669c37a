//! The fields of an instance that belong to the control plane: `spec.application` and `spec.infrastructure`, and where today's
//! resources have them.

use super::field::Field;
use super::notes::{Notes, Problem};
use serde_json::Value;
use transom_object::meta;

/// What kind of block an instance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Of a namespaced composite resource.
    Application,
    /// Of a cluster-scoped composite resource.
    Infrastructure,
    /// Of what a claim is today.
    Requirement,
}

const APPLICATION: &str = "application";
const INFRASTRUCTURE: &str = "infrastructure";

/// The fields that are the same in all blocks.
const COMMON: [&str; 2] = ["compositionSelector", "compositionRef"];

impl Block {
    /// The field of the spec.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Application => APPLICATION,
            Self::Infrastructure | Self::Requirement => INFRASTRUCTURE,
        }
    }

    /// The fields of the block.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Application => &["compositionSelector", "compositionRef", "composedRefs"],
            Self::Infrastructure => &[
                "compositionSelector",
                "compositionRef",
                "composedRefs",
                "writeConnectionSecretToRef",
                "requirementRef",
                "reclaimPolicy",
            ],
            Self::Requirement => {
                &["compositionSelector", "compositionRef", "resourceRef", "writeConnectionSecretToRef"]
            }
        }
    }
}

/// The block of an object whose definition is not given. Objects of other kinds may have a field of that name, but none of its
/// fields.
pub(super) fn shape(object: &Value) -> Option<Block> {
    let is_requirement = meta::kind(object).ends_with("Requirement");
    let block_of = |name| match name {
        APPLICATION => Block::Application,
        _ if is_requirement => Block::Requirement,
        _ => Block::Infrastructure,
    };
    [APPLICATION, INFRASTRUCTURE].into_iter().find_map(|name| {
        let fields = object.get("spec")?.get(name)?.as_object()?;
        let block = block_of(name);
        fields.keys().any(|field| block.fields().contains(&field.as_str())).then_some(block)
    })
}

/// A field path of a patch, if it leads into a block and is therefore another today.
pub(super) fn field_path(path: &str, field: &Field, notes: &mut Notes) -> Option<String> {
    let blocks = [("spec.application.", "spec.crossplane."), ("spec.infrastructure.", "spec.")];
    let (rest, today) = blocks.iter().find_map(|(block, today)| Some((path.strip_prefix(block)?, *today)))?;
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, below) = rest.split_at(end);
    // What the design has a list of is one object today.
    let of_first = below.strip_prefix("[0]").unwrap_or(below);
    let (name, below) = match name {
        "requirementRef" => ("claimRef", below),
        "composedRefs" => ("resourceRefs", below),
        "compositionRef" | "resourceRef" => (name, of_first),
        "writeConnectionSecretToRef" => (name, below),
        name if COMMON.contains(&name) => (name, below),
        _ => {
            notes.wrong(field, Problem::NoSuchField(path.to_owned()));
            return None;
        }
    };
    Some(format!("{today}{name}{below}"))
}
