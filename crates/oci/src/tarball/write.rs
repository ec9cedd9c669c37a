//! Writes a `docker save` archive, byte for byte as go-containerregistry does.

use super::go_json;
use crate::failure::{chain, file, invalid};
use crate::image::Document;
use crate::image_parts::ImageParts;
use crate::layer::tar::{BLOCK_BYTES, go_header, padding};
use crate::source::Part;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use transom_packages::{Digest, RegistryError};

#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct Listed<'a> {
    config: String,
    repo_tags: Option<&'a [String]>,
    layers: Vec<String>,
}

/// Writes images, each with its references, to a file that is complete or absent. Blocks.
pub fn write(images: &[(&ImageParts, &[String])], path: &Path) -> Result<(), RegistryError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    let failed = |error: &io::Error| file(path, "be written", error);
    let archive = File::create(&unfinished).map_err(|error| failed(&error))?;
    let mut archive = BufWriter::with_capacity(1 << 20, archive);
    let written = write_images(images, &mut archive).and_then(|()| {
        let archive = archive.into_inner().map_err(|error| failed(error.error()))?;
        archive.sync_all().map_err(|error| failed(&error))?;
        std::fs::rename(&unfinished, path).map_err(|error| failed(&error))
    });
    if written.is_err() {
        // The first error is the one to report.
        drop(std::fs::remove_file(&unfinished));
    }
    written
}

fn write_images(images: &[(&ImageParts, &[String])], archive: &mut impl Write) -> Result<(), RegistryError> {
    let mut list = Vec::new();
    let mut written = BTreeSet::new();
    for (image, tags) in images {
        let wrong = |problem: String| invalid(format_args!("image {}", image.digest), problem);
        let document = Document::parse(&image.manifest).map_err(|problem| wrong(chain(&problem)))?;
        let Document::Manifest(manifest) = document else {
            return Err(wrong("an index cannot be written to an archive".to_owned()));
        };
        let part = |digest: &Digest| image.part(digest).ok_or_else(|| wrong(format!("has no blob {digest}")));
        let config = manifest.config.digest.to_string();
        write_part(archive, &config, part(&manifest.config.digest)?, &manifest.config.digest)?;
        let mut layers = Vec::new();
        for layer in &manifest.layers {
            let name = format!("{}.tar.gz", layer.digest.hex());
            if written.insert(layer.digest.clone()) {
                write_part(archive, &name, part(&layer.digest)?, &layer.digest)?;
            }
            layers.push(name);
        }
        list.push(Listed { config, repo_tags: (!tags.is_empty()).then_some(tags), layers });
    }
    list.sort_by_key(|listed| listed.repo_tags.unwrap_or_default().join(","));
    let list = go_json(&list).map_err(|error| invalid("manifest.json", error))?;
    let end = |archive: &mut dyn Write| {
        archive.write_all(&go_header("manifest.json", list.len() as u64)?)?;
        archive.write_all(&list)?;
        archive.write_all(padding(list.len() as u64))?;
        archive.write_all(&[0; 2 * BLOCK_BYTES])
    };
    end(archive).map_err(|error| invalid("manifest.json", format_args!("cannot be written: {error}")))
}

/// One blob, verified while it is copied.
fn write_part(
    archive: &mut impl Write,
    name: &str,
    part: &Part,
    digest: &Digest,
) -> Result<(), RegistryError> {
    let mut copy = || -> io::Result<Digest> {
        let (mut content, length): (Box<dyn Read>, u64) = match part {
            Part::Bytes(bytes) => (Box::new(&bytes[..]), bytes.len() as u64),
            Part::File { path, offset, length } => {
                let mut content = File::open(path)?;
                content.seek(SeekFrom::Start(*offset))?;
                (Box::new(content.take(*length)), *length)
            }
        };
        archive.write_all(&go_header(name, length)?)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let mut copied = 0;
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                read => {
                    hasher.update(&buffer[..read]);
                    archive.write_all(&buffer[..read])?;
                    copied += read as u64;
                }
            }
        }
        if copied != length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is shorter than it was"));
        }
        archive.write_all(padding(length))?;
        Ok(Digest::finish(hasher))
    };
    let subject = format_args!("blob {digest}");
    let found = copy().map_err(|error| invalid(subject, format_args!("cannot be written: {error}")))?;
    if found == *digest { Ok(()) } else { Err(invalid(subject, "changed while it was read")) }
}
