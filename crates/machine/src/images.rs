//! From a reference to an unpacked image: once by digest, whole or not at all, shared by all processes of the directory.

use crate::HostResources;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::sync::Semaphore;
use transom_container::Workspace;
use transom_object::error_chain::chain;
use transom_oci::image::RunConfig;
use transom_oci::rootfs::{RootFsLimits, unpack};
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};
use transom_runner::{PackageImage, Problem, Reason};
use transom_xfn::{PullPolicy, WantedImage};

/// How many images are pulled at a time.
const PULLS_MAX: usize = 4;
/// The root file system in an image's directory.
const ROOT: &str = "rootfs";
/// How containers of the image run, in its directory.
const DESCRIPTION: &str = "image.json";

/// An image that containers can be made from.
pub(crate) struct Image {
    pub(crate) root: PathBuf,
    pub(crate) config: RunConfig,
}

/// What is kept of an image beside its files.
#[derive(Serialize, Deserialize)]
struct Description {
    config: RunConfig,
}

/// The images that are unpacked on this machine.
pub(crate) struct Images {
    pulls: Semaphore,
}

impl Images {
    pub(crate) fn new() -> Self {
        Self { pulls: Semaphore::new(PULLS_MAX) }
    }

    /// The image of a package, which is pulled and unpacked unless it is here.
    pub(crate) async fn prepare(
        &self,
        workspace: &Workspace,
        place: &HostResources,
        image: &PackageImage,
    ) -> Result<Image, Problem> {
        let known = image.digest.as_deref().and_then(|digest| Digest::parse(digest).ok());
        if let Some(found) = known.as_ref().and_then(|digest| open(workspace, digest)) {
            return Ok(found);
        }
        let invalid = |e: &dyn std::fmt::Display| Problem::new(Reason::InvalidImage, e.to_string());
        let reference = Reference::parse(&image.reference).map_err(|e| invalid(&e))?;
        let unavailable = |e: String| Problem::new(Reason::ImageUnavailable, format!("{reference}: {e}"));
        if image.never_pulled && !place.images.is_local(&reference) {
            let why = "it is not unpacked on this machine, and spec.packagePullPolicy is Never; set it to IfNotPresent";
            return Err(unavailable(why.to_owned()));
        }
        let with = place.credentials.find(&reference, &image.pull_secrets).await;
        let with = with.map_err(|error| unavailable(chain(&error)))?;
        let digest = match known.or_else(|| reference.digest.clone()) {
            Some(digest) => digest,
            None => place.images.manifest(&reference, &with).await.map_err(|e| problem(&e))?.digest,
        };
        self.pinned(workspace, place, &reference, &digest, &with).await
    }

    /// The image of a function that a Composition describes.
    pub(crate) async fn of_function(
        &self,
        workspace: &Workspace,
        place: &HostResources,
        wanted: &WantedImage,
    ) -> Result<Image, Problem> {
        let invalid = |e: &dyn std::fmt::Display| Problem::new(Reason::InvalidImage, e.to_string());
        let reference = Reference::parse(&wanted.reference).map_err(|e| invalid(&e))?;
        let with = &wanted.credentials;
        let known = reference.digest.clone().or_else(|| match wanted.policy {
            PullPolicy::Always => None,
            PullPolicy::IfNotPresent | PullPolicy::Never => remembered(workspace, &reference),
        });
        if let Some(found) = known.as_ref().and_then(|digest| open(workspace, digest)) {
            return Ok(found);
        }
        if wanted.policy == PullPolicy::Never {
            let message = format!("{reference}: is not on this machine, and imagePullPolicy is Never");
            return Err(Problem::new(Reason::ImageUnavailable, message));
        }
        let digest = match &reference.digest {
            Some(digest) => digest.clone(),
            None => place.images.manifest(&reference, with).await.map_err(|e| problem(&e))?.digest,
        };
        let image = self.pinned(workspace, place, &reference, &digest, with).await?;
        if let Err(error) = remember(workspace, &reference, &digest) {
            tracing::warn!(%error, image = %reference, "the digest of an image cannot be stored; it is resolved again next time");
        }
        Ok(image)
    }

    /// The image with a digest, which is pulled unless it is here.
    async fn pinned(
        &self,
        workspace: &Workspace,
        place: &HostResources,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Image, Problem> {
        let unavailable = |e: &str| Problem::new(Reason::ImageUnavailable, format!("{reference}: {e}"));
        let Ok(_slot) = self.pulls.acquire().await else {
            return Err(unavailable("images are no longer pulled"));
        };
        if let Some(found) = open(workspace, digest) {
            return Ok(found);
        }
        pull(workspace, place, &reference.at(digest.clone()), with).await?;
        open(workspace, digest).ok_or_else(|| unavailable("the unpacked image is gone"))
    }
}

/// The file with the digest that a reference by tag had when it was last pulled.
fn tag_file(workspace: &Workspace, reference: &Reference) -> PathBuf {
    let name = Digest::of(reference.to_string().as_bytes());
    workspace.images().join(format!("tag-{}", name.hex()))
}

fn remembered(workspace: &Workspace, reference: &Reference) -> Option<Digest> {
    Digest::parse(fs::read_to_string(tag_file(workspace, reference)).ok()?.trim()).ok()
}

fn remember(workspace: &Workspace, reference: &Reference, digest: &Digest) -> io::Result<()> {
    if reference.digest.is_some() || remembered(workspace, reference).as_ref() == Some(digest) {
        return Ok(());
    }
    let folder = workspace.new_folder("tag")?;
    reached_step("a directory for the digest of its tag is made");
    let file = folder.join("digest");
    fs::write(&file, digest.to_string())?;
    fs::rename(file, tag_file(workspace, reference))?;
    reached_step("the digest of its tag is kept");
    fs::remove_dir(folder)
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
    place: &HostResources,
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
    reached_step("its directories are made");
    let unpacked = unpack(&*place.images, pinned, with, &root, RootFsLimits::default()).await;
    reached_step("it is unpacked");
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
    reached_step("its description is written");
    let Some(digest) = &pinned.digest else { return Err(io::Error::other("the image has no digest")) };
    let place = folder(workspace, digest);
    match fs::rename(unfinished, &place) {
        // Another process was faster.
        Err(_) if place.join(DESCRIPTION).exists() => fs::remove_dir_all(unfinished),
        renamed => renamed,
    }?;
    reached_step("it is moved to its place");
    Ok(())
}

/// Names a step of unpacking an image, at which tests kill this process.
fn reached_step(step: &str) {
    transom_container::reached("pull", step);
}

/// What an error of a registry means for a function.
fn problem(error: &RegistryError) -> Problem {
    let reason = match error.kind {
        RegistryErrorKind::Invalid => Reason::InvalidImage,
        _ => Reason::ImageUnavailable,
    };
    Problem::new(reason, error.message.clone())
}
