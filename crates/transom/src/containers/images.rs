//! From a reference to an unpacked image: once by digest, whole or not at all, shared by all processes of the directory.

use super::Place;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::sync::Semaphore;
use transom_container::Workspace;
use transom_oci::image::RunConfig;
use transom_oci::rootfs::{RootFsLimits, unpack};
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};
use transom_runner::{PackageImage, Problem, Reason};

/// How many images are pulled at a time.
const PULLS_MAX: usize = 4;
/// The root file system in an image's directory.
const ROOT: &str = "rootfs";
/// How containers of the image run, in its directory.
const DESCRIPTION: &str = "image.json";

/// An image that containers can be made from.
pub(super) struct Image {
    pub(super) root: PathBuf,
    pub(super) config: RunConfig,
}

/// What is kept of an image beside its files.
#[derive(Serialize, Deserialize)]
struct Description {
    config: RunConfig,
}

/// The images that are unpacked on this machine.
pub(super) struct Images {
    pulls: Semaphore,
}

impl Images {
    pub(super) fn new() -> Self {
        Self { pulls: Semaphore::new(PULLS_MAX) }
    }

    /// The image of a package, which is pulled and unpacked unless it is here.
    pub(super) async fn prepare(
        &self,
        workspace: &Workspace,
        place: &Place,
        image: &PackageImage,
    ) -> Result<Image, Problem> {
        let known = image.digest.as_deref().and_then(|digest| Digest::parse(digest).ok());
        if let Some(found) = known.as_ref().and_then(|digest| open(workspace, digest)) {
            return Ok(found);
        }
        let invalid = |e: &dyn std::fmt::Display| Problem::new(Reason::InvalidImage, e.to_string());
        let reference = Reference::parse(&image.reference).map_err(|e| invalid(&e))?;
        let unavailable = |e: String| Problem::new(Reason::ImageUnavailable, format!("{reference}: {e}"));
        let with = place.credentials.find(&reference, &image.pull_secrets).await.map_err(unavailable)?;
        let digest = match known.or_else(|| reference.digest.clone()) {
            Some(digest) => digest,
            None => place.images.manifest(&reference, &with).await.map_err(|e| problem(&e))?.digest,
        };
        let Ok(_slot) = self.pulls.acquire().await else {
            return Err(unavailable("images are no longer pulled".to_owned()));
        };
        if let Some(found) = open(workspace, &digest) {
            return Ok(found);
        }
        pull(workspace, place, &reference.at(digest.clone()), &with).await?;
        open(workspace, &digest).ok_or_else(|| unavailable("the unpacked image is gone".to_owned()))
    }
}

fn folder(workspace: &Workspace, digest: &Digest) -> PathBuf {
    workspace.images().join(digest.hex())
}

/// An image that is here.
fn open(workspace: &Workspace, digest: &Digest) -> Option<Image> {
    let folder = folder(workspace, digest);
    let description = fs::read(folder.join(DESCRIPTION)).ok()?;
    let Description { config } = serde_json::from_slice(&description).ok()?;
    Some(Image { root: folder.join(ROOT), config })
}

async fn pull(
    workspace: &Workspace,
    place: &Place,
    pinned: &Reference,
    with: &[Credentials],
) -> Result<(), Problem> {
    let on_disk = |e: io::Error| {
        let message = format!("{pinned}: cannot be unpacked below {}: {e}", place.dir.display());
        Problem::new(Reason::ImageUnavailable, message)
    };
    tracing::info!(image = %pinned, "pulls an image");
    let unfinished = workspace.new_folder("unpack").map_err(on_disk)?;
    let root = unfinished.join(ROOT);
    fs::create_dir(&root).map_err(on_disk)?;
    let unpacked = unpack(&*place.images, pinned, with, &root, RootFsLimits::default()).await;
    let kept = match unpacked {
        Ok(config) => keep(workspace, &unfinished, pinned, config).map_err(on_disk),
        Err(error) => Err(problem(&error)),
    };
    if kept.is_err() {
        // The error of the image is the one to report.
        let _ = fs::remove_dir_all(&unfinished);
    }
    kept
}

/// Moves an unpacked image to its place.
fn keep(workspace: &Workspace, unfinished: &Path, pinned: &Reference, config: RunConfig) -> io::Result<()> {
    // The user of the container is another one than that of this process.
    fs::set_permissions(unfinished.join(ROOT), fs::Permissions::from_mode(0o755))?;
    fs::write(unfinished.join(DESCRIPTION), serde_json::to_vec(&Description { config })?)?;
    let Some(digest) = &pinned.digest else { return Err(io::Error::other("the image has no digest")) };
    let place = folder(workspace, digest);
    match fs::rename(unfinished, &place) {
        // Another process was faster.
        Err(_) if place.join(DESCRIPTION).exists() => fs::remove_dir_all(unfinished),
        renamed => renamed,
    }
}

/// What an error of a registry means for a function.
fn problem(error: &RegistryError) -> Problem {
    let reason = match error.kind {
        RegistryErrorKind::Invalid => Reason::InvalidImage,
        _ => Reason::ImageUnavailable,
    };
    Problem::new(reason, error.message.clone())
}
