//! `transom xpkg inspect`: what a package holds.

use super::origin::{self, Named, Opened, Origin};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use transom_console::{Failure, Format, table};
use transom_object::meta;
use transom_oci::ImageSource;
use transom_oci::image::{Descriptor, LAYER_ANNOTATION};
use transom_oci::layer::LayerLimits;
use transom_oci::package;
use transom_oci::signature::{self, SignedKind};
use transom_packages::meta::{Dependency, Target};
use transom_packages::{Credentials, Digest, Reference, RegistryError, stream};

/// Show what a package holds: digests, layers, dependencies, objects, signatures
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg inspect registry.example.org/acme/platform:v1.0.0            a package in a registry
  transom xpkg inspect platform.xpkg -o yaml                                a package in a file
  transom xpkg inspect registry.example.org/acme/platform:v1.0.0 --packages platform.tar    in a bundle")]
pub(crate) struct Inspect {
    /// The package: a reference with a tag or digest, or an .xpkg file
    #[arg(value_name = "REF|FILE")]
    package: String,

    /// How it is printed
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    origin: Origin,
}

pub(crate) async fn run(options: Inspect) -> Result<ExitCode, Failure> {
    let (named, report) = match Named::parse(&options.package)? {
        Named::File(path) => {
            let (image, reference) = origin::file(&path)?;
            let report = inspect(&image, &reference, &[]).await.map_err(|e| origin::explain(&e))?;
            (path.display().to_string(), report)
        }
        Named::Reference(reference) => {
            let opened = options.origin.open().await?;
            let report = in_registry(&opened, &reference).await?;
            (reference.to_string(), report)
        }
    };
    let package = stream::parse(&report.content).map_err(|e| Failure::new(format!("{named}: {e}")))?;
    let value = report.value(&named, &package);
    transom_console::print(options.output.write(&value, text).as_bytes())
}

async fn in_registry(opened: &Opened, reference: &Reference) -> Result<Report, Failure> {
    let with = opened.credentials(reference).await?;
    let digest = opened.registry().resolve(reference, &with).await.map_err(|e| opened.explain(&e))?;
    let report = inspect(opened.images(), &reference.at(digest), &with).await;
    report.map_err(|e| opened.explain(&e))
}

/// What was found out about an image.
struct Report {
    digest: Digest,
    layers: Vec<Descriptor>,
    content: transom_packages::Content,
    signatures: usize,
    attestations: usize,
    /// What refers to it: signatures, attestations, SBOMs.
    referrers: Vec<Descriptor>,
}

async fn inspect(
    source: &dyn ImageSource,
    reference: &Reference,
    with: &[Credentials],
) -> Result<Report, RegistryError> {
    let (digest, manifest) = package::image(source, reference, with).await?;
    let fetched = package::fetch(source, reference, with, LayerLimits::default()).await?;
    let signed =
        async |kind| signature::find(source, reference, &digest, kind, with).await.map(|all| all.len());
    let (signatures, attestations) =
        (signed(SignedKind::Signature).await?, signed(SignedKind::Attestation).await?);
    let referrers = source.referrers(reference, &digest, with).await?;
    let (layers, content) = (manifest.layers, fetched.content);
    Ok(Report { digest, layers, content, signatures, attestations, referrers })
}

impl Report {
    fn value(&self, named: &str, package: &stream::Package) -> Value {
        let layer = |layer: &Descriptor| {
            let content = match layer.annotations.get(LAYER_ANNOTATION).map(String::as_str) {
                Some("base") => "package",
                Some("upbound") => "examples",
                Some(other) => other,
                None => "runtime",
            };
            json!({
                "digest": layer.digest.as_str(), "bytes": layer.size, "mediaType": layer.media_type,
                "content": content,
            })
        };
        let object = |object: &stream::PackageObject| {
            let (api_version, kind) = (object.gvk.api_version(), &object.gvk.kind);
            json!({"apiVersion": api_version, "kind": kind, "name": meta::name(&object.value)})
        };
        json!({
            "package": named,
            "kind": package.kind.kind(),
            "name": package.meta.name,
            "digest": self.digest.as_str(),
            "crossplane": package.meta.crossplane,
            "capabilities": package.meta.capabilities,
            "dependencies": package.meta.dependencies.iter().map(dependency).collect::<Vec<_>>(),
            "layers": self.layers.iter().map(layer).collect::<Vec<_>>(),
            "contentDigest": Digest::of(&self.content).as_str(),
            "objects": package.objects.iter().map(object).collect::<Vec<_>>(),
            "signatures": self.signatures,
            "attestations": self.attestations,
            "referrers": self.referrers.iter().map(referrer).collect::<Vec<_>>(),
        })
    }
}

fn referrer(referrer: &Descriptor) -> Value {
    let kind = referrer.other.get("artifactType").and_then(Value::as_str).unwrap_or(&referrer.media_type);
    json!({"artifactType": kind, "digest": referrer.digest.as_str(), "bytes": referrer.size})
}

fn dependency(dependency: &Dependency) -> Value {
    let kind = match &dependency.target {
        Target::Object { kind, .. } => kind.as_str(),
        Target::Type(kind) => kind.kind(),
    };
    json!({"kind": kind, "package": dependency.package, "version": dependency.version})
}

/// The same for people.
fn text(value: &Value) -> String {
    let field = |value: &Value, name: &str| match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    line(format_args!("{} {}", field(value, "kind"), field(value, "name")));
    line(format_args!("  package       {}", field(value, "package")));
    line(format_args!("  digest        {}", field(value, "digest")));
    line(format_args!("  package.yaml  {}", field(value, "contentDigest")));
    if let Some(range) = value["crossplane"].as_str() {
        line(format_args!("  crossplane    {range}"));
    }
    let signed = "(not verified: see `transom xpkg verify`)";
    line(format_args!(
        "  signatures    {}, attestations {} {signed}",
        value["signatures"], value["attestations"]
    ));
    for (title, list, columns) in [
        ("Capabilities", "capabilities", &[][..]),
        ("Dependencies", "dependencies", &["kind", "package", "version"]),
        ("Layers", "layers", &["content", "bytes", "digest"]),
        ("Referrers", "referrers", &["artifactType", "bytes", "digest"]),
        ("Objects", "objects", &["kind", "name", "apiVersion"]),
    ] {
        let items = value[list].as_array().map(Vec::as_slice).unwrap_or_default();
        if items.is_empty() {
            continue;
        }
        line(format_args!("\n{title}"));
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| match item {
                Value::String(word) => vec![word.clone()],
                item => columns.iter().map(|column| field(item, column)).collect(),
            })
            .collect();
        table(&rows).iter().for_each(|row| line(format_args!("  {row}")));
    }
    out
}
