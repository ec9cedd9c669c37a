//! The definition of the composite resource: what it fills in, what it refuses, and the composite resource that a claim
//! stands for.

use super::admission::Admission;
use super::manifests::{self, Manifest};
use serde_json::{Value, json};
use std::path::Path;
use transom_compose::{Layout, child_name};
use transom_console::Failure;
use transom_object::error_chain::chain;
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::claim::{self, CompositeName};
use transom_xapi::composite::Composite;
use transom_xapi::derive::{self, Extensions};
use transom_xapi::{Definition, constants};

pub(crate) struct Defined {
    pub(crate) manifest: Manifest,
    definition: Definition,
}

impl Defined {
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let manifests = manifests::load(path, "the XRD")?;
        let found = manifests.iter().find(|m| meta::kind(&m.object) == constants::kind::XRD);
        let manifest = match (found, manifests.first()) {
            (Some(manifest), _) => manifest.clone(),
            (None, Some(other)) => {
                let what = format!("not a CompositeResourceDefinition: {}", other.title());
                return Err(other.wrong("/kind", what));
            }
            (None, None) => return Err(Failure::new(format!("there is no XRD in {}", path.display()))),
        };
        let definition = serde_json::from_value(manifest.object.clone()).map_err(|e| {
            manifest.wrong("/spec", format!("this is not a CompositeResourceDefinition: {e}"))
        })?;
        Ok(Self { manifest, definition })
    }

    /// A composite resource as an API server would store it. For a claim it is the composite resource that the control
    /// plane would create. What an API server would refuse is a warning: it is rendered all the same, as by Crossplane.
    pub(crate) fn admit(&self, manifest: Manifest) -> Result<Manifest, Failure> {
        let gv = GroupVersion::parse(meta::api_version(&manifest.object)).unwrap_or_default();
        let spec = &self.definition.spec;
        let is = |kind: &str| gv.group == spec.group && meta::kind(&manifest.object) == kind;
        let is_claim = spec.claim_names.as_ref().is_some_and(|names| is(&names.kind));
        if !is_claim && !is(&spec.names.kind) {
            return Ok(manifest);
        }
        let of_composite =
            self.admission(derive::composite_crd(&self.definition, Extensions::ALL), &gv.version)?;
        let mut admitted = manifest;
        if is_claim {
            let of_claim = self.admission(derive::claim_crd(&self.definition), &gv.version)?;
            warn(&of_claim, &admitted);
            of_claim.default(&mut admitted.object);
            admitted.object = self.composite_of(&admitted, &gv.with_kind(&spec.names.kind))?;
        } else {
            warn(&of_composite, &admitted);
        }
        of_composite.default(&mut admitted.object);
        Ok(admitted)
    }

    fn admission(&self, crd: Result<Value, derive::Error>, version: &str) -> Result<Admission, Failure> {
        let wrong = |why: String| self.manifest.wrong("/spec/versions", why);
        let crd = crd.map_err(|e| wrong(chain(&e)))?;
        let admission = Admission::of(&crd, version).ok_or_else(|| {
            wrong(format!("the specified API version '{version}' does not exist in the XRD"))
        })?;
        admission.map_err(|why| wrong(format!("its schema is invalid: {why}")))
    }

    /// The composite resource of a claim. A name that the control plane would generate is derived instead, so that it is
    /// the same every time.
    fn composite_of(&self, claim: &Manifest, of: &GroupVersionKind) -> Result<Value, Failure> {
        let object = &claim.object;
        let name = match claim::composite_name(object) {
            CompositeName::Bound(name) => name,
            CompositeName::Generate(prefix) => {
                let hash = child_name("", meta::namespace(object), meta::name(object));
                format!("{prefix}{}", hash.get(..5).unwrap_or(&hash))
            }
        };
        let enforced = self.definition.spec.enforced_composition_ref.is_some();
        let unbound = Composite::new(json!({}), Layout::Legacy);
        let bound = claim::bind(object, &unbound, of, &name, enforced)
            .map_err(|e| claim.wrong("/spec", format!("cannot render the claim {}: {e}", claim.title())))?;
        anstream::eprintln!(
            "note: {} is a claim; this is the {} {name} that the control plane would create for it",
            claim.title(),
            of.kind
        );
        Ok(bound.composite)
    }
}

fn warn(admission: &Admission, manifest: &Manifest) {
    for mut objection in admission.objections(&manifest.object) {
        let otherwise = match objection.is_unknown_field {
            true => "an API server would remove it",
            false => "an API server would refuse it; it is rendered all the same",
        };
        objection.remedy.get_or_insert_with(|| otherwise.to_owned());
        objection.at(manifest).warn();
    }
}
