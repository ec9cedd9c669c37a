//! `transom xpkg push`: from files to a registry.

use super::origin::{self, Trust};
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::{Failure, Format};
use transom_oci::image::ImageConfig;
use transom_oci::remote::{Progress, RemoteRegistry};
use transom_oci::tarball::Tarball;
use transom_oci::{ImageParts, index_of};
use transom_packages::{Credentials, Digest, Reference, RegistryError};

/// Push a package to a registry
///
/// Prints the digest that the package has there. Several files, one for each platform, become one package.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg push registry.example.org/acme/platform:v1.0.0                        the only package in this folder
  transom xpkg push registry.example.org/acme/platform:v1.0.0 -f platform.xpkg       a package by name
  transom xpkg push registry.example.org/acme/function:v1.0.0 -f amd64.xpkg,arm64.xpkg    for several platforms
  transom xpkg push registry.example.org/acme/platform                               by its digest, without a tag

Credentials are those of `docker login`: DOCKER_CONFIG or ~/.docker/config.json, with credential helpers.")]
pub(crate) struct Push {
    /// Where to: a reference with a tag; without one, the package is pushed by its digest alone
    #[arg(value_name = "REF")]
    package: String,

    /// The packages; by default the only *.xpkg file in the current folder
    #[arg(short = 'f', long, alias = "package", value_name = "FILE", value_delimiter = ',')]
    package_files: Vec<PathBuf>,

    /// An annotation of the manifest; may be repeated
    #[arg(short = 'a', long, value_name = "KEY=VALUE", value_parser = annotation)]
    oci_annotation: Vec<(String, String)>,

    #[command(flatten)]
    trust: Trust,

    /// How the result is printed: the digest alone, or with the reference
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

pub(super) fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it like KEY=VALUE".to_owned()),
    }
}

pub(crate) async fn run(options: Push) -> Result<ExitCode, Failure> {
    let reference = target(&options.package)?;
    let annotations: BTreeMap<String, String> = options.oci_annotation.into_iter().collect();
    let files = match options.package_files.is_empty() {
        true => vec![origin::only_package()?],
        false => options.package_files,
    };
    let images = files.iter().map(|path| load(path, &annotations)).collect::<Result<Vec<_>, _>>()?;
    let (registry, config) = origin::remote(&options.trust)?;
    let with = origin::credentials(&config, &reference).await?;
    let pushed = upload(&registry, &reference, &images, &annotations, &with).await;
    let digest = pushed.map_err(|e| origin::explain(&e))?;
    let package = match reference.tag {
        Some(_) => reference.to_string(),
        None => reference.at(digest.clone()).to_string(),
    };
    let result = json!({"package": package, "digest": digest.as_str()});
    transom_console::print(options.output.write(&result, |_| format!("{digest}\n")).as_bytes())
}

/// Where to push: a tag, or a repository alone, for the digest of the package.
fn target(text: &str) -> Result<Reference, Failure> {
    if let Ok(repository) = Reference::parse_source(text) {
        return Ok(repository);
    }
    let reference = origin::reference(text)?;
    if reference.digest.is_some() {
        let what = format!("{reference} cannot be pushed to: the digest follows from the package");
        return Err(Failure::new(what).remedy("end it in a tag, such as :v1.0.0, or in the repository"));
    }
    Ok(reference)
}

/// Pushes one image, or an index of several.
pub(super) async fn upload(
    registry: &RemoteRegistry,
    reference: &Reference,
    images: &[(ImageParts, ImageConfig)],
    annotations: &BTreeMap<String, String>,
    with: &[Credentials],
) -> Result<Digest, RegistryError> {
    let report = std::io::stderr().is_terminal();
    let listener = move |progress: Progress| {
        if report {
            show(&progress);
        }
    };
    match images {
        [(image, _)] => registry.push(reference, image, with, &listener).await,
        several => {
            let index = index_of(several, annotations.clone());
            let images: Vec<ImageParts> = several.iter().map(|(image, _)| image.clone()).collect();
            registry.push_index(reference, &images, &index, with, &listener).await
        }
    }
}

pub(crate) fn load(
    path: &Path,
    annotations: &BTreeMap<String, String>,
) -> Result<(ImageParts, ImageConfig), Failure> {
    let image = Tarball::open(path).and_then(|archive| archive.single());
    let image =
        image.map_err(|e| origin::explain(&e).remedy("give a file that `transom xpkg build` wrote"))?;
    let parts = image.annotated(annotations).map_err(|e| origin::explain(&e))?;
    Ok((parts, image.config))
}

fn show(progress: &Progress) {
    super::progress::clear();
    match progress {
        Progress::BlobExists { digest, size } => anstream::eprintln!("exists   {digest} ({size} bytes)"),
        Progress::BlobPushed { digest, size } => anstream::eprintln!("pushed   {digest} ({size} bytes)"),
        Progress::ManifestPushed(digest) => anstream::eprintln!("manifest {digest}"),
    }
}
