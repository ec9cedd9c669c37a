//! `transom function build`: from a project and a program to a package.

use crate::xpkg::build::{self, runtime_image};
use crate::xpkg::origin;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_authoring::program;
use transom_console::Failure;
use transom_oci::tarball::{self, RootFiles, RuntimeImage, TarImage};

/// The name of the program in the image.
const PROGRAM: &str = "function";
/// The user that programs run as, unless a base image has another.
const USER: &str = "65532";

/// Build the package of a function, without Docker
///
/// The package is that of the project's folder `package`, with its input's CRD, and the examples in `example`. What the
/// function runs is a program, folders that become its root file system, or an image. The same files make the same
/// package, byte for byte. Prints the path of the package to stdout.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function build --binary function                           a program that is linked statically
  transom function build hello --binary hello/function -o hello.xpkg    of a project in another folder
  transom function build --root python --root app --entrypoint /usr/bin/python3 --entrypoint -m --entrypoint function
  transom function build --base node.tar --root app --entrypoint node --entrypoint /main.cjs
  transom function build --embed-runtime-image-tarball function.tar    an image, as `docker save` writes it
  transom function build --binary function-arm64 --platform linux/arm64 -o arm64.xpkg    for another platform")]
pub(crate) struct Build {
    /// The folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// The program: it becomes /function, and is what the image runs
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// A folder that becomes the root file system; may be repeated, and later ones are laid over earlier ones
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,

    /// The image that all is added to, as `docker save` writes it; without it, an empty one
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// The image that the function runs, as `docker save` writes it
    #[arg(long, alias = "from-oci-tarball", value_name = "FILE", conflicts_with_all = ["binary", "root", "base"])]
    embed_runtime_image_tarball: Option<PathBuf>,

    /// A word of the command that the image runs; may be repeated. By default /function, or that of the base
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    entrypoint: Vec<String>,

    /// A variable that the image sets; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// The folder that the command is run in
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,

    /// The platform of the image; by default that of the program, of the base, or of this machine
    #[arg(long, value_name = "linux/ARCHITECTURE")]
    platform: Option<String>,

    /// The file to write; by default NAME-DIGEST.xpkg in the folder of the project
    #[arg(short = 'o', long, value_name = "FILE")]
    package_file: Option<PathBuf>,
}

pub(crate) fn run(options: &Build) -> Result<ExitCode, Failure> {
    let project = &options.project;
    let package = project.join("package");
    if !package.join("crossplane.yaml").is_file() {
        return Err(Failure::new(format!("{} has no package/crossplane.yaml", project.display()))
            .remedy("name the folder of a project, as `transom function init` makes it"));
    }
    let package = build::Build::of_folder(package, project.join("example"), project.clone());
    let package = package.with_file(options.package_file.clone());
    build::assemble(&package, Some(|scratch: &Path| image(options, scratch)))
}

fn image(options: &Build, scratch: &Path) -> Result<TarImage, Failure> {
    let base = options.embed_runtime_image_tarball.as_ref().or(options.base.as_ref());
    let base = base.map(|path| runtime_image(path)).transpose()?;
    let mut layers: Vec<RootFiles> = options.root.iter().cloned().map(RootFiles::Folder).collect();
    if let Some(source) = &options.binary {
        layers.push(RootFiles::Program { source: source.clone(), name: PROGRAM.to_owned() });
    }
    if layers.is_empty() && options.embed_runtime_image_tarball.is_none() {
        return Err(Failure::new("there is nothing that the function could run")
            .remedy("--binary names its program, --root a folder that becomes its root file system"));
    }
    let mut entrypoint = options.entrypoint.clone();
    if entrypoint.is_empty() && options.binary.is_some() {
        entrypoint.push(format!("/{PROGRAM}"));
    }
    if entrypoint.is_empty() && base.is_none() {
        return Err(Failure::new("there is no command to run")
            .remedy("--entrypoint names its words, one by one: --entrypoint node --entrypoint /main.cjs"));
    }
    let architecture = architecture(options, base.as_ref())?;
    let user = base.is_none().then(|| USER.to_owned());
    let (env, working_dir) = (options.env.clone(), options.workdir.clone());
    let image =
        RuntimeImage { base: base.as_ref(), layers, architecture, entrypoint, env, working_dir, user };
    tarball::runtime_image(image, scratch).map_err(|e| origin::explain(&e))
}

/// The architecture of the image, which is that of its program. Nothing if the base says it.
fn architecture(options: &Build, base: Option<&TarImage>) -> Result<Option<String>, Failure> {
    let given = options.platform.as_deref().map(|platform| {
        platform.strip_prefix("linux/").filter(|rest| !rest.is_empty()).map(ToOwned::to_owned).ok_or_else(
            || {
                Failure::new(format!("functions cannot be built for the platform {platform}"))
                    .remedy("write it like linux/amd64")
            },
        )
    });
    let given = given.transpose()?;
    let of_base = base.map(|base| base.config.architecture.clone()).filter(|name| !name.is_empty());
    let Some(path) = &options.binary else {
        let here = || of_base.is_none().then(|| this_machine().to_owned());
        return Ok(given.or_else(here));
    };
    let bytes =
        std::fs::read(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
    let shown = path.display();
    let program = program::inspect(&bytes).map_err(|problem| {
        Failure::new(format!("{shown} cannot be the program of an image: {problem}")).remedy(
            "build the function for Linux; a script is run by an interpreter: see --root and --entrypoint",
        )
    })?;
    if let Some(linker) = program.interpreter.filter(|_| base.is_none() && options.root.is_empty()) {
        return Err(Failure::new(format!("{shown} is linked dynamically: the image would need {linker} and libraries"))
            .remedy("link it statically (Go: CGO_ENABLED=0; Rust: --target x86_64-unknown-linux-musl), or give --base or --root with its libraries"));
    }
    match given.or(of_base) {
        Some(wanted) if wanted != program.architecture => {
            Err(Failure::new(format!("{shown} is for {}, and the image for {wanted}", program.architecture))
                .remedy("build the program for the platform of the image"))
        }
        _ => Ok(Some(program.architecture.to_owned())),
    }
}

/// The architecture of this machine, as images name it.
fn this_machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
