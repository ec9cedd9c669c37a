//! A definition's spec in the form in which it is validated: fields that are the same in all versions are moved to the
//! spec, and versions keep only what differs.

use serde_json::Value;

/// What stands either at the spec, for all versions, or at each version.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    /// Holds `openAPIV3Schema`.
    pub(super) validation: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: &'a [Value],
    pub(super) selectable: &'a [Value],
}

pub(super) struct Version<'a> {
    pub(super) name: &'a str,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) warning: Option<&'a str>,
    pub(super) parts: Parts<'a>,
}

pub(super) struct Spec<'a> {
    pub(super) group: &'a str,
    pub(super) scope: &'a str,
    pub(super) names: &'a Value,
    /// The name of the first version.
    pub(super) version: &'a str,
    pub(super) preserve_unknown: Option<bool>,
    pub(super) conversion: Option<&'a Value>,
    pub(super) shared: Parts<'a>,
    /// There is a list of versions, if only an empty one.
    pub(super) lists_versions: bool,
    pub(super) versions: Vec<Version<'a>>,
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn given<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|v| !v.is_null())
}

impl<'a> Parts<'a> {
    fn read(value: &'a Value, validation: &str) -> Self {
        Self {
            validation: given(value, validation),
            subresources: given(value, "subresources"),
            columns: list(value, "additionalPrinterColumns"),
            selectable: list(value, "selectableFields"),
        }
    }

    pub(super) fn document(&self) -> Option<&'a Value> {
        self.validation.and_then(|v| given(v, "openAPIV3Schema"))
    }

    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|s| given(s, "status").is_some())
    }
}

impl<'a> Spec<'a> {
    /// Reads a spec as it is, with fields at versions or at the spec.
    pub(super) fn read(spec: &'a Value) -> Self {
        let versions = list(spec, "versions").iter().map(|version| Version {
            name: text(version, "name"),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecated: version["deprecated"] == true,
            warning: version["deprecationWarning"].as_str(),
            parts: Parts::read(version, "schema"),
        });
        Self {
            group: text(spec, "group"),
            scope: text(spec, "scope"),
            names: &spec["names"],
            version: text(spec, "version"),
            preserve_unknown: spec["preserveUnknownFields"].as_bool(),
            conversion: given(spec, "conversion"),
            shared: Parts::read(spec, "validation"),
            lists_versions: spec["versions"].is_array(),
            versions: versions.collect(),
        }
    }

    /// Reads a spec of `v1` in the form that is validated.
    pub(super) fn unified(spec: &'a Value) -> Self {
        let mut spec = Self::read(spec);
        spec.unify();
        spec
    }

    fn unify(&mut self) {
        self.preserve_unknown.get_or_insert(false);
        let Some(first) = self.versions.first() else { return };
        self.version = first.name;
        let first = first.parts;
        let all =
            |same: fn(&Parts<'a>, &Parts<'a>) -> bool| self.versions.iter().all(|v| same(&v.parts, &first));
        let validation = all(|a, b| a.validation == b.validation);
        let subresources = all(|a, b| a.subresources == b.subresources);
        let columns = all(|a, b| a.columns == b.columns);
        let selectable = all(|a, b| a.selectable == b.selectable);
        for (shared, common) in [(&mut self.shared, true)]
            .into_iter()
            .chain(self.versions.iter_mut().map(|v| (&mut v.parts, false)))
        {
            let source = if common { first } else { Parts::default() };
            if validation {
                shared.validation = source.validation;
            }
            if subresources {
                shared.subresources = source.subresources;
            }
            if columns {
                shared.columns = source.columns;
            }
            if selectable {
                shared.selectable = source.selectable;
            }
        }
    }

    /// Every schema document, each once.
    pub(super) fn documents(&self) -> impl Iterator<Item = &'a Value> {
        let own = self.versions.iter().filter_map(|v| v.parts.document());
        self.shared.document().into_iter().chain(own)
    }

    /// The schema of a version; `Err` where that is ambiguous or the version unknown.
    pub(super) fn schema_of(&self, version: &str) -> Result<Option<&'a Value>, ()> {
        if self.versions.iter().all(|v| v.parts.validation.is_none()) {
            return Ok(self.shared.validation);
        }
        if self.shared.validation.is_some() {
            return Err(());
        }
        self.versions.iter().find(|v| v.name == version).map(|v| v.parts.validation).ok_or(())
    }

    /// Whether the status of a version is a subresource.
    pub(super) fn has_status(&self, version: &str) -> bool {
        if self.versions.iter().all(|v| v.parts.subresources.is_none()) {
            return self.shared.has_status();
        }
        self.versions.iter().find(|v| v.name == version).is_some_and(|v| v.parts.has_status())
    }

    pub(super) fn status_anywhere(&self) -> bool {
        self.shared.has_status() || self.versions.iter().any(|v| v.parts.has_status())
    }
}
