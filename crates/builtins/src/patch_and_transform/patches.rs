//! Applying one patch: get a value, transform it, put it somewhere else.
//!
//! Patches read what is observed and write what is desired; the environment is read and written. A source that is not
//! there is distinguished from every other failure ([`PatchError::is_not_found`]), because what it means is the patch's policy.

use std::fmt;

use serde_json::Value;
use transom_go::fmt::try_sprintf;
use transom_gotemplate::Value as Go;
use transom_object::fieldpath::{self, MergeOptions};

use super::document::{self, Document, Numbers, to_go, to_json};
use super::input::{
    Combine, CombineStrategy, ComposedTemplate, Patch, PatchSet, PatchType, Resources, ToPolicy,
};
use super::transforms::{self, MAX_TEXT_BYTES};

/// How many bytes the patches of one run may write in all. Many patches, each short, can copy the same large value.
const MAX_WRITTEN_BYTES: usize = 256 << 20;

/// Why a patch was not applied.
#[derive(Debug)]
pub(super) struct PatchError {
    message: String,
    not_found: bool,
}

impl PatchError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), not_found: false }
    }

    /// Whether the source, or the container of a wildcard, does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        self.not_found
    }

    fn context(self, words: &str) -> Self {
        Self { message: format!("{words}: {}", self.message), ..self }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<fieldpath::Error> for PatchError {
    fn from(error: fieldpath::Error) -> Self {
        Self { not_found: error.is_not_found(), message: error.to_string() }
    }
}

impl From<String> for PatchError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// Applies patches, and counts what they write.
#[derive(Debug)]
pub(super) struct Patcher {
    /// Whether strings are joined as the function does; see [`transforms`].
    pub join: transforms::Join,
    written: usize,
}

impl Patcher {
    pub(super) fn new(join: transforms::Join) -> Self {
        Self { join, written: 0 }
    }

    /// Applies a patch of any type between two documents.
    pub(super) fn apply(
        &mut self,
        patch: &Patch,
        from: &Document<'_>,
        to: &mut Document<'_>,
    ) -> Result<(), PatchError> {
        match patch.kind {
            PatchType::CombineFromComposite
            | PatchType::CombineToComposite
            | PatchType::CombineFromEnvironment
            | PatchType::CombineToEnvironment => self.apply_combined(patch, from, to),
            _ => self.apply_field(patch, from, to),
        }
    }

    fn apply_field(
        &mut self,
        patch: &Patch,
        from: &Document<'_>,
        to: &mut Document<'_>,
    ) -> Result<(), PatchError> {
        let source = fieldpath::get(from.value(), patch.source_path())?;
        let value = if patch.transforms.is_empty() {
            source.clone()
        } else {
            let transformed =
                transforms::resolve(&patch.transforms, to_go(source, from.numbers()), self.join)?;
            let mut value =
                to_json(&transformed).map_err(|e| format!("cannot marshal value to JSON: {e}"))?;
            document::normalize(&mut value);
            value
        };
        let options = merge_options(patch)?;
        if patch.target_path().contains("[*]") {
            return self.write_everywhere(patch.target_path(), &value, to, options);
        }
        self.write(patch.target_path(), value, to, options).map_err(|e| e.context("cannot patch to object"))
    }

    fn apply_combined(
        &mut self,
        patch: &Patch,
        from: &Document<'_>,
        to: &mut Document<'_>,
    ) -> Result<(), PatchError> {
        let Some(combine) = &patch.combine else {
            return Err(PatchError::new("a patch that combines fields needs the field combine"));
        };
        let mut variables = Vec::with_capacity(combine.variables.len());
        for variable in &combine.variables {
            let value = fieldpath::get(from.value(), &variable.from_field_path)?;
            variables.push(to_go(value, from.numbers()));
        }
        let combined = combined(combine, &variables)?;
        let value = transforms::resolve(&patch.transforms, combined, self.join)?;
        let options = merge_options(patch)?;
        let written = to_json(&value)
            .map_err(|e| PatchError::new(format!("cannot marshal value to JSON: {e}")))
            .and_then(|value| self.write(patch.target_path(), value, to, options));
        written.map_err(|e| e.context("cannot patch to object"))
    }

    fn write(
        &mut self,
        path: &str,
        value: Value,
        to: &mut Document<'_>,
        options: Option<MergeOptions>,
    ) -> Result<(), PatchError> {
        self.count(document::size(&value))?;
        put(path, value, to, options)?;
        Ok(to.check_kind()?)
    }

    /// Writes to every path that one with wildcards matches.
    fn write_everywhere(
        &mut self,
        path: &str,
        value: &Value,
        to: &mut Document<'_>,
        options: Option<MergeOptions>,
    ) -> Result<(), PatchError> {
        let paths = fieldpath::expand(to.value(), path)?;
        if paths.is_empty() {
            return Err(PatchError::new(format!("cannot expand ToFieldPath {path}")));
        }
        self.count(document::size(value).saturating_mul(paths.len()))?;
        for path in &paths {
            put(path, value.clone(), to, options)?;
        }
        Ok(to.check_kind()?)
    }

    fn count(&mut self, bytes: usize) -> Result<(), PatchError> {
        self.written = self.written.saturating_add(bytes);
        if self.written > MAX_WRITTEN_BYTES {
            return Err(PatchError::new(format!("patches write more than {} MiB", MAX_WRITTEN_BYTES >> 20)));
        }
        Ok(())
    }
}

fn put(
    path: &str,
    value: Value,
    to: &mut Document<'_>,
    options: Option<MergeOptions>,
) -> Result<(), PatchError> {
    // Appending leaves out what is there already, and a float is not the integer of its value.
    let arrived = to.numbers() == Numbers::Floats && options.is_some_and(|options| options.append_slice);
    let object = to.write();
    if arrived && fieldpath::get(object, path).is_ok_and(Value::is_array) {
        let mut existing = fieldpath::get(object, path)?.clone();
        document::float(&mut existing);
        fieldpath::set(object, path, existing)?;
    }
    fieldpath::merge(object, path, value, options)?;
    // What a combining patch writes is not normalised before it is merged.
    let merged = fieldpath::get(object, path);
    if merged.is_ok_and(has_integral_float) {
        let mut merged = fieldpath::get(object, path)?.clone();
        document::normalize(&mut merged);
        fieldpath::set(object, path, merged)?;
    }
    Ok(())
}

fn has_integral_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|float| float.fract() == 0.0),
        Value::Array(items) => items.iter().any(has_integral_float),
        Value::Object(fields) => fields.values().any(has_integral_float),
        _ => false,
    }
}

/// How a patch's value is merged with the existing one; `None` to replace it.
fn merge_options(patch: &Patch) -> Result<Option<MergeOptions>, PatchError> {
    let policy = patch.policy.as_ref().and_then(|policy| policy.to_field_path.as_ref());
    let (keep_map_values, append_slice) = match policy {
        None | Some(ToPolicy::Replace) => return Ok(None),
        Some(ToPolicy::MergeObjects | ToPolicy::MergeObject) => (true, false),
        Some(ToPolicy::MergeObjectsAppendArrays) => (true, true),
        Some(ToPolicy::ForceMergeObjects) => (false, false),
        Some(ToPolicy::ForceMergeObjectsAppendArrays | ToPolicy::AppendArray) => (false, true),
        Some(ToPolicy::Unknown(policy)) => {
            return Err(PatchError::new(format!("invalid patch policy {policy}")));
        }
    };
    Ok(Some(MergeOptions { keep_map_values, append_slice }))
}

fn combined(combine: &Combine, variables: &[Go]) -> Result<Go, PatchError> {
    match (&combine.strategy, &combine.string) {
        (CombineStrategy::String, Some(string)) => {
            let text = try_sprintf(string.fmt.as_bytes(), variables, MAX_TEXT_BYTES);
            text.map(Go::str).map_err(|e| PatchError::new(e.to_string()))
        }
        (CombineStrategy::String, None) => {
            Err(PatchError::new("given combine strategy string requires configuration"))
        }
        (CombineStrategy::Unknown(strategy), _) => {
            Err(PatchError::new(format!("combine strategy {strategy} is not supported")))
        }
    }
}

/// The patches of each resource, with those of patch sets in the place of their names.
pub(super) fn inlined(input: &Resources) -> Result<Vec<Vec<&Patch>>, PatchError> {
    if input.patch_sets.iter().flat_map(|set| &set.patches).any(|patch| patch.kind == PatchType::PatchSet) {
        return Err(PatchError::new("a patch in a PatchSet cannot be of type PatchSet"));
    }
    input.resources.iter().map(|template| inline(&input.patch_sets, template)).collect()
}

fn inline<'i>(sets: &'i [PatchSet], template: &'i ComposedTemplate) -> Result<Vec<&'i Patch>, PatchError> {
    /// A set may be long and named often.
    const MAX_PATCHES: usize = 100_000;
    let mut patches = Vec::with_capacity(template.patches.len());
    for patch in &template.patches {
        if patch.kind != PatchType::PatchSet {
            patches.push(patch);
            continue;
        }
        let Some(name) = &patch.patch_set_name else {
            return Err(PatchError::new("PatchSetName is required by type PatchSet"));
        };
        // The last of several sets of the same name counts.
        let Some(set) = sets.iter().rev().find(|set| set.name == *name) else {
            return Err(PatchError::new(format!("cannot find PatchSet by name {name}")));
        };
        patches.extend(&set.patches);
        if patches.len() > MAX_PATCHES {
            return Err(PatchError::new(format!("a resource has more than {MAX_PATCHES} patches")));
        }
    }
    Ok(patches)
}
