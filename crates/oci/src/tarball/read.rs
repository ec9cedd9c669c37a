//! Reads a `docker save` archive of one or many images. Layers stay in the file.

use super::go_json;
use crate::failure::{file, invalid};
use crate::image::{
    CONFIG_BYTES_MAX, Descriptor, ImageConfig, LAYER_ANNOTATION, MANIFEST_BYTES_MAX, Manifest, media_type,
};
use crate::image_parts::ImageParts;
use crate::layer::tar::{EntryKind, TarReader};
use crate::source::Part;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use transom_packages::{Digest, RegistryError};

/// The most entries that an archive may have.
const ENTRIES_MAX: usize = 200_000;
/// An uncompressed layer of Docker.
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// A `docker save` archive. Its functions block.
#[derive(Debug)]
pub struct Tarball {
    path: PathBuf,
    files: BTreeMap<String, (u64, u64)>,
    links: BTreeMap<String, String>,
    list: Vec<Listed>,
}

/// An image in `manifest.json`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Option<Vec<String>>,
}

/// One image of an archive.
#[derive(Clone, Debug)]
pub struct TarImage {
    /// The archive.
    pub path: PathBuf,
    /// The references that the archive gives to the image.
    pub tags: Vec<String>,
    /// The configuration as it is in the archive.
    pub config_bytes: Bytes,
    /// What is used of the configuration.
    pub config: ImageConfig,
    /// The layers, from the lowest.
    pub layers: Vec<TarLayer>,
}

/// One layer of an image in an archive.
#[derive(Clone, Debug)]
pub struct TarLayer {
    /// Its digest and size as it is in the archive, and whether it is compressed.
    pub descriptor: Descriptor,
    /// Where it is.
    pub part: Part,
}

impl TarLayer {
    /// Whether the layer is compressed.
    pub fn is_compressed(&self) -> bool {
        self.descriptor.media_type != DOCKER_LAYER
    }
}

impl Tarball {
    /// Opens an archive and reads the list of its images.
    pub fn open(path: &Path) -> Result<Self, RegistryError> {
        let archive = File::open(path).map_err(|error| file(path, "be opened", &error))?;
        let mut tarball =
            Self { path: path.to_owned(), files: BTreeMap::new(), links: BTreeMap::new(), list: Vec::new() };
        let mut reader = TarReader::new(BufReader::with_capacity(1 << 20, archive));
        while let Some(entry) = reader.next().map_err(|error| invalid(path.display(), error))? {
            let name = clean(&entry.path);
            match entry.kind {
                EntryKind::File => drop(tarball.files.insert(name, (entry.offset, entry.size))),
                EntryKind::HardLink | EntryKind::SymbolicLink => drop(tarball.links.insert(name, entry.link)),
                _ => {}
            }
            if tarball.files.len() + tarball.links.len() > ENTRIES_MAX {
                return Err(tarball.invalid(format!("has more than {ENTRIES_MAX} entries, which is refused")));
            }
        }
        if !tarball.files.contains_key("manifest.json") {
            return Err(tarball
                .invalid("has no manifest.json; is it a package or an image that was saved?".to_owned()));
        }
        let list = tarball.read("manifest.json", MANIFEST_BYTES_MAX)?;
        tarball.list = serde_json::from_slice(&list)
            .map_err(|error| tarball.invalid(format!("manifest.json is malformed: {error}")))?;
        Ok(tarball)
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All images. Reads every layer, for its digest.
    pub fn images(&self) -> Result<Vec<TarImage>, RegistryError> {
        self.list.iter().map(|listed| self.image(listed)).collect()
    }

    /// The only image.
    pub fn single(&self) -> Result<TarImage, RegistryError> {
        match &self.list[..] {
            [only] => self.image(only),
            list => Err(self.invalid(format!("has {} images; exactly one is expected", list.len()))),
        }
    }

    fn image(&self, listed: &Listed) -> Result<TarImage, RegistryError> {
        let config_bytes = self.read(&listed.config, CONFIG_BYTES_MAX)?;
        let config = serde_json::from_slice(&config_bytes).map_err(|error| {
            self.invalid(format!("the configuration {:?} is malformed: {error}", listed.config))
        })?;
        let layers = listed.layers.iter().flatten().map(|name| self.layer(name)).collect::<Result<_, _>>()?;
        let (path, tags) = (self.path.clone(), listed.repo_tags.clone().unwrap_or_default());
        Ok(TarImage { path, tags, config_bytes, config, layers })
    }

    fn layer(&self, name: &str) -> Result<TarLayer, RegistryError> {
        let (offset, length) = self.find(name)?;
        let failed = |error: std::io::Error| file(&self.path, "be read", &error);
        let mut reader = self.part_reader(offset, length).map_err(failed)?;
        let mut start = [0; 2];
        let mut hasher = Sha256::new();
        let known = reader.read(&mut start).map_err(failed)?;
        hasher.update(&start[..known]);
        std::io::copy(&mut reader, &mut hasher).map_err(failed)?;
        let media_type = if start == [0x1f, 0x8b] { media_type::DOCKER_LAYER_GZIP } else { DOCKER_LAYER };
        let descriptor = Descriptor::new(media_type, length, Digest::finish(hasher));
        Ok(TarLayer { descriptor, part: Part::File { path: self.path.clone(), offset, length } })
    }

    /// Where a file is, through at most a few links.
    fn find(&self, name: &str) -> Result<(u64, u64), RegistryError> {
        const LINKS_MAX: u32 = 8;
        let mut name = clean(name);
        for _ in 0..LINKS_MAX {
            if let Some(found) = self.files.get(&name) {
                return Ok(*found);
            }
            let Some(link) = self.links.get(&name) else { break };
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            let direct = clean(link);
            let relative = clean(&format!("{folder}/{link}"));
            name = if self.files.contains_key(&relative) { relative } else { direct };
        }
        Err(self.invalid(format!("has no file {name:?}, which manifest.json names")))
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Bytes, RegistryError> {
        let (offset, length) = self.find(name)?;
        if length > bytes_max {
            return Err(self.invalid(format!("{name:?} has {length} bytes; at most {bytes_max} are allowed")));
        }
        let mut bytes = Vec::new();
        let read = self.part_reader(offset, length).and_then(|mut reader| reader.read_to_end(&mut bytes));
        read.map_err(|error| file(&self.path, "be read", &error))?;
        Ok(bytes.into())
    }

    fn part_reader(&self, offset: u64, length: u64) -> std::io::Result<impl Read> {
        let mut archive = File::open(&self.path)?;
        archive.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::with_capacity(1 << 16, archive).take(length))
    }

    fn invalid(&self, problem: String) -> RegistryError {
        invalid(self.path.display(), problem)
    }
}

/// A path without `.`, with `..` resolved, and never absolute: it is a key, no file is opened by it.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

impl TarImage {
    /// The image as it is pushed: what the configuration's labels say of layers becomes annotations of the layers, and
    /// these annotations are added to the manifest. The configuration is unchanged.
    pub fn annotated(&self, annotations: &BTreeMap<String, String>) -> Result<ImageParts, RegistryError> {
        let layers = self.layers.iter().map(|layer| {
            let mut descriptor = layer.descriptor.clone();
            if let Some(label) = self.config.layer_label(&descriptor.digest) {
                descriptor.annotations.insert(LAYER_ANNOTATION.to_owned(), label.to_owned());
            }
            (descriptor, layer.part.clone())
        });
        image_of(&self.config_bytes, layers.collect(), annotations.clone())
            .map_err(|error| invalid(self.path.display(), error))
    }
}

/// An image of a configuration and layers, with the manifest that go-containerregistry writes.
pub(super) fn image_of(
    config: &Bytes,
    layers: Vec<(Descriptor, Part)>,
    annotations: BTreeMap<String, String>,
) -> Result<ImageParts, serde_json::Error> {
    let manifest = Manifest {
        schema_version: 2,
        media_type: media_type::DOCKER_MANIFEST.to_owned(),
        config: Descriptor::of(media_type::DOCKER_CONFIG, config),
        layers: layers.iter().map(|(descriptor, _)| descriptor.clone()).collect(),
        annotations,
        other: BTreeMap::new(),
    };
    let bytes = Bytes::from(go_json(&manifest)?);
    let mut blobs = vec![(manifest.config, Part::Bytes(config.clone()))];
    for (descriptor, part) in layers {
        if blobs.iter().all(|(known, _)| known.digest != descriptor.digest) {
            blobs.push((descriptor, part));
        }
    }
    Ok(ImageParts::new(media_type::DOCKER_MANIFEST, bytes, blobs))
}
