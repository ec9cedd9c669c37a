//! What is rendered, read from files and checked.

use super::manifests::{self, Manifest};
use super::options::Render;
use super::{runtime, shape};
use crate::failure::Failure;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use transom_compose::{Objects, Schema, schema_for};
use transom_object::meta;
use transom_xapi::composite::Composite;
use transom_xapi::definition::Definition;
use transom_xapi::derive::{Extensions, composite_crd};
use transom_xapi::{Composition, constants};

/// Everything a run reads.
pub(crate) struct Inputs {
    pub(crate) composites: Vec<Manifest>,
    pub(crate) compositions: Vec<(Manifest, Composition)>,
    pub(crate) functions: Option<Vec<Manifest>>,
    pub(crate) definition: Option<Manifest>,
    pub(crate) observed: Vec<Value>,
    /// The resources that functions may require, as given.
    pub(crate) required: Vec<Value>,
    /// Observed and required resources, credentials and schemas.
    pub(crate) world: Objects,
    pub(crate) context: Map<String, Value>,
}

impl Inputs {
    pub(crate) fn load(options: &Render) -> Result<Self, Failure> {
        let composites = composites(&options.composite)?;
        let compositions = compositions(&options.composition)?;
        let functions = options.functions.as_deref();
        let functions =
            functions.map(|path| runtime::load(path, &options.function_annotations)).transpose()?;
        let definition = options.xrd.as_deref().map(definition).transpose()?;
        let mut world = Objects::new();
        let mut required = Vec::new();
        for path in &options.required_resources {
            required.extend(objects(path, "required resources")?);
        }
        world.extend(required.iter().cloned());
        if let Some(path) = &options.function_credentials {
            world.extend(objects(path, "credentials")?.into_iter().map(runtime::as_secret));
        }
        let mut observed = Vec::new();
        for path in &options.observed_resources {
            observed.extend(objects(path, "observed resources")?);
        }
        world.extend(observed.iter().cloned());
        if let Some(dir) = &options.required_schemas {
            schemas(dir, &mut world)?;
        }
        let context = context(options)?;
        Ok(Self { composites, compositions, functions, definition, observed, required, world, context })
    }

    /// The composition for a composite resource, checked as Crossplane does.
    pub(crate) fn composition_for(&self, xr: &Manifest) -> Result<&(Manifest, Composition), Failure> {
        let fits = |(_, composition): &&(Manifest, Composition)| {
            let wanted = &composition.spec.composite_type_ref;
            wanted.kind == meta::kind(&xr.object) && wanted.api_version == meta::api_version(&xr.object)
        };
        let chosen = self.compositions.iter().find(fits).or_else(|| self.compositions.first());
        let Some(chosen @ (manifest, composition)) = chosen else {
            return Err(Failure::new("there is no Composition"));
        };
        check_type(xr, composition)?;
        check_labels(xr, composition, self.schema_of(xr)?)?;
        check_steps(manifest, composition)?;
        Ok(chosen)
    }

    pub(crate) fn schema_of(&self, xr: &Manifest) -> Result<Schema, Failure> {
        let definition = self.definition.as_ref();
        schema_for(&xr.object, definition.map(|manifest| &manifest.object)).map_err(|why| match definition {
            Some(manifest) => manifest.wrong("/spec/names/kind", why),
            None => Failure::new(why),
        })
    }

    /// The composite resource with the defaults of its definition.
    pub(crate) fn defaulted(&self, xr: &Manifest) -> Result<Value, Failure> {
        let mut object = xr.object.clone();
        let Some(manifest) = &self.definition else { return Ok(object) };
        let wrong = |why: String| manifest.wrong("/spec/versions", why);
        let definition: Definition = serde_json::from_value(manifest.object.clone())
            .map_err(|e| wrong(format!("this is no CompositeResourceDefinition: {e}")))?;
        let crd = composite_crd(&definition, Extensions::default()).map_err(|e| wrong(e.to_string()))?;
        let version = meta::api_version(&object).rsplit('/').next().unwrap_or_default().to_owned();
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let served = versions.into_iter().flatten().find(|v| v["name"] == version.as_str());
        let schema = served.and_then(|v| v.pointer("/schema/openAPIV3Schema")).ok_or_else(|| {
            wrong(format!("the specified API version '{version}' does not exist in the XRD"))
        })?;
        let schema = transom_schema::structural::parse(schema).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            wrong(format!("its schema is invalid: {}", errors.join(", ")))
        })?;
        transom_schema::normalize::default(&mut object, &schema);
        Ok(object)
    }
}

fn objects(path: &Path, what: &str) -> Result<Vec<Value>, Failure> {
    Ok(manifests::load(path, what)?.into_iter().map(|manifest| manifest.object).collect())
}

fn composites(path: &Path) -> Result<Vec<Manifest>, Failure> {
    let composites = manifests::load(path, "the composite resource")?;
    if composites.is_empty() {
        return Err(Failure::new(format!("there is no composite resource in {}", path.display())));
    }
    for xr in &composites {
        for field in ["apiVersion", "kind"] {
            if xr.object.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                return Err(xr.wrong("", format!("the composite resource has no {field}")));
            }
        }
        if meta::name(&xr.object).is_empty() {
            return Err(xr
                .wrong("/metadata", "the composite resource has no name")
                .remedy("set metadata.name: what it composes is named after it"));
        }
    }
    Ok(composites)
}

fn compositions(path: &Path) -> Result<Vec<(Manifest, Composition)>, Failure> {
    let manifests = manifests::load(path, "the Composition")?;
    if manifests.is_empty() {
        return Err(Failure::new(format!("there is no Composition in {}", path.display())));
    }
    let read = |manifest: Manifest| {
        let is_one = meta::kind(&manifest.object) == constants::kind::COMPOSITION
            && meta::api_version(&manifest.object) == constants::kind::APIEXTENSIONS_V1;
        if !is_one {
            return Err(manifest
                .wrong("/kind", format!("not a Composition: {}", manifest.title()))
                .remedy("the second argument names a Composition of apiextensions.crossplane.io/v1"));
        }
        shape::check_composition(&manifest)?;
        let composition = serde_json::from_value(manifest.object.clone())
            .map_err(|e| manifest.wrong("/spec", format!("this is no Composition: {e}")))?;
        Ok((manifest, composition))
    };
    manifests.into_iter().map(read).collect()
}

fn definition(path: &Path) -> Result<Manifest, Failure> {
    let manifests = manifests::load(path, "the XRD")?;
    let found = manifests.iter().find(|m| meta::kind(&m.object) == constants::kind::XRD);
    match (found, manifests.first()) {
        (Some(manifest), _) => Ok(manifest.clone()),
        (None, Some(other)) => {
            Err(other.wrong("/kind", format!("not a CompositeResourceDefinition: {}", other.title())))
        }
        (None, None) => Err(Failure::new(format!("there is no XRD in {}", path.display()))),
    }
}

fn check_type(xr: &Manifest, composition: &Composition) -> Result<(), Failure> {
    let wanted = &composition.spec.composite_type_ref;
    let pairs = [
        ("kind", &wanted.kind, meta::kind(&xr.object)),
        ("apiVersion", &wanted.api_version, meta::api_version(&xr.object)),
    ];
    for (field, wanted, given) in pairs {
        if wanted != given {
            let what = format!(
                "composition's compositeTypeRef.{field} ({wanted}) does not match XR's {field} ({given})"
            );
            return Err(xr
                .wrong(&format!("/{field}"), what)
                .remedy("give the Composition that is for this type"));
        }
    }
    Ok(())
}

/// A composite resource that selects its composition by labels would not have selected one without them.
fn check_labels(xr: &Manifest, composition: &Composition, schema: Schema) -> Result<(), Failure> {
    let selector = Composite::new(xr.object.clone(), schema).composition_selector().unwrap_or_default();
    let pointer = match schema {
        Schema::Legacy => "/spec/compositionSelector/matchLabels",
        Schema::Modern => "/spec/crossplane/compositionSelector/matchLabels",
    };
    let name = &composition.metadata.name;
    for (key, wanted) in &selector.match_labels {
        let what = match composition.metadata.label(key) {
            None => format!("composition {name:?} is missing required label {key:?}"),
            Some(given) if given != wanted => {
                format!(
                    "composition {name:?} has incorrect value for label {key:?}: want {wanted:?}, got {given:?}"
                )
            }
            Some(_) => continue,
        };
        return Err(xr.wrong(&format!("{pointer}/{}", key.replace('/', "~1")), what));
    }
    Ok(())
}

fn check_steps(manifest: &Manifest, composition: &Composition) -> Result<(), Failure> {
    let mode = &composition.spec.mode;
    if !mode.is_empty() && mode != "Pipeline" && mode != "Resources" {
        let what = format!("unknown mode {mode:?}");
        return Err(manifest.wrong("/spec/mode", what).remedy("use Pipeline"));
    }
    let mut names = BTreeSet::new();
    for (index, step) in composition.spec.pipeline.iter().enumerate() {
        let wrong =
            |field: &str, what: String| Err(manifest.wrong(&format!("/spec/pipeline/{index}{field}"), what));
        if step.step.is_empty() {
            return wrong("", "the pipeline step has no name".to_owned());
        }
        if !names.insert(&step.step) {
            return wrong("/step", format!("there are two pipeline steps named {:?}", step.step));
        }
        if step.function_ref.name.is_empty() {
            return wrong("/functionRef", format!("pipeline step {:?} calls no function", step.step));
        }
        if step.input.as_ref().is_some_and(|input| !input.is_object()) {
            return wrong("/input", format!("the input of pipeline step {:?} is not an object", step.step));
        }
    }
    Ok(())
}

/// Reads every JSON file below a directory.
fn schemas(dir: &Path, world: &mut Objects) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read schemas from {}: {e}", dir.display()));
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(cannot)? {
        entries.push(entry.map_err(cannot)?.path());
    }
    entries.sort();
    for path in entries {
        // Links to directories may lead back up.
        if path.is_dir() && !path.is_symlink() {
            schemas(&path, world)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            objects(&path, "schemas")?.into_iter().for_each(|document| world.add_schemas(document));
        }
    }
    Ok(())
}

fn context(options: &Render) -> Result<Map<String, Value>, Failure> {
    let mut context = Map::new();
    for (key, file) in &options.context_files {
        let text = std::fs::read_to_string(file).map_err(|e| {
            Failure::new(format!("cannot read context value for key {key:?} from {file}: {e}"))
        })?;
        context.insert(key.clone(), manifests::value(&text, file)?);
    }
    for (key, text) in &options.context_values {
        context.insert(key.clone(), manifests::value(text, &format!("the value of context key {key:?}"))?);
    }
    Ok(context)
}
