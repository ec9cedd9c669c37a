//! What is rendered, read from files and checked.

use super::admission::Admission;
use super::definition::Defined;
use super::manifests::{self, Manifest};
use super::options::Render;
use super::runtime;
use serde_json::{Map, Value};
use std::path::Path;
use transom_compose::offline::layout_for;
use transom_compose::{Layout, Objects};
use transom_console::Failure;
use transom_object::meta;
use transom_xapi::composite::Composite;
use transom_xapi::{Composition, constants};

/// Everything a run reads.
pub(crate) struct Inputs {
    pub(crate) composites: Vec<Manifest>,
    pub(crate) compositions: Vec<(Manifest, Composition)>,
    pub(crate) functions: Option<Vec<Manifest>>,
    pub(crate) definition: Option<Defined>,
    pub(crate) observed: Vec<Value>,
    /// The resources that functions may require.
    pub(crate) required: Vec<Value>,
    /// Observed and required resources, credentials and schemas.
    pub(crate) world: Objects,
    pub(crate) context: Map<String, Value>,
}

impl Inputs {
    pub(crate) fn load(options: &Render) -> Result<Self, Failure> {
        let mut composites = composites(&options.composite)?;
        let compositions = compositions(&options.composition)?;
        let functions = options.functions.as_deref();
        let functions =
            functions.map(|path| runtime::load(path, &options.function_annotations)).transpose()?;
        let definition = options.xrd.as_deref().map(Defined::load).transpose()?;
        if let Some(definition) = &definition {
            composites = composites.into_iter().map(|xr| definition.admit(xr)).collect::<Result<_, _>>()?;
        }
        let mut world = Objects::new();
        let mut required = Vec::new();
        for path in &options.required_resources {
            required.extend(objects(path, "required resources")?.into_iter().flat_map(in_every_version));
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
        let Some(chosen @ (_, composition)) = chosen else {
            return Err(Failure::new("there is no Composition"));
        };
        self.check_type(xr, composition)?;
        check_labels(xr, composition, self.layout_of(xr)?)?;
        Ok(chosen)
    }

    pub(crate) fn layout_of(&self, xr: &Manifest) -> Result<Layout, Failure> {
        let definition = self.definition.as_ref().map(|definition| &definition.manifest);
        layout_for(&xr.object, definition.map(|manifest| &manifest.object)).map_err(|why| match definition {
            Some(manifest) => manifest.wrong("/spec/names/kind", why.to_string()),
            None => Failure::new(why.to_string()),
        })
    }

    fn check_type(&self, xr: &Manifest, composition: &Composition) -> Result<(), Failure> {
        let wanted = &composition.spec.composite_type_ref;
        let pairs = [
            ("kind", &wanted.kind, meta::kind(&xr.object)),
            ("apiVersion", &wanted.api_version, meta::api_version(&xr.object)),
        ];
        let Some((field, wanted, given)) = pairs.into_iter().find(|(_, wanted, given)| wanted != given)
        else {
            return Ok(());
        };
        let what = format!(
            "composition's compositeTypeRef.{field} ({wanted}) does not match XR's {field} ({given})"
        );
        let remedy = match (field, &self.definition) {
            ("kind", None) => {
                "give the Composition that is for this type; if this is a claim, give its definition with --xrd"
            }
            _ => "give the Composition that is for this type",
        };
        Err(xr.wrong(&format!("/{field}"), what).remedy(remedy))
    }
}

/// An object in the versions that an API server serves it in. Only EnvironmentConfigs have two.
fn in_every_version(object: Value) -> Vec<Value> {
    const VERSIONS: [&str; 2] =
        ["apiextensions.crossplane.io/v1alpha1", "apiextensions.crossplane.io/v1beta1"];
    if meta::kind(&object) != "EnvironmentConfig" || !VERSIONS.contains(&meta::api_version(&object)) {
        return vec![object];
    }
    let served = |version: &str| {
        let mut object = object.clone();
        object["apiVersion"] = version.into();
        object
    };
    VERSIONS.map(served).into()
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
        check_composition(&manifest)?;
        let composition = serde_json::from_value(manifest.object.clone())
            .map_err(|e| manifest.wrong("/spec", format!("this is not a Composition: {e}")))?;
        Ok((manifest, composition))
    };
    manifests.into_iter().map(read).collect()
}

/// Refuses what an API server would refuse.
fn check_composition(manifest: &Manifest) -> Result<(), Failure> {
    let crd =
        transom_xapi::crds::crds().find(|crd| crd["spec"]["names"]["kind"] == constants::kind::COMPOSITION);
    let Some(admission) = crd.as_ref().and_then(|crd| Admission::of(crd, "v1")) else { return Ok(()) };
    let admission = admission.map_err(Failure::new)?;
    let refused = admission.objections(&manifest.object);
    Failure::all(refused.into_iter().map(|objection| objection.at(manifest)))
}

/// A composite resource that selects its composition by labels would not have selected one without them.
fn check_labels(xr: &Manifest, composition: &Composition, layout: Layout) -> Result<(), Failure> {
    let selector = Composite::new(xr.object.clone(), layout).composition_selector().unwrap_or_default();
    let pointer = match layout {
        Layout::Legacy => "/spec/compositionSelector/matchLabels",
        Layout::Modern => "/spec/crossplane/compositionSelector/matchLabels",
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
