//! Manifests, indexes, configurations and descriptors of images, in the forms of OCI and of Docker. Pure: bytes in,
//! values out. Fields that are not known here are kept where a value may be written again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_packages::Digest;

/// Media types of manifests, configurations and layers.
pub mod media_type {
    /// A manifest of OCI.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An index of OCI.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// A manifest of Docker, schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// A manifest list of Docker: an index.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// An image configuration of OCI.
    pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// An image configuration of Docker.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
    /// A layer of Docker, compressed by gzip.
    pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    /// A payload that cosign signed.
    pub const COSIGN_PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
    /// A DSSE envelope: an attestation.
    pub const DSSE_ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
}

/// The annotation of a layer, and the prefix of a label of the configuration, that say what a layer holds.
pub const LAYER_ANNOTATION: &str = "io.crossplane.xpkg";
/// The value of [`LAYER_ANNOTATION`] for the layer with `package.yaml`.
pub const BASE_LAYER: &str = "base";
/// The value of [`LAYER_ANNOTATION`] for the layer with examples.
pub const EXAMPLES_LAYER: &str = "upbound";
/// The largest manifest or index that is read, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// The largest image configuration that is read, in bytes.
pub const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// A reference to content by digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// What the content is.
    #[serde(rename = "mediaType", default)]
    pub media_type: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its digest.
    #[serde(with = "digest_text")]
    pub digest: Digest,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// The platform of an image in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<ImagePlatform>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Descriptor {
    /// A descriptor of bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, bytes.len() as u64, Digest::of(bytes))
    }

    /// A descriptor without annotations.
    pub fn new(media_type: &str, size: u64, digest: Digest) -> Self {
        Self {
            media_type: media_type.to_owned(),
            size,
            digest,
            annotations: BTreeMap::new(),
            platform: None,
            other: BTreeMap::new(),
        }
    }
}

/// The platform of an image in an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImagePlatform {
    /// The architecture, such as `amd64`.
    #[serde(default)]
    pub architecture: String,
    /// The operating system, such as `linux`.
    #[serde(default)]
    pub os: String,
    /// The version of the operating system.
    #[serde(rename = "os.version", default, skip_serializing_if = "String::is_empty")]
    pub os_version: String,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// The manifest of one image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always 2.
    #[serde(rename = "schemaVersion")]
    pub schema_version: u32,
    /// The media type of the manifest itself.
    #[serde(rename = "mediaType", default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The image's configuration.
    pub config: Descriptor,
    /// The image's layers, from the lowest.
    #[serde(deserialize_with = "null_is_default")]
    pub layers: Vec<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// An index: images of several platforms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Always 2.
    #[serde(rename = "schemaVersion")]
    pub schema_version: u32,
    /// The media type of the index itself.
    #[serde(rename = "mediaType", default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The manifests.
    #[serde(deserialize_with = "null_is_default")]
    pub manifests: Vec<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// The manifest of one image.
    Manifest(Manifest),
    /// An index.
    Index(Index),
}

/// Why bytes are neither a manifest nor an index. The texts follow the name of what was read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// They are not JSON.
    #[error("is not a manifest in JSON")]
    NotJson(#[source] serde_json::Error),
    /// They say that they are something else.
    #[error("has the media type {0:?}, which is neither a manifest nor an index")]
    MediaType(String),
    /// They have the schema of an older tool.
    #[error("does not have schemaVersion 2; push the image again with a current tool")]
    SchemaVersion,
    /// A field has a wrong value.
    #[error("is malformed")]
    Malformed(#[source] serde_json::Error),
    /// They have the fields of both.
    #[error("is both a manifest and an index, which is ambiguous")]
    Ambiguous,
    /// They have the fields of neither.
    #[error("has the media type {0:?} but not the fields of one")]
    NoFields(String),
}

impl Document {
    /// Reads a manifest or an index. What it says of itself must agree with its shape, so that no two readers can take
    /// the same bytes for different things.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let shape: Shape = serde_json::from_slice(bytes).map_err(ManifestError::NotJson)?;
        let declared = shape.media_type.as_deref().unwrap_or_default();
        let declared_index = match declared {
            "" => None,
            media_type::OCI_INDEX | media_type::DOCKER_INDEX => Some(true),
            media_type::OCI_MANIFEST | media_type::DOCKER_MANIFEST => Some(false),
            other => return Err(ManifestError::MediaType(other.to_owned())),
        };
        let malformed = ManifestError::Malformed;
        match (shape.manifests, shape.layers.or(shape.config), declared_index) {
            _ if shape.schema_version != Some(2) => Err(ManifestError::SchemaVersion),
            (Some(_), None, None | Some(true)) => {
                serde_json::from_slice(bytes).map(Self::Index).map_err(malformed)
            }
            (None, Some(_), None | Some(false)) => {
                serde_json::from_slice(bytes).map(Self::Manifest).map_err(malformed)
            }
            (Some(_), Some(_), _) => Err(ManifestError::Ambiguous),
            _ => Err(ManifestError::NoFields(declared.to_owned())),
        }
    }
}

/// What decides between a manifest and an index.
#[derive(Deserialize)]
struct Shape {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<u32>,
    #[serde(rename = "mediaType")]
    media_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    config: Option<serde::de::IgnoredAny>,
}

/// What is used of an image's configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ImageConfig {
    /// The architecture.
    #[serde(default, deserialize_with = "null_is_default")]
    pub architecture: String,
    /// The operating system.
    #[serde(default, deserialize_with = "null_is_default")]
    pub os: String,
    /// The version of the operating system.
    #[serde(rename = "os.version", default, deserialize_with = "null_is_default")]
    pub os_version: String,
    /// How containers of the image run.
    #[serde(default, deserialize_with = "null_is_default")]
    pub config: RunConfig,
    /// The layers, uncompressed.
    #[serde(default, deserialize_with = "null_is_default")]
    pub rootfs: RootFs,
}

/// What is used of how containers of an image run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// The program and its first arguments.
    #[serde(rename = "Entrypoint", default, deserialize_with = "null_is_default")]
    pub entrypoint: Vec<String>,
    /// Arguments that others may replace; the program, if there is no entrypoint.
    #[serde(rename = "Cmd", default, deserialize_with = "null_is_default")]
    pub cmd: Vec<String>,
    /// Variables, as `NAME=VALUE`.
    #[serde(rename = "Env", default, deserialize_with = "null_is_default")]
    pub env: Vec<String>,
    /// The directory that the program starts in.
    #[serde(rename = "WorkingDir", default, deserialize_with = "null_is_default")]
    pub working_dir: String,
    /// Labels.
    #[serde(rename = "Labels", default, deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
}

/// The layers of an image, uncompressed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RootFs {
    /// Digests of the uncompressed layers, from the lowest.
    #[serde(default, deserialize_with = "null_is_default")]
    pub diff_ids: Vec<String>,
}

impl ImageConfig {
    /// What the label of a layer says that it holds.
    pub fn layer_label(&self, layer: &Digest) -> Option<&str> {
        self.config.labels.get(&layer_label(layer)).map(String::as_str)
    }
}

/// The name of the label that says what a layer holds.
pub fn layer_label(layer: &Digest) -> String {
    format!("{LAYER_ANNOTATION}:{layer}")
}

fn null_is_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

mod digest_text {
    //! A digest as JSON.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use transom_packages::Digest;

    pub(super) fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(digest.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        Digest::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
