//! What differs between kinds: how objects are normalised, prepared, validated and shown.
//!
//! Two implementations: [`builtin`] for the kinds compiled in, [`custom`] for those a
//! CustomResourceDefinition describes.

pub(crate) mod builtin;
pub(crate) mod custom;
mod events;
mod generation;

use crate::subresource::Subresource;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use transom_object::{field, meta};
use transom_schema::{Schema, own};

/// A column of the Table representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub ty: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
}

pub(crate) trait Strategy: Send + Sync {
    /// Brings a decoded object into the form in which it is served: coerced, pruned, defaulted.
    /// Returns the paths of fields that the schema does not have, which are dropped.
    /// `Err` is what is wrong, with the wording of a decoder.
    fn normalize(&self, value: &mut Value) -> Result<Vec<String>, String>;

    /// The object before any client set anything, for kinds whose types have fields that are always there. What a
    /// write leaves as it is there has no owner.
    fn blank(&self) -> Option<&Value> {
        None
    }

    /// Bodies are decoded into a known type, so apiVersion and kind may be left out.
    fn is_typed(&self) -> bool;

    /// The stored form → what this version serves.
    fn read(&self, value: &mut Value) -> Result<(), String>;

    /// The same object in another version that is served, as field ownership compares them.
    fn in_version(&self, value: &Value, api_version: &str) -> Value {
        let mut converted = value.clone();
        converted["apiVersion"] = api_version.into();
        converted
    }

    /// The version objects are stored in.
    fn storage_version(&self) -> &str;

    /// This version → the stored form, after everything else.
    fn convert_to_storage<'v>(&self, value: &'v Value) -> Cow<'v, Value>;

    /// Resets what clients may not set, and starts the generation.
    fn prepare_create(&self, new: &mut Value);

    /// Keeps what this subresource may not change, and counts the generation.
    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: Subresource);

    /// What is wrong with an object besides its metadata, `found` being the errors there: some rules are not worth
    /// checking on an object that is wrong already.
    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        subresource: Subresource,
        found: &[field::Error],
    ) -> Vec<field::Error>;

    /// Advice to the client that does not fail the request.
    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    fn name_rule(&self) -> meta::NameRule;

    /// Fields that server-side apply through this subresource never owns.
    fn reset_fields(&self, subresource: Subresource) -> Option<Arc<own::Set>>;

    /// For strategic merge patch; `None` where that patch type is not supported.
    fn patch_schema(&self) -> Option<Arc<Schema>>;

    /// PUT on a missing object creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// PUT without a resourceVersion overwrites.
    fn allow_unconditional_update(&self) -> bool {
        false
    }

    /// The response to a successful delete is the object rather than a Status.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[String];

    fn selectable_value(&self, value: &Value, label: &str) -> String;

    fn columns(&self) -> Vec<Column>;

    /// One row; `now` in Unix seconds, for ages.
    fn cells(&self, value: &Value, now: i64) -> Vec<Value>;
}
