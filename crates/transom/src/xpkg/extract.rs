//! `transom xpkg extract`: the content of a package, compressed as in a cache of packages.

use super::ResultFormat;
use super::origin::{self, Origin};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::{Failure, Format};
use transom_go::gzip;
use transom_oci::layer::LayerLimits;
use transom_oci::package;
use transom_packages::{Content, Digest};

/// Write the package.yaml of a package to a file, compressed by gzip
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg extract registry.example.org/acme/platform:v1.0.0 -o platform.gz    from a registry
  transom xpkg extract --from-xpkg platform.xpkg -o platform.gz                    from a file
  transom xpkg extract --from-daemon acme/platform:v1.0.0 -o platform.gz           from the Docker daemon
  transom xpkg extract --from-xpkg                                 from the package in this folder, to out.gz")]
pub(crate) struct Extract {
    /// The package: a reference with a tag or digest, or, with --from-xpkg, a file
    #[arg(value_name = "REF|FILE", required_unless_present = "from_xpkg")]
    package: Option<String>,

    /// The package is a file; without a name, the only *.xpkg file in the current folder
    #[arg(long)]
    from_xpkg: bool,

    /// The package is an image of the Docker daemon of this machine
    #[arg(long, conflicts_with = "from_xpkg", requires = "package")]
    from_daemon: bool,

    /// The file to write, or - for stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "out.gz")]
    output: PathBuf,

    #[command(flatten)]
    result: ResultFormat,

    #[command(flatten)]
    origin: Origin,
}

pub(crate) async fn run(options: Extract) -> Result<ExitCode, Failure> {
    let to_stdout = options.output == Path::new("-");
    if to_stdout && options.result.format != Format::Text {
        return Err(Failure::new("stdout cannot have both the content and the result")
            .remedy("leave out --format, or name a file with -o"));
    }
    let named = options.package.as_deref().unwrap_or_default();
    let (digest, content) = match (options.from_xpkg, options.from_daemon) {
        (true, _) => from_file(named).await?,
        (_, true) => from_daemon(named, &options.output).await?,
        _ => from_origin(&options, named).await?,
    };
    // As the original does it: without a time, and with its compression.
    let compressed = gzip::compress(&content);
    if to_stdout {
        return transom_console::print(&compressed);
    }
    std::fs::write(&options.output, compressed).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", options.output.display()))
            .remedy("-o names another file")
    })?;
    let path = options.output.display().to_string();
    options.result.print(&json!({"path": path, "digest": digest.as_str()}), &format!("{path}\n"))
}

/// The digest of a package, as it has it in a registry, and its content.
async fn from_file(named: &str) -> Result<(Digest, Content), Failure> {
    let path = if named.is_empty() { origin::only_package()? } else { PathBuf::from(named) };
    let (image, reference) = origin::file(&path)?;
    let fetched = package::fetch(&image, &reference, &[], LayerLimits::default()).await;
    Ok((image.digest.clone(), fetched.map_err(|e| origin::explain(&e))?.content))
}

/// The content of an image of the Docker daemon, which is kept beside the output until it is read.
async fn from_daemon(image: &str, output: &Path) -> Result<(Digest, Content), Failure> {
    let folder = output.parent().unwrap_or(Path::new(""));
    let saved = folder.join(format!(".xpkg-extract-{}.tar", std::process::id()));
    let content = match origin::from_daemon(image, &saved).await {
        Ok(()) => from_file(&saved.to_string_lossy()).await,
        Err(failure) => Err(failure),
    };
    // If it was not written there is nothing to remove.
    drop(std::fs::remove_file(&saved));
    content
}

async fn from_origin(options: &Extract, named: &str) -> Result<(Digest, Content), Failure> {
    let reference = origin::reference(named).map_err(|failure| match Path::new(named).is_file() {
        true => Failure::new(format!("{named} is a file")).remedy("add --from-xpkg"),
        false => failure,
    })?;
    let opened = options.origin.open().await?;
    let with = opened.credentials(&reference).await?;
    let digest = opened.registry().resolve(&reference, &with).await.map_err(|e| opened.explain(&e))?;
    let fetched = opened.registry().fetch(&reference.at(digest.clone()), &with).await;
    Ok((digest, fetched.map_err(|e| opened.explain(&e))?.content))
}
