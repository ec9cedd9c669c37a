//! Unpacks the layers of an image into a folder: the root file system of its containers.
//!
//! The image is hostile until proven otherwise. Nothing is written outside of the folder: paths with `..` are refused, and
//! links are resolved as if the folder were the root. Sizes and counts are bounded. Devices are refused, except below `/dev`, which
//! containers have one of their own of: there they are left out. Named pipes are left out. Owners, and bits that change the user, are not
//! kept: all files belong to the user who unpacks, and everybody may read them.
//!
//! What was unpacked is verified when this succeeds. When it fails, the folder must be removed by the caller.

mod writer;

use crate::failure::{invalid, unavailable};
use crate::image::{Descriptor, ImageConfig, RunConfig};
use crate::layer::{self, LayerLimits};
use crate::package::{LayerSource, feed, image_for, retryable};
use crate::source::ImageSource;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use transom_packages::{Credentials, Reference, RegistryError};
use writer::Writer;

/// What an image may expand to.
#[derive(Clone, Copy, Debug)]
pub struct RootFsLimits {
    /// The bytes of all files of all layers, uncompressed.
    pub bytes: u64,
    /// Files, folders and links of all layers.
    pub entries: u64,
    /// Layers.
    pub layers: usize,
}

impl Default for RootFsLimits {
    fn default() -> Self {
        Self { bytes: 4 << 30, entries: 300_000, layers: 200 }
    }
}

/// Unpacks the image at a reference for this machine into an empty folder, and returns how its containers run. Folders
/// that containers have file systems mounted on exist afterwards.
pub async fn unpack(
    source: &dyn ImageSource,
    reference: &Reference,
    with: &[Credentials],
    folder: &Path,
    limits: RootFsLimits,
) -> Result<RunConfig, RegistryError> {
    let architecture = architecture();
    let (_, manifest) = image_for(source, reference, with, architecture).await?;
    if manifest.layers.len() > limits.layers {
        let problem = format!("has {} layers; at most {} are unpacked", manifest.layers.len(), limits.layers);
        return Err(invalid(reference, problem));
    }
    let place = LayerSource { source, reference, with, limits: LayerLimits::default() };
    let config = place.config(&manifest.config).await?;
    fits(&config, architecture).map_err(|problem| invalid(reference, problem))?;
    let on_disk = |error: std::io::Error| {
        unavailable(reference, format_args!("cannot be unpacked into {}: {error}", folder.display()))
    };
    let writer = Writer::open(folder, limits).map_err(on_disk)?;
    let writer = Arc::new(Mutex::new(writer));
    for layer in &manifest.layers {
        apply(&place, layer, &writer).await?;
    }
    let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.finish().map_err(|problem| invalid(reference, problem))?;
    Ok(config.config)
}

/// The architecture of this machine, as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

fn fits(config: &ImageConfig, architecture: &str) -> Result<(), String> {
    let is_other = |found: &str, wanted: &str| !found.is_empty() && found != wanted;
    if is_other(&config.os, "linux") || is_other(&config.architecture, architecture) {
        let (os, found) = (&config.os, &config.architecture);
        return Err(format!("the image is for {os}/{found}; this machine runs linux/{architecture}"));
    }
    Ok(())
}

/// Applies a layer to what the layers below it left. A transfer that broke off is repeated: a layer that is applied again
/// leaves the same.
async fn apply(
    place: &LayerSource<'_>,
    layer: &Descriptor,
    writer: &Arc<Mutex<Writer>>,
) -> Result<(), RegistryError> {
    let subject = format!("{}: layer {}", place.reference, layer.digest);
    let mut attempt = 1;
    loop {
        let blob = place.source.blob(place.reference, layer, place.with).await?;
        let (writer, limits) = (Arc::clone(writer), place.limits);
        let applied = feed(blob, &subject, move |pieces| {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.begin_layer();
            layer::each_entry(pieces, limits, |entry, content| writer.entry(entry, content))
        });
        match applied.await {
            Err(error) if retryable(&error, attempt) => attempt += 1,
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
