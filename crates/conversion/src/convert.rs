//! Converts one object, step by step between neighbouring versions, and keeps what the wanted version has no field for.

use crate::compile::{Converter, Version};
use crate::kept::{self, Kept, KeptFields};
use crate::path::FieldPath;
use crate::restore::{Between, restore};
use serde_json::Value;
use transom_cel::{Bindings, EvalError, Program};

/// From a version to its neighbour.
#[derive(Debug)]
pub(crate) struct Step {
    /// The rule that it is of.
    pub(crate) rule: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) moves: Vec<(FieldPath, FieldPath)>,
    pub(crate) computed: Vec<Computed>,
    /// The fields of `from` that the way back computes: they are not kept.
    pub(crate) recomputed_on_return: Vec<FieldPath>,
}

/// A field that an expression computes.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) path: FieldPath,
    pub(crate) program: Program,
    pub(crate) only_if_missing: bool,
}

/// Why an object cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// It is in a version that the rules do not know.
    #[error("there are no rules for the version of {0:?}")]
    UnknownVersion(String),
    /// A part of it, in which kept fields are written, is not an object.
    #[error("{0} must be an object")]
    NoObject(&'static str),
    /// An expression fails on it.
    #[error("{from} to {to}: the expression for {path} fails")]
    Expression {
        /// The version of the object.
        from: String,
        /// The version that it should get.
        to: String,
        /// The field that is computed.
        path: FieldPath,
        /// Why.
        source: EvalError,
    },
}

impl Converter {
    /// The object in another version.
    pub fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let unknown = |name: &str| ConversionError::UnknownVersion(name.to_owned());
        let given = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let from = self.version_of(object).ok_or_else(|| unknown(given))?;
        let target = self.index_of(to).ok_or_else(|| unknown(to))?;
        let route = self.route(from, target).ok_or_else(|| unknown(to))?;
        let first = object.clone();
        route.into_iter().try_fold(first, |object, step| self.take_step(step, object))
    }

    pub(crate) fn take_step(&self, step: &Step, mut object: Value) -> Result<Value, ConversionError> {
        let (source, target) = (&self.versions[step.from], &self.versions[step.to]);
        source.default(&mut object);
        let mut kept = KeptFields::of(&object);
        let mut bare = object.clone();
        kept::remove_from(&mut bare);
        let mut whole = bare.clone();
        let between = Between { source: &source.schema, target: &target.schema };
        let returning = kept.take(&target.name);
        let any = restore(&mut whole, returning, between, |path| step.place_before(path));
        let (mut converted, mut left) = self.shape(step, &object, whole)?;
        // An object that is valid without what was kept must not be stored with it if it is not valid then.
        if any && let Some(objection) = target.objection_to(&converted) {
            let without = self.shape(step, &object, bare)?;
            if target.objection_to(&without.0).as_ref() != Some(&objection) {
                (converted, left) = without;
            }
        }
        kept.put(&source.name, left);
        kept.write(&mut converted)?;
        set_version(&mut converted, &target.name);
        Ok(converted)
    }

    /// An object in the shape of the next version, and what that version does not have of it. Expressions see the object as it was
    /// before the step.
    fn shape(
        &self,
        step: &Step,
        before: &Value,
        mut object: Value,
    ) -> Result<(Value, Vec<Kept>), ConversionError> {
        let (source, target) = (&self.versions[step.from], &self.versions[step.to]);
        step.move_fields(&mut object);
        let mut left = kept::split(&mut object, &target.schema);
        left.iter_mut().for_each(|field| step.name_as_before(field));
        left.retain_mut(|field| field.forget(&step.recomputed_on_return));
        step.compute(source, target, before, &mut object)?;
        Ok((object, left))
    }
}

/// Replaces the version of an object, and keeps its group.
fn set_version(object: &mut Value, version: &str) {
    let given = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let converted = match given.rsplit_once('/') {
        Some((group, _)) => format!("{group}/{version}"),
        None => version.to_owned(),
    };
    object["apiVersion"] = converted.into();
}

impl Step {
    /// All sources are read before a target is written, so that fields can change places.
    fn move_fields(&self, object: &mut Value) {
        let taken: Vec<_> =
            self.moves.iter().filter_map(|(from, to)| Some((to, from.take(object)?))).collect();
        for (to, value) in taken {
            to.put(object, value);
        }
    }

    /// The names of a field of the target version before fields have moved there.
    fn place_before(&self, names: &[String]) -> Option<Vec<String>> {
        rebased(names, self.moves.iter().map(|(from, to)| (to, from)))
    }

    /// Gives a field that was taken out after the moves the place that it had before.
    fn name_as_before(&self, field: &mut Kept) {
        if let Some(names) = rebased(&field.leading_names(), self.moves.iter().map(|(from, to)| (to, from))) {
            field.rename(names);
        }
    }

    fn compute(
        &self,
        source: &Version,
        target: &Version,
        object: &Value,
        converted: &mut Value,
    ) -> Result<(), ConversionError> {
        for Computed { path, program, only_if_missing } in &self.computed {
            if *only_if_missing && path.get(converted).is_some() {
                continue;
            }
            let evaluated = transom_cel::Value::from_json_with(object, &source.schema)
                .and_then(|value| program.eval_default(&Bindings::new().with("self", value))?.to_json());
            let value = evaluated.map_err(|error| ConversionError::Expression {
                from: source.name.clone(),
                to: target.name.clone(),
                path: path.clone(),
                source: error,
            })?;
            if value.is_null() {
                path.take(converted);
            } else {
                path.put(converted, value);
            }
        }
        Ok(())
    }
}

/// The same names with their beginning replaced, if one of the pairs has it.
fn rebased<'a>(
    names: &[String],
    pairs: impl Iterator<Item = (&'a FieldPath, &'a FieldPath)>,
) -> Option<Vec<String>> {
    pairs.into_iter().find_map(|(old, new)| {
        let below = names.strip_prefix(old.names())?;
        Some(new.names().iter().chain(below).cloned().collect())
    })
}
