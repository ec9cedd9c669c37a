//! `transom function adapt`: from the image of a container function to the package of a function. The image gets this binary with
//! the libraries that it is linked with, which serves the protocol and runs the image's own program for every call.

use crate::xpkg::build::{self, runtime_image};
use crate::xpkg::origin;
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use transom_authoring::program;
use transom_console::Failure;
use transom_oci::tarball::{self, RootFiles, RuntimeImage, TarImage};
use transom_xfn::{Adapted, AdaptedIo, Io};

/// The folder in the image.
const FOLDER: &str = "transom-adaptor";
/// The variable with the image's own command, as JSON, and that with its document.
pub(super) const COMMAND: &str = "TRANSOM_ADAPTED_COMMAND";
pub(super) const DOCUMENT: &str = "TRANSOM_ADAPTED_IO";
/// How long a call may take: as long as those of container functions at most.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Make the package of a function from the image of a container function
///
/// The image's program reads a document from standard input and writes one to standard output. The package is that of the
/// project's folder `package`, as for `transom function build`. Prints the path of the package to stdout.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function adapt --from-oci-tarball size.tar                          an image, as `docker save` writes it
  transom function adapt size --from-oci-tarball size.tar --io Request -o size.xpkg    a program that reads the protocol's JSON")]
pub(crate) struct Adapt {
    /// The folder of the project, with package/crossplane.yaml
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// The image, as `docker save`, `buildah push … docker-archive:` or `crane pull` write it
    #[arg(long, value_name = "FILE")]
    from_oci_tarball: PathBuf,

    /// What the program reads and writes: a FunctionIO, a ResourceList, or the protocol's request and response in JSON
    #[arg(long, default_value = "FunctionIO", value_enum, value_name = "KIND")]
    io: Kind,

    /// The file to write; by default NAME-DIGEST.xpkg in the folder of the project
    #[arg(short = 'o', long, value_name = "FILE")]
    package_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    #[value(name = "FunctionIO")]
    FunctionIo,
    #[value(name = "ResourceList")]
    ResourceList,
    #[value(name = "Request")]
    Request,
}

pub(crate) fn run(options: &Adapt) -> Result<ExitCode, Failure> {
    let project = &options.project;
    let package = project.join("package");
    if !package.join("crossplane.yaml").is_file() {
        return Err(Failure::new(format!("{} has no package/crossplane.yaml", project.display()))
            .remedy("write one: apiVersion meta.pkg.crossplane.io/v1, kind Function, metadata.name"));
    }
    let package = build::Build::of_folder(package, project.join("example"), project.clone());
    let package = package.with_file(options.package_file.clone());
    build::assemble(&package, Some(|scratch: &Path| image(options, scratch)))
}

fn image(options: &Adapt, scratch: &Path) -> Result<TarImage, Failure> {
    let base = runtime_image(&options.from_oci_tarball)?;
    let config = &base.config.config;
    let command: Vec<&String> = config.entrypoint.iter().chain(&config.cmd).collect();
    if command.is_empty() {
        let shown = options.from_oci_tarball.display();
        return Err(
            Failure::new(format!("the image in {shown} names no program")).remedy("give it an entrypoint")
        );
    }
    let command = serde_json::to_string(&command).unwrap_or_default();
    let kind = options.io.to_possible_value().map(|kind| kind.get_name().to_owned()).unwrap_or_default();
    let failed = |e: io::Error| Failure::new(format!("cannot copy this program: {e}"));
    let root = scratch.join("adaptor");
    let entrypoint = copy_program(&root.join(FOLDER)).map_err(failed)?;
    let image = RuntimeImage {
        base: Some(&base),
        layers: vec![RootFiles::Folder(root)],
        entrypoint,
        env: vec![format!("{COMMAND}={command}"), format!("{DOCUMENT}={kind}")],
        ..RuntimeImage::default()
    };
    tarball::runtime_image(image, scratch).map_err(|e| origin::explain(&e))
}

/// Copies this program and the libraries that it is linked with into a folder, and returns the command that runs it there.
fn copy_program(folder: &Path) -> io::Result<Vec<String>> {
    let libraries = folder.join("lib");
    fs::create_dir_all(&libraries)?;
    let own = fs::canonicalize("/proc/self/exe")?;
    fs::copy(&own, folder.join("transom"))?;
    let inside = |name: &str| format!("/{FOLDER}/{name}");
    let mut command = Vec::new();
    let linked = program::inspect(&fs::read(&own)?).map_err(io::Error::other)?;
    if let Some(linker) = linked.interpreter {
        fs::copy(&linker, folder.join("ld.so"))?;
        for library in mapped(&fs::read_to_string("/proc/self/maps")?) {
            let name = library.file_name().unwrap_or_default().to_owned();
            fs::copy(&library, libraries.join(name))?;
        }
        command = vec![inside("ld.so"), "--library-path".to_owned(), inside("lib")];
    }
    command.extend([inside("transom"), "function".to_owned(), "adapted".to_owned()]);
    Ok(command)
}

/// The libraries in the text of `maps`.
fn mapped(maps: &str) -> BTreeSet<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is_library = |path: &&str| path.starts_with('/') && path.contains(".so");
    paths.filter(is_library).map(PathBuf::from).collect()
}

/// The function of an adapted image, by its variables.
pub(super) fn adapted(command: Option<String>, document: Option<&str>) -> Result<Adapted, Failure> {
    let missing = || {
        Failure::new(format!("there is no command of a function in {COMMAND}"))
            .remedy("this command is run by images that `transom function adapt` has made")
    };
    let command = command.and_then(|command| serde_json::from_str(&command).ok()).ok_or_else(missing)?;
    let io = match document {
        Some("Request") => AdaptedIo::Request,
        Some("ResourceList") => AdaptedIo::Document(Io::ResourceList),
        _ => AdaptedIo::Document(Io::FunctionIo),
    };
    Ok(Adapted { command, io, timeout: CALL_TIMEOUT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_the_map_of_a_process() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 12 /lib/x86_64-linux-gnu/libc.so.6\n\
                    7f01-7f02 rw-p 00000000 fe:00 12 /lib/x86_64-linux-gnu/libc.so.6\n\
                    5500-5600 r-xp 00000000 fe:00 13 /usr/bin/transom\n7ffd-7ffe rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(mapped(maps), [PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6")].into());
    }

    #[test]
    fn an_image_that_was_not_adapted_is_refused() {
        assert!(adapted(None, None).is_err());
        let adapted = adapted(Some("[\"/bin/sh\"]".to_owned()), Some("Request")).ok();
        assert_eq!(adapted.map(|adapted| adapted.io), Some(AdaptedIo::Request));
    }
}
