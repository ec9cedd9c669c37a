//! `transom xpkg get-crds`: the CRDs that packages bring, as files.

use super::ResultFormat;
use super::bundle::{Resolution, is_left_out};
use super::files::{self, Selection};
use super::origin::{self, Named, Opened, Origin};
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::Failure;
use transom_object::{meta, yaml};
use transom_oci::layer::LayerLimits;
use transom_oci::layout::LocalRegistry;
use transom_packages::constraint::{VersionConstraint, highest, versions};
use transom_packages::meta::Meta;
use transom_packages::{PackageKind, Reference, stream};
use transom_xapi::{Definition, derive};

/// Write the CRDs of packages to files
///
/// Sources are packages (references, .xpkg files, bundles), YAML files and folders of them, or - for stdin, separated by
/// commas. Of YAML files, the packages that they install or depend on count, and CRDs and definitions themselves.
/// Definitions (XRDs) become the CRDs that a control plane makes of them. Dependencies are included.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg get-crds crossplane.yaml -o crds                            of all dependencies of a package
  transom xpkg get-crds registry.example.org/acme/platform:v1.0.0 --flat   of a package, into this folder
  transom xpkg get-crds providers/,xrds/ -o schemas --json-schema          for the YAML support of an editor
  transom xpkg get-crds platform.tar -o crds                               of all packages of a bundle")]
pub(crate) struct GetCrds {
    /// Where CRDs come from, separated by commas
    #[arg(value_name = "SOURCES", required = true, value_delimiter = ',')]
    extensions: Vec<String>,

    /// The folder to write to
    #[arg(short = 'o', long, value_name = "DIR", default_value = ".")]
    output_dir: PathBuf,

    /// All files in one folder, not by group and version
    #[arg(long)]
    flat: bool,

    /// JSON schemas, one for each version, instead of CRDs
    #[arg(long)]
    json_schema: bool,

    /// Where packages are kept [default: $XDG_CACHE_HOME/transom/xpkg or ~/.cache/transom/xpkg]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    /// Keep no packages
    #[arg(long)]
    no_cache: bool,

    /// Remove all packages that are kept first
    #[arg(long)]
    clean_cache: bool,

    /// The same: packages are kept by digest, so none of them is ever out of date
    #[arg(long)]
    update_cache: bool,

    /// Not needed: the CRDs of Crossplane itself are not written
    #[arg(long, value_name = "IMAGE", hide = true)]
    crossplane_image: Option<String>,

    /// Leave out functions that are built into Transom: their packages need not be in a registry
    #[arg(long)]
    without_builtins: bool,

    #[command(flatten)]
    result: ResultFormat,

    #[command(flatten)]
    origin: Origin,
}

pub(crate) async fn run(options: GetCrds) -> Result<ExitCode, Failure> {
    let mut opened = options.origin.open().await?;
    if !options.no_cache {
        let clean = options.clean_cache || options.update_cache;
        opened = opened.cached(options.cache_dir.as_deref(), clean).await?;
    }
    let mut collected = Collected { without_builtins: options.without_builtins, ..Collected::default() };
    for source in options.extensions.iter().filter(|source| !source.is_empty()) {
        collected.add(source).await?;
    }
    collected.add_wanted(&opened).await?;
    if collected.crds.is_empty() {
        return Err(Failure::new("there are no CRDs")
            .remedy("name packages, or files with Providers, Configurations, Functions, XRDs or CRDs"));
    }
    let (files, kind) = match options.json_schema {
        true => {
            (collected.crds.values().flat_map(|crd| schemas(crd, options.flat)).collect(), "JSON Schemas")
        }
        false => (collected.crds.values().map(|crd| file(crd, options.flat)).collect::<Vec<_>>(), "CRDs"),
    };
    let (mut printed, mut paths) = (String::new(), Vec::new());
    for (name, text) in &files {
        let path = options.output_dir.join(name);
        write(&path, text)?;
        printed.push_str(&format!("wrote {}\n", path.display()));
        paths.push(path.display().to_string());
    }
    printed.push_str(&format!("Total {} {kind} written to {}\n", files.len(), options.output_dir.display()));
    options
        .result
        .print(&json!({"directory": options.output_dir.display().to_string(), "files": paths}), &printed)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    written.map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", path.display())).remedy("-o names another folder")
    })
}

/// What was found in the sources.
#[derive(Default)]
struct Collected {
    /// By name. Of several with one name, the first counts: files come before packages.
    crds: BTreeMap<String, Value>,
    /// Packages to read, with their dependencies.
    references: Vec<Reference>,
    /// Dependencies to choose a version of: source and constraint.
    dependencies: BTreeSet<(String, String)>,
    /// Whether dependencies on functions that are built in are left out.
    without_builtins: bool,
}

impl Collected {
    async fn add(&mut self, source: &str) -> Result<(), Failure> {
        let path = Path::new(source);
        if source == "-" {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|e| Failure::new(format!("cannot read stdin: {e}")))?;
            return self.add_text("stdin", &text);
        }
        if path.is_dir() && !path.join("oci-layout").exists() {
            let found = Selection::new(path, None, &[])?.files()?;
            let packages = super::files::packages_in(path)?;
            for package in &packages {
                self.add_package(&read_file(package).await?)?;
            }
            if found.is_empty() && packages.is_empty() {
                return Err(Failure::new(format!("{source} has neither YAML nor *.xpkg files")));
            }
            return self.add_files(&found);
        }
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml {
            return self.add_files(&[path.to_owned()]);
        }
        if path.is_dir() || path.is_file() && path.extension().is_some_and(|extension| extension != "xpkg") {
            return self.add_bundle(path).await;
        }
        match Named::parse(source)? {
            Named::File(path) => self.add_package(&read_file(&path).await?),
            Named::Reference(reference) => {
                self.references.push(reference);
                Ok(())
            }
        }
    }

    fn add_files(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        for file in files::read(paths)? {
            let name = file.path.display().to_string();
            let text = String::from_utf8(file.bytes);
            let text = text.map_err(|_| Failure::new(format!("{name} is not UTF-8")))?;
            self.add_text(&name, &text)?;
        }
        Ok(())
    }

    fn add_text(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let documents = yaml::read_documents(text)
            .map_err(|e| Failure::new(format!("{name}:{}:{}: {}", e.line, e.column, e.message)))?;
        documents.iter().try_for_each(|document| {
            let failed = |e: Failure| Failure::new(format!("{name}:{}: {}", document.line, plain(&e)));
            self.add_object(&document.value).map_err(failed)
        })
    }

    /// A CRD, a definition, a package object, or the meta object of a package; all else does not count.
    fn add_object(&mut self, object: &Value) -> Result<(), Failure> {
        if let Some(meta) = Meta::read(object) {
            let meta = meta.map_err(|e| Failure::new(e.to_string()))?;
            self.depend(&meta);
            return Ok(());
        }
        let kind = PackageKind::of_package(meta::api_version(object), meta::kind(object));
        if kind.is_some() {
            let package = object.pointer("/spec/package").and_then(Value::as_str).unwrap_or_default();
            self.references.push(origin::reference(package)?);
            return Ok(());
        }
        match meta::kind(object) {
            "CustomResourceDefinition" => self.keep(object.clone()),
            "CompositeResourceDefinition" => {
                let failed = |e: String| Failure::new(format!("{}: {e}", meta::name(object)));
                let xrd: Definition =
                    serde_json::from_value(object.clone()).map_err(|e| failed(e.to_string()))?;
                let composite = derive::composite_crd(&xrd, derive::Extensions::ALL);
                self.keep(composite.map_err(|e| failed(e.to_string()))?);
                if xrd.offers_claim() {
                    self.keep(derive::claim_crd(&xrd).map_err(|e| failed(e.to_string()))?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, crd: Value) {
        self.crds.entry(meta::name(&crd).to_owned()).or_insert(crd);
    }

    fn depend(&mut self, meta: &Meta) {
        let dependencies =
            meta.dependencies.iter().filter(|d| !is_left_out(&d.package, self.without_builtins));
        self.dependencies.extend(dependencies.map(|d| (d.package.clone(), d.version.clone())));
    }

    /// A package in a file, and what it depends on.
    fn add_package(&mut self, package: &stream::Package) -> Result<(), Failure> {
        self.depend(&package.meta);
        package.objects.iter().try_for_each(|object| self.add_object(&object.value))
    }

    async fn add_bundle(&mut self, path: &Path) -> Result<(), Failure> {
        let local = LocalRegistry::open(path, LayerLimits::default()).await;
        let local = local.map_err(|e| origin::explain(&e))?;
        for package in local.packages() {
            let Some(reference) = package.reference else { continue };
            let fetched = transom_packages::Registry::fetch(&local, &reference.at(package.digest), &[]).await;
            let fetched = fetched.map_err(|e| origin::explain(&e))?;
            let content = stream::parse(&fetched.content);
            let content = content.map_err(|e| Failure::new(format!("{reference}: {e}")))?;
            // What it depends on is in the bundle as well.
            content.objects.iter().try_for_each(|object| self.add_object(&object.value))?;
        }
        Ok(())
    }

    /// Reads the packages that are wanted, and all that they depend on.
    async fn add_wanted(&mut self, opened: &Opened) -> Result<(), Failure> {
        let mut wanted = std::mem::take(&mut self.references);
        for (source, constraint) in std::mem::take(&mut self.dependencies) {
            let repository = Reference::parse_source(&source).map_err(|e| Failure::new(e.to_string()))?;
            if !wanted.iter().any(|reference| reference.source() == source) {
                wanted.push(newest(opened, &repository, &constraint).await?);
            }
        }
        wanted.sort();
        wanted.dedup();
        let mut resolution = Resolution::new(opened, &wanted, self.without_builtins)?;
        resolution.resolve().await?;
        for (reference, _) in resolution.chosen() {
            let package = opened.package(&reference).await?;
            package.objects.iter().try_for_each(|object| self.add_object(&object.value))?;
        }
        Ok(())
    }
}

fn plain(failure: &Failure) -> String {
    let text = failure.to_string();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// The highest version of a repository that a constraint allows.
async fn newest(opened: &Opened, repository: &Reference, constraint: &str) -> Result<Reference, Failure> {
    let source = repository.source();
    let range = VersionConstraint::parse(constraint);
    let range = range.map_err(|e| Failure::new(format!("{source}: {e}")))?;
    if let Some(digest) = range.digest() {
        return Ok(repository.at(digest.clone()));
    }
    let with = opened.credentials(repository).await?;
    let tags = opened.registry().tags(repository, &with).await.map_err(|e| opened.explain(&e))?;
    let known = versions(&tags);
    let version = highest(&known, &[&range]);
    let version = version.ok_or_else(|| Failure::new(format!("{source} has no version in {constraint}")))?;
    repository.at_version(&version.original).map_err(|e| Failure::new(format!("{source}: {e}")))
}

async fn read_file(path: &Path) -> Result<stream::Package, Failure> {
    let (image, reference) = origin::file(path)?;
    let fetched = transom_oci::package::fetch(&image, &reference, &[], LayerLimits::default()).await;
    let fetched = fetched.map_err(|e| origin::explain(&e))?;
    stream::parse(&fetched.content).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
}

fn text<'a>(crd: &'a Value, path: &str) -> &'a str {
    crd.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn all_versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The file of a CRD, relative to the folder.
fn file(crd: &Value, flat: bool) -> (PathBuf, String) {
    let versions = all_versions(crd);
    let stored = versions.iter().find(|version| version["storage"] == true).or(versions.first());
    let version = stored.and_then(|version| version["name"].as_str()).unwrap_or_default();
    let kind = text(crd, "/spec/names/kind").to_lowercase();
    let path = match flat {
        true => PathBuf::from(format!("{}.yaml", meta::name(crd))),
        false => Path::new(text(crd, "/spec/group")).join(version).join(format!("{kind}.yaml")),
    };
    (path, yaml::write(crd))
}

/// The files of the JSON schemas of a CRD.
fn schemas(crd: &Value, flat: bool) -> Vec<(PathBuf, String)> {
    let (group, kind) = (text(crd, "/spec/group"), text(crd, "/spec/names/kind"));
    let lower = kind.to_lowercase();
    let schema = |version: &Value| {
        let name = version["name"].as_str()?;
        let mut schema = version.pointer("/schema/openAPIV3Schema")?.clone();
        close(&mut schema);
        let fields = schema.as_object_mut()?;
        fields.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        fields.insert("$id".to_owned(), format!("{group}/{name}/{lower}.json").into());
        let gvk = json!([{"group": group, "version": name, "kind": kind}]);
        fields.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
        let path = match flat {
            true => PathBuf::from(format!("{group}_{name}_{lower}.json")),
            false => Path::new(group).join(name).join(format!("{lower}.json")),
        };
        Some((path, format!("{schema:#}\n")))
    };
    all_versions(crd).iter().filter_map(schema).collect()
}

/// Objects have no fields but those of their schema, so that an editor reports others.
fn close(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    let open = fields.contains_key("additionalProperties")
        || fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        || fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if fields.contains_key("properties") && !open {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    for key in ["properties", "patternProperties"] {
        let inner = fields.get_mut(key).and_then(Value::as_object_mut);
        inner.into_iter().flat_map(|inner| inner.values_mut()).for_each(close);
    }
    for key in ["items", "additionalProperties"] {
        fields.get_mut(key).into_iter().for_each(close);
    }
}
