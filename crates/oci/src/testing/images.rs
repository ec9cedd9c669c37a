//! Small images for tests: archives, layers, manifests, indexes.

use super::Image;
use std::io::Write;
use transom_packages::Digest;

/// A tar archive of entries: name, type flag, content.
pub fn tar(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
    tar_of_mode(0o644, entries)
}

/// The same with other permissions.
pub fn tar_of_mode(mode: u32, entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, flag, content) in entries {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = *flag;
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Compressed.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A layer with `package.yaml`.
pub fn package_layer(content: &str) -> Vec<u8> {
    gzip(&tar(&[("package.yaml", b'0', content.as_bytes())]))
}

pub const CONFIG: &str = r#"{"architecture":"amd64","os":"linux","config":{}}"#;

/// An image of layers, the first of them annotated as the package's if wanted.
pub fn image(config: &str, layers: &[Vec<u8>], annotate: bool) -> Image {
    let layer = |(index, bytes): (usize, &Vec<u8>)| {
        let annotations = if annotate && index == 0 {
            serde_json::json!({"io.crossplane.xpkg": "base"})
        } else {
            serde_json::json!({})
        };
        serde_json::json!({
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "size": bytes.len(), "digest": Digest::of(bytes).to_string(), "annotations": annotations,
        })
    };
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "size": config.len(), "digest": Digest::of(config.as_bytes()).to_string(),
        },
        "layers": layers.iter().enumerate().map(layer).collect::<Vec<_>>(),
    });
    let mut blobs = layers.to_vec();
    blobs.push(config.as_bytes().to_vec());
    Image { manifest: manifest.to_string().into_bytes(), blobs }
}

/// An index of manifests: platform, media type, bytes.
pub fn index(manifests: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let entry = |(platform, media_type, bytes): &(&str, &str, &[u8])| {
        let (os, architecture) = platform.split_once('/').unwrap();
        serde_json::json!({
            "mediaType": media_type, "size": bytes.len(), "digest": Digest::of(bytes).to_string(),
            "platform": {"os": os, "architecture": architecture},
        })
    };
    let index = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests.iter().map(entry).collect::<Vec<_>>(),
    });
    index.to_string().into_bytes()
}

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
