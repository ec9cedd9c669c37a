//! A folder of `*.xpkg` files in place of a registry: images by the references in their archives and by their paths. Depth and
//! number of files are bounded.

use super::{LocalPackage, full_name, tag_of};
use crate::failure::{file, invalid};
use crate::image_parts::ImageParts;
use crate::source::Part;
use crate::tarball::Tarball;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transom_packages::{Digest, Reference, RegistryError};

const DEPTH_MAX: u32 = 16;
const FILES_MAX: usize = 10_000;

/// Packages in files.
pub(super) struct Files {
    images: Vec<Named>,
}

/// An image with its names.
struct Named {
    /// Full references: those in the archive, and the one that the path makes.
    names: Vec<String>,
    /// The file's name without its ending. An archive of several images has none: it would name them all.
    stem: Option<String>,
    image: ImageParts,
}

impl Files {
    pub(super) fn open(folder: &Path) -> Result<Self, RegistryError> {
        let mut paths = Vec::new();
        collect(folder, 0, &mut paths)?;
        if paths.is_empty() {
            let problem = "has neither *.xpkg files nor an OCI layout; give the folder that holds packages";
            return Err(invalid(folder.display(), problem));
        }
        // The order of names decides, not that of the disk.
        paths.sort();
        let images = paths.iter().map(|path| read(folder, path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { images: images.into_iter().flatten().collect() })
    }

    pub(super) fn open_one(path: &Path) -> Result<Self, RegistryError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self { images: read(folder, path)? })
    }

    pub(super) fn names(&self) -> Vec<String> {
        let label = |named: &Named| match (&named.names[..], &named.stem) {
            ([], Some(stem)) => vec![stem.clone()],
            (names, _) => names.to_vec(),
        };
        self.images.iter().flat_map(label).collect()
    }

    pub(super) fn packages(&self) -> Vec<LocalPackage> {
        let package = |named: &Named| LocalPackage {
            digest: named.image.digest.clone(),
            reference: named.names.iter().find_map(|name| Reference::parse(name).ok()),
            stem: named.stem.clone(),
            root: false,
        };
        self.images.iter().map(package).collect()
    }

    pub(super) fn find(&self, reference: &Reference) -> Option<&ImageParts> {
        let image = |named: &Named| match &reference.digest {
            Some(digest) => named.image.digest == *digest,
            None => {
                let tag = reference.tag.as_deref().unwrap_or("latest");
                let full = full_name(reference);
                let by_stem = |stem: &String| stem_tag(stem, reference) == Some(tag);
                named.names.contains(&full) || named.stem.as_ref().is_some_and(by_stem)
            }
        };
        self.images.iter().find(|named| image(named)).map(|named| &named.image)
    }

    pub(super) fn part(&self, digest: &Digest) -> Option<&Part> {
        self.images.iter().find_map(|named| named.image.part(digest))
    }

    pub(super) fn tags(&self, reference: &Reference) -> Vec<String> {
        let source = reference.source();
        let mut tags: Vec<String> = Vec::new();
        for named in &self.images {
            let by_name = named.names.iter().filter_map(|name| tag_of(name, &source));
            let by_stem = named.stem.as_ref().and_then(|stem| stem_tag(stem, reference));
            for tag in by_name.chain(by_stem) {
                if !tags.iter().any(|known| known == tag) {
                    tags.push(tag.to_owned());
                }
            }
        }
        tags
    }
}

/// The tag in `NAME-TAG`, if the name is the reference's. A version begins with a digit, perhaps after a `v`, so that
/// `platform-aws-v1` is not a version of `platform`.
pub(super) fn stem_tag<'a>(stem: &'a str, reference: &Reference) -> Option<&'a str> {
    let last = reference.repository.rsplit('/').next().unwrap_or_default();
    let whole = reference.repository.replace('/', "-");
    [whole.as_str(), last].into_iter().find_map(|name| {
        let tag = stem.strip_prefix(name)?.strip_prefix('-')?;
        let version = tag.strip_prefix('v').unwrap_or(tag);
        version.starts_with(|c: char| c.is_ascii_digit()).then_some(tag)
    })
}

fn collect(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), RegistryError> {
    let failed = |error: std::io::Error| file(folder, "be listed", &error);
    for item in std::fs::read_dir(folder).map_err(failed)? {
        let item = item.map_err(failed)?;
        let (path, kind) = (item.path(), item.file_type().map_err(failed)?);
        if kind.is_dir() && depth < DEPTH_MAX {
            collect(&path, depth + 1, found)?;
        } else if path.extension().is_some_and(|extension| extension == "xpkg") && path.is_file() {
            found.push(path);
        }
        if found.len() > FILES_MAX {
            return Err(invalid(
                folder.display(),
                format_args!("more than {FILES_MAX} files, which is refused"),
            ));
        }
    }
    Ok(())
}

fn read(folder: &Path, path: &Path) -> Result<Vec<Named>, RegistryError> {
    let images = Tarball::open(path)?.images()?;
    let alone = images.len() == 1;
    let relative = path.strip_prefix(folder).unwrap_or(path).with_extension("");
    let relative = relative.to_string_lossy().into_owned();
    let mut all = Vec::new();
    for image in images {
        let mut names = image.tags.clone();
        if let Some((source, tag)) =
            relative.rsplit_once('/').filter(|(source, _)| alone && source.contains('/'))
        {
            names.push(format!("{source}:{tag}"));
        }
        let stem = relative.rsplit('/').next().filter(|_| alone).map(str::to_owned);
        all.push(Named { names, stem, image: image.annotated(&BTreeMap::new())? });
    }
    Ok(all)
}
