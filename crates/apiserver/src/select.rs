//! Selection of the objects of a collection by namespace, labels and fields.

use crate::resource::Resource;
use std::borrow::Cow;
use std::sync::Arc;
use transom_object::{Status, fields, labels};
use transom_store::Entry;

/// Label and field selectors against stored entries. Labels and names are in the header; only other fields
/// make an entry be decoded.
pub(crate) struct Filter {
    resource: Arc<Resource>,
    /// Empty: all namespaces.
    namespace: String,
    labels: labels::Selector,
    fields: fields::Selector,
    decodes: bool,
}

/// Whether `metadata.namespace` is a field selector of the resource: Namespaces and cluster-scoped custom kinds have none.
fn has_namespace_label(resource: &Resource) -> bool {
    resource.namespaced || (resource.definition.is_none() && !resource.is_namespace())
}

impl Filter {
    pub(crate) fn new(
        resource: Arc<Resource>,
        namespace: &str,
        label_selector: &str,
        field_selector: &str,
    ) -> Result<Self, Status> {
        let labels = labels::Selector::parse(label_selector);
        let labels = labels.map_err(|e| Status::bad_request(e.to_string()))?;
        let fields = fields::Selector::parse(field_selector);
        let fields = fields.map_err(|e| Status::bad_request(e.to_string()))?;
        let mut decodes = false;
        for requirement in fields.requirements() {
            match requirement.field.as_str() {
                "metadata.name" => {}
                "metadata.namespace" if has_namespace_label(&resource) => {}
                label if resource.strategy.selectable_fields().iter().any(|f| f == label) => decodes = true,
                label if resource.strategy.is_typed() && resource.strategy.selectable_fields().is_empty() => {
                    return Err(Status::bad_request(format!(
                        "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )));
                }
                label => return Err(Status::bad_request(format!("field label not supported: {label}"))),
            }
        }
        Ok(Self { resource, namespace: namespace.to_owned(), labels, fields, decodes })
    }

    /// No selector at all.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The only name that can match, if the field selector pins one.
    pub(crate) fn pinned_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        let header = &entry.header;
        if !self.namespace.is_empty() && header.namespace != self.namespace {
            return false;
        }
        if !self.labels.matches(&header.labels) {
            return false;
        }
        if self.fields.is_everything() {
            return true;
        }
        let decoded = if self.decodes { self.resource.decode(entry).ok() } else { None };
        self.fields.matches(|label| match label {
            "metadata.name" => Some(Cow::Borrowed(header.name.as_str())),
            "metadata.namespace" => Some(Cow::Borrowed(header.namespace.as_str())),
            _ => decoded.as_ref().map(|v| Cow::Owned(self.resource.strategy.selectable_value(v, label))),
        })
    }
}
