//! `transom xpkg plan`: what an install or upgrade would resolve to and change. Nothing is changed.
//!
//! | module | purpose |
//! |---|---|
//! | `world` | what is installed in the control plane, or nothing |
//! | `resolve` | which packages are created and changed, by the solver of the control plane |
//! | `objects` | which objects their packages create, change, take over and release, by a dry run of the server |
//! | `diff` | which fields differ |
//! | `report` | all of it for people and for programs |

mod diff;
mod objects;
mod report;
mod resolve;
mod world;

use super::origin::{self, Named, Origin};
use clap::Args;
use resolve::{Projection, Read, Reader};
use std::process::ExitCode;
use transom_console::control_plane::ControlPlaneArgs;
use transom_console::{Failure, Format};
use transom_oci::layer::LayerLimits;
use transom_packages::solver::Mode;
use transom_packages::{Digest, Reference, stream};
use world::World;

/// The exit code for a plan that cannot be carried out.
const FINDINGS: u8 = 2;

/// Show what an install or upgrade would resolve to and change
///
/// Resolves the packages and their dependencies as the control plane would, and has it check every object by a dry run.
/// Nothing is changed. The exit code is 2 if the plan cannot be carried out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg plan registry.example.org/acme/platform:v1.1.0                  in the control plane of the kubeconfig
  transom xpkg plan platform.xpkg -o json                                      a package in a file
  transom xpkg plan registry.example.org/acme/platform:v1.1.0 --offline        in a control plane without packages
  transom xpkg plan registry.example.org/acme/platform:v1.1.0 --packages platform.tar    from a bundle")]
pub(crate) struct Plan {
    /// The packages: references with a tag or digest, or .xpkg files
    #[arg(value_name = "REF|FILE", required = true)]
    wanted: Vec<String>,

    /// Plan for a control plane in which nothing is installed; no control plane is contacted
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    offline: bool,

    /// Whether the control plane changes installed packages to later versions, as its flag of this name says
    #[arg(long)]
    enable_dependency_version_upgrades: bool,

    /// The same, and to earlier versions
    #[arg(long)]
    enable_dependency_version_downgrades: bool,

    /// How it is printed
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    origin: Origin,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

impl Plan {
    fn mode(&self) -> Mode {
        match (self.enable_dependency_version_upgrades, self.enable_dependency_version_downgrades) {
            (_, true) => Mode::Downgrade,
            (true, false) => Mode::Upgrade,
            (false, false) => Mode::Default,
        }
    }
}

pub(crate) async fn run(options: Plan) -> Result<ExitCode, Failure> {
    let world = match options.offline {
        true => World::empty(),
        false => World::read(options.control_plane.open().await?).await?,
    };
    let opened = options.origin.open().await?;
    let mut reader = Reader::new(&opened, &world.image_configs);
    let mut projection = Projection::new(&world, options.mode());
    for text in &options.wanted {
        match Named::parse(text)? {
            Named::Reference(reference) => {
                let read = reader.read(&reference).await?;
                projection.install(&reference, read);
            }
            Named::File(path) => {
                let (digest, package) = read_file(&path).await?;
                let reference = world.reference_of(&package.meta.name, &path, &digest)?;
                let read = Read { digest: Some(digest), package: Some(package) };
                reader.know(&reference, read.clone());
                projection.install(&reference, read);
            }
        }
    }
    projection.resolve(&mut reader).await?;
    let objects = objects::plan(&world, &projection.changes).await?;
    let conflicts: Vec<String> =
        projection.conflicts().into_iter().chain(objects.conflicts.iter().cloned()).collect();
    let value = report::value(&projection.changes, &objects.planned, &conflicts);
    transom_console::print(options.output.write(&value, report::text).as_bytes())?;
    Ok(if conflicts.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FINDINGS) })
}

async fn read_file(path: &std::path::Path) -> Result<(Digest, stream::Package), Failure> {
    let (image, reference) = origin::file(path)?;
    let fetched = transom_oci::package::fetch(&image, &reference, &[], LayerLimits::default()).await;
    let fetched = fetched.map_err(|e| origin::explain(&e))?;
    let package = stream::parse(&fetched.content);
    let package = package.map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
    Ok((fetched.digest, package))
}

impl World {
    /// The reference under which a package in a file is planned: the next version of an installed package whose
    /// repository ends in its name, or one of its own. The version is in the name of the file, or it is the digest.
    fn reference_of(
        &self,
        name: &str,
        path: &std::path::Path,
        digest: &Digest,
    ) -> Result<Reference, Failure> {
        let mut sources = self.installed.iter().filter_map(|one| Reference::parse(&one.package).ok());
        let same = sources.rfind(|source| source.repository.rsplit('/').next() == Some(name));
        let own = Reference::parse_source(&format!("packages.local/{name}"));
        let source = match same {
            Some(same) => same,
            None => own.map_err(|e| Failure::new(format!("{}: {e}", path.display())))?,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let version = stem.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
        let version = transom_packages::constraint::versions(&[version]).first().map(|v| v.original.clone());
        let at = version.and_then(|version| source.at_version(&version).ok());
        Ok(at.unwrap_or_else(|| source.at(digest.clone())))
    }
}
