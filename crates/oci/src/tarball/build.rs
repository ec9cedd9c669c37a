//! Builds the image of a package from its stream, examples and runtime. The same content makes the same bytes.

use super::config::{GoConfigFile, History};
use super::go_json;
use super::read::{TarImage, TarLayer, image_of};
use crate::failure::{file, invalid};
use crate::image::{BASE_LAYER, Descriptor, EXAMPLES_LAYER, layer_label, media_type};
use crate::image_parts::ImageParts;
use crate::layer::PACKAGE_FILE;
use crate::layer::tar::single_file;
use crate::source::Part;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use transom_go::gzip::{self, GzipEncoder};
use transom_packages::{Digest, RegistryError};

const EXAMPLES_FILE: &str = ".up/examples.yaml";

/// What a package consists of.
#[derive(Clone, Copy, Debug)]
pub struct Package<'a> {
    /// The content of `package.yaml`.
    pub stream: &'a [u8],
    /// The stream of examples, if there are any.
    pub examples: Option<&'a [u8]>,
    /// The runtime image that the package's layers are added to.
    pub base: Option<&'a TarImage>,
}

/// A file that a package has besides its own, in a layer of its own above all others.
#[derive(Clone, Copy, Debug)]
pub struct ImageFile<'a> {
    /// Where it is in the image.
    pub path: &'a str,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub content: &'a [u8],
}

/// Builds the image of a package: the layers of its runtime image, then its own, with labels in the configuration that
/// say what they hold. The same package is the same image, byte for byte, and the one that a program in Go makes. Blocks. Layers of the runtime image that
/// are not compressed are compressed into the folder `scratch`, where they are needed until the image is written.
pub fn build(package: Package<'_>, scratch: &Path) -> Result<ImageParts, RegistryError> {
    build_with(package, &[], scratch)
}

/// The same with further files.
pub fn build_with(
    package: Package<'_>,
    files: &[ImageFile<'_>],
    scratch: &Path,
) -> Result<ImageParts, RegistryError> {
    let failed = |error: &dyn std::fmt::Display| invalid(PACKAGE_FILE, error);
    let (mut config, mut layers) = match package.base {
        None => (GoConfigFile::default(), Vec::new()),
        Some(base) => {
            let wrong =
                |error| invalid(base.path.display(), format_args!("the configuration is malformed: {error}"));
            let layers =
                base.layers.iter().map(|layer| compressed(layer, scratch)).collect::<Result<_, _>>()?;
            (serde_json::from_slice(&base.config_bytes).map_err(wrong)?, layers)
        }
    };
    let own = |path, content: Option<_>| content.map(|content| ImageFile { path, mode: 0o644, content });
    let labelled = [
        (own(PACKAGE_FILE, Some(package.stream)), Some(BASE_LAYER)),
        (own(EXAMPLES_FILE, package.examples), Some(EXAMPLES_LAYER)),
    ];
    let others = files.iter().map(|file| (Some(*file), None));
    for (file, label) in labelled.into_iter().chain(others) {
        let Some(ImageFile { path, mode, content }) = file else { continue };
        let archive = single_file(path, content, mode).map_err(|error| failed(&error))?;
        let layer = gzip::compress(&archive);
        let descriptor = Descriptor::of(media_type::DOCKER_LAYER_GZIP, &layer);
        config.rootfs.diff_ids.push(Digest::of(&archive).to_string());
        config.history.push(History::default());
        if let Some(label) = label {
            config.config.label(layer_label(&descriptor.digest), label);
        }
        layers.push((descriptor, Part::Bytes(layer.into())));
    }
    let config = go_json(&config).map_err(|error| failed(&error))?.into();
    image_of(&config, layers, BTreeMap::new()).map_err(|error| failed(&error))
}

/// A layer of the runtime image, compressed: archives written by Docker hold them uncompressed.
fn compressed(layer: &TarLayer, scratch: &Path) -> Result<(Descriptor, Part), RegistryError> {
    let (Part::File { path, offset, length }, false) = (&layer.part, layer.is_compressed()) else {
        return Ok((layer.descriptor.clone(), layer.part.clone()));
    };
    let target = scratch.join(format!("{}.tar.gz", layer.descriptor.digest.hex()));
    let compress = || -> io::Result<(u64, Digest)> {
        let mut source = File::open(path)?;
        source.seek(SeekFrom::Start(*offset))?;
        compress_to(&mut source.take(*length), &mut File::create(&target)?)?;
        let mut hasher = <sha2::Sha256 as sha2::Digest>::new();
        let size = io::copy(&mut File::open(&target)?, &mut hasher)?;
        Ok((size, Digest::finish(hasher)))
    };
    let (size, digest) = compress().map_err(|error| file(&target, "be written", &error))?;
    let descriptor = Descriptor::new(media_type::DOCKER_LAYER_GZIP, size, digest);
    Ok((descriptor, Part::File { path: target, offset: 0, length: size }))
}

fn compress_to(source: &mut impl Read, target: &mut impl Write) -> io::Result<()> {
    let (mut encoder, mut ready) = (GzipEncoder::new(), Vec::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        match source.read(&mut piece)? {
            0 => break,
            count => encoder.push(&piece[..count], &mut ready),
        }
        target.write_all(&ready)?;
        ready.clear();
    }
    encoder.finish(&mut ready);
    target.write_all(&ready)
}
