//! `transom xpkg build`: makes a package of the files in a folder.

use super::ResultFormat;
use super::files::{self, Selection};
use super::origin;
use super::stream::Stream;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::Failure;
use transom_oci::tarball::{self, TarImage, Tarball};
use transom_packages::{Digest, names, stream};

/// Build a package from the YAML files of a folder
///
/// The folder has crossplane.yaml, a Configuration, Provider or Function of meta.pkg.crossplane.io/v1, and the objects
/// that the package holds. The same files make the same package, byte for byte. Prints the path of the package to
/// stdout, and to stderr the digest that it will have in a registry.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg build                                         the package of this folder, named after its content
  transom xpkg build -f ./package -o platform.xpkg           of another folder, to a file of this name
  transom xpkg build --ignore 'ci/*.yaml,notes.yaml'         without some of the files
  transom xpkg build --embed-runtime-image-tarball runtime.tar    a Function or Provider with what it runs")]
pub(crate) struct Build {
    /// The folder with the files of the package
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    package_root: PathBuf,

    /// The folder with examples, which are kept beside the package; by default ./examples, or, if there is none,
    /// examples in the package root
    #[arg(short = 'e', long, value_name = "DIR")]
    examples_root: Option<PathBuf>,

    /// Files and folders to leave out, relative to the package root; `*`, `?` and `[a-z]` stand for characters
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    ignore: Vec<String>,

    /// The file to write; by default NAME-DIGEST.xpkg in the package root
    #[arg(short = 'o', long, value_name = "FILE")]
    package_file: Option<PathBuf>,

    /// What the file is named after instead of the package. A former flag: -o names the file
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "package_file")]
    name: Option<String>,

    /// The image that a Provider or Function runs, in the Docker daemon of this machine
    #[arg(long, value_name = "IMAGE", conflicts_with = "embed_runtime_image_tarball")]
    embed_runtime_image: Option<String>,

    /// The image that a Provider or Function runs, as `docker save` writes it
    #[arg(long, value_name = "FILE")]
    embed_runtime_image_tarball: Option<PathBuf>,

    #[command(flatten)]
    result: ResultFormat,

    /// Where the file is written if it is not named, instead of the package root.
    #[arg(skip)]
    output_folder: Option<PathBuf>,
}

impl Build {
    /// The package of a folder, for a command that makes the runtime image itself.
    pub(crate) fn of_folder(package_root: PathBuf, examples_root: PathBuf, output_folder: PathBuf) -> Self {
        Self {
            package_root,
            examples_root: Some(examples_root),
            ignore: Vec::new(),
            package_file: None,
            name: None,
            embed_runtime_image: None,
            embed_runtime_image_tarball: None,
            result: ResultFormat::TEXT,
            output_folder: Some(output_folder),
        }
    }

    /// The same, written to a file.
    pub(crate) fn with_file(mut self, file: Option<PathBuf>) -> Self {
        self.package_file = file;
        self
    }
}

pub(crate) fn run(options: &Build) -> Result<ExitCode, Failure> {
    if let Some(name) = &options.embed_runtime_image {
        let saved = |scratch: &Path| {
            let path = scratch.join("runtime.tar");
            super::block_on(origin::from_daemon(name, &path))?;
            runtime_image(&path)
        };
        return assemble(options, Some(saved));
    }
    let tarball = options.embed_runtime_image_tarball.as_deref();
    let image = tarball.map(|path| move |_: &Path| runtime_image(path));
    assemble(options, image)
}

/// Builds a package with the runtime image that the function makes, which may use the given folder until the package is written.
pub(crate) fn assemble(
    options: &Build,
    image: Option<impl FnOnce(&Path) -> Result<TarImage, Failure>>,
) -> Result<ExitCode, Failure> {
    let read = read(options)?;
    let output_folder = options.output_folder.as_ref().unwrap_or(&options.package_root);
    let scratch = Scratch::new(options.package_file.as_deref(), output_folder);
    let base = match image {
        None => None,
        Some(image) => {
            scratch.create()?;
            Some(image(&scratch.0)?)
        }
    };
    let rendered = stream::render(&read.package);
    let content = tarball::Package {
        stream: rendered.as_bytes(),
        examples: read.examples.as_deref(),
        base: base.as_ref(),
    };
    let image = tarball::build(content, &scratch.0).map_err(|e| origin::explain(&e))?;
    let default_name = || {
        let name = options.name.as_ref().unwrap_or(&read.package.meta.name);
        let name = names::friendly_id(name, image.digest.hex());
        output_folder.join(format!("{name}.xpkg"))
    };
    let path = options.package_file.clone().unwrap_or_else(default_name);
    tarball::write(&[(&image, &[])], &path).map_err(|e| {
        origin::explain(&e).remedy("the folder must exist and be writable; -o names another file")
    })?;
    let digest = pushed_digest(&path)?;
    let (kind, name) = (read.package.kind.kind(), &read.package.meta.name);
    anstream::eprintln!("{kind} {name}, digest {digest}");
    let path = path.display().to_string();
    let result = json!({"path": path, "kind": kind, "name": name, "digest": digest.as_str()});
    options.result.print(&result, &format!("{path}\n"))
}

/// What the files hold.
struct Read {
    package: stream::Package,
    /// The examples as one stream.
    examples: Option<Vec<u8>>,
}

fn read(options: &Build) -> Result<Read, Failure> {
    let root = &options.package_root;
    let examples_root = &examples_root(options);
    let ignored = Selection::new(root, Some(examples_root), &options.ignore)?;
    let found = ignored.files()?;
    if found.is_empty() {
        return Err(Failure::new(format!("{} holds no YAML files", root.display()))
            .remedy("-f names the folder with crossplane.yaml and the objects of the package"));
    }
    let stream = Stream::join(root, files::read(&found)?);
    let package = stream.parse()?;
    let examples = match examples_root.is_dir() {
        false => None,
        true => {
            let found = Selection::new(examples_root, None, &options.ignore)?.files()?;
            Some(super::stream::examples(files::read(&found)?)?)
        }
    };
    Ok(Read { package, examples })
}

/// The folder that was named; or `examples` in the current folder, as in the original; or in the package root, where
/// examples would otherwise be taken for objects of the package.
fn examples_root(options: &Build) -> PathBuf {
    let here = PathBuf::from("./examples");
    let in_package = options.package_root.join("examples");
    match &options.examples_root {
        Some(named) => named.clone(),
        None if !here.is_dir() && in_package.is_dir() => in_package,
        None => here,
    }
}

pub(crate) fn runtime_image(path: &Path) -> Result<TarImage, Failure> {
    let image = Tarball::open(path).and_then(|archive| archive.single());
    image.map_err(|e| origin::explain(&e).remedy("give the file that `docker save IMAGE -o FILE` writes"))
}

/// The digest that a package in a file has in a registry. There, its layers are annotated.
fn pushed_digest(path: &Path) -> Result<Digest, Failure> {
    let image = Tarball::open(path).and_then(|archive| archive.single()?.annotated(&BTreeMap::new()));
    Ok(image.map_err(|e| origin::explain(&e))?.digest)
}

/// A folder for compressed layers beside the package, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(file: Option<&Path>, root: &Path) -> Self {
        let folder = match file {
            Some(file) => file.parent().unwrap_or(Path::new("")),
            None => root,
        };
        Self(folder.join(format!(".xpkg-build-{}", std::process::id())))
    }

    fn create(&self) -> Result<(), Failure> {
        std::fs::create_dir(&self.0)
            .map_err(|e| Failure::new(format!("cannot create {}: {e}", self.0.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Without a runtime image there is none.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
