//! The image that a function runs from, made of files of this machine: no Docker, and the same files make the same image.

use super::config::{GoConfigFile, History};
use super::go_json;
use super::read::{TarImage, TarLayer};
use crate::failure::{file, invalid};
use crate::image::{Descriptor, media_type};
use crate::layer::tar::{BLOCK_BYTES, Written, headers, padding};
use crate::source::Part;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use transom_go::gzip::GzipEncoder;
use transom_packages::{Digest, RegistryError};

/// Files that become a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootFiles {
    /// The content of a folder, as the root file system.
    Folder(PathBuf),
    /// One program, at a path in the image.
    Program {
        /// Where it is.
        source: PathBuf,
        /// Its name in the root of the image.
        name: String,
    },
}

/// An image to make.
#[derive(Clone, Debug, Default)]
pub struct RuntimeImage<'a> {
    /// The image that the layers are added to.
    pub base: Option<&'a TarImage>,
    /// The layers, from the lowest.
    pub layers: Vec<RootFiles>,
    /// The architecture; that of the base if it is not given.
    pub architecture: Option<String>,
    /// The program and its first arguments; those of the base if there are none.
    pub entrypoint: Vec<String>,
    /// Variables as `NAME=VALUE`, besides those of the base.
    pub env: Vec<String>,
    /// The folder that the program is started in; that of the base if it is not given.
    pub working_dir: Option<String>,
    /// The user that the program runs as; that of the base if it is not given.
    pub user: Option<String>,
}

/// Makes an image whose new layers are in the folder `scratch`, where they are needed until the image is written. Blocks. Of
/// files, only content, name and whether they can be executed count: owners and times are left out.
pub fn runtime_image(image: RuntimeImage<'_>, scratch: &Path) -> Result<TarImage, RegistryError> {
    let (mut config, mut layers) = match image.base {
        None => (GoConfigFile::default(), Vec::new()),
        Some(base) => {
            let wrong = |e| invalid(base.path.display(), format_args!("the configuration is malformed: {e}"));
            (serde_json::from_slice(&base.config_bytes).map_err(wrong)?, base.layers.clone())
        }
    };
    for (index, files) in image.layers.iter().enumerate() {
        let path = scratch.join(format!("root-{index}.tar.gz"));
        let (layer, diff_id) = write_layer(files, &path)?;
        config.rootfs.diff_ids.push(diff_id.to_string());
        config.history.push(History::default());
        layers.push(layer);
    }
    if config.os.is_empty() {
        "linux".clone_into(&mut config.os);
    }
    if let Some(architecture) = image.architecture {
        config.architecture = architecture;
    }
    let run = &mut config.config;
    if !image.entrypoint.is_empty() {
        run.set("Entrypoint", json!(image.entrypoint));
        // The arguments of another program.
        run.set("Cmd", json!([]));
    }
    let name = |variable: &str| variable.split('=').next().unwrap_or_default().to_owned();
    let mut env = run.words("Env");
    env.retain(|known| image.env.iter().all(|new| name(new) != name(known)));
    env.extend(image.env);
    run.set("Env", json!(env));
    for (field, value) in [("WorkingDir", image.working_dir), ("User", image.user)] {
        if let Some(value) = value {
            run.set(field, value.into());
        }
    }
    let malformed = |error| invalid("the image's configuration", error);
    let config_bytes = go_json(&config).map_err(malformed)?;
    let config = serde_json::from_slice(&config_bytes).map_err(malformed)?;
    let path = scratch.to_owned();
    Ok(TarImage { path, tags: Vec::new(), config_bytes: config_bytes.into(), config, layers })
}

/// A layer and the digest of its uncompressed content.
fn write_layer(files: &RootFiles, path: &Path) -> Result<(TarLayer, Digest), RegistryError> {
    let failed = |error: &io::Error| file(path, "be written", error);
    let mut layer = LayerFile::create(path).map_err(|error| failed(&error))?;
    match files {
        RootFiles::Folder(folder) => add_folder(&mut layer, folder, "")?,
        RootFiles::Program { source, name } => add_file(&mut layer, source, name, 0o755)?,
    }
    let finished = layer.finish().and_then(|diff_id| {
        let mut hasher = Sha256::new();
        let size = io::copy(&mut File::open(path)?, &mut hasher)?;
        Ok((diff_id, size, Digest::finish(hasher)))
    });
    let (diff_id, size, digest) = finished.map_err(|error| failed(&error))?;
    let descriptor = Descriptor::new(media_type::DOCKER_LAYER_GZIP, size, digest);
    let part = Part::File { path: path.to_owned(), offset: 0, length: size };
    Ok((TarLayer { descriptor, part }, diff_id))
}

/// Adds what a folder holds, in the order of names.
fn add_folder(layer: &mut LayerFile, folder: &Path, prefix: &str) -> Result<(), RegistryError> {
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = listed.map_err(|error| file(folder, "be read", &error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let source = entry.path();
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
            return Err(invalid(source.display(), "its name is not valid UTF-8"));
        };
        let metadata = entry.metadata().map_err(|error| file(&source, "be read", &error))?;
        if metadata.is_dir() {
            let inside = format!("{name}/");
            put(layer, &source, &inside, 0o755, Written::Folder)?;
            add_folder(layer, &source, &inside)?;
        } else if metadata.is_symlink() {
            let target = std::fs::read_link(&source).map_err(|error| file(&source, "be read", &error))?;
            let Some(target) = target.to_str() else {
                return Err(invalid(source.display(), "its target is not valid UTF-8"));
            };
            put(layer, &source, &name, 0o777, Written::Link(target))?;
        } else if metadata.is_file() {
            add_file(layer, &source, &name, mode(&metadata))?;
        } else {
            return Err(invalid(
                source.display(),
                "it is neither a file, a folder nor a link; an image has no others",
            ));
        }
    }
    Ok(())
}

fn mode(metadata: &Metadata) -> u32 {
    if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 }
}

fn put(
    layer: &mut LayerFile,
    source: &Path,
    name: &str,
    mode: u32,
    kind: Written<'_>,
) -> Result<(), RegistryError> {
    let written = headers(name, mode, kind).and_then(|bytes| layer.write_all(&bytes));
    written.map_err(|error| file(source, "be added to the image", &error))
}

fn add_file(layer: &mut LayerFile, source: &Path, name: &str, mode: u32) -> Result<(), RegistryError> {
    let failed = |error: &io::Error| file(source, "be added to the image", error);
    let content = File::open(source).map_err(|error| failed(&error))?;
    let length = content.metadata().map_err(|error| failed(&error))?.len();
    put(layer, source, name, mode, Written::File(length))?;
    let copied = io::copy(&mut content.take(length), layer).map_err(|error| failed(&error))?;
    if copied != length {
        return Err(invalid(source.display(), "it became shorter while it was read"));
    }
    layer.write_all(padding(length)).map_err(|error| failed(&error))
}

/// A compressed archive that is being written.
struct LayerFile {
    file: BufWriter<File>,
    encoder: GzipEncoder,
    ready: Vec<u8>,
    uncompressed: Sha256,
}

impl LayerFile {
    fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self { file, encoder: GzipEncoder::new(), ready: Vec::new(), uncompressed: Sha256::new() })
    }

    fn finish(mut self) -> io::Result<Digest> {
        self.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.encoder.finish(&mut self.ready);
        self.file.write_all(&self.ready)?;
        self.file.flush()?;
        Ok(Digest::finish(self.uncompressed))
    }
}

impl Write for LayerFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.uncompressed.update(bytes);
        self.encoder.push(bytes, &mut self.ready);
        self.file.write_all(&self.ready)?;
        self.ready.clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::LayerLimits;
    use crate::layer::each_entry;
    use std::os::unix::fs::symlink;

    fn make(folder: &Path, scratch: &Path) -> TarImage {
        std::fs::create_dir_all(scratch).unwrap();
        let layers = vec![RootFiles::Folder(folder.to_owned())];
        let entrypoint = vec!["/bin/run".to_owned()];
        let env = vec!["A=2".to_owned()];
        let image = RuntimeImage { layers, entrypoint, env, ..RuntimeImage::default() };
        runtime_image(image, scratch).unwrap()
    }

    fn folder(root: &Path, order: [&str; 2]) {
        std::fs::create_dir_all(root.join("bin")).unwrap();
        for name in order {
            std::fs::write(root.join(name), name).unwrap();
        }
        std::fs::set_permissions(root.join("bin/run"), PermissionsExt::from_mode(0o4711)).unwrap();
        std::fs::set_permissions(root.join("data"), PermissionsExt::from_mode(0o600)).unwrap();
        symlink("bin/run", root.join("link")).unwrap();
    }

    #[test]
    fn the_same_files_make_the_same_image() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        folder(&path("one"), ["bin/run", "data"]);
        folder(&path("two"), ["data", "bin/run"]);
        let (one, two) = (make(&path("one"), &path("s1")), make(&path("two"), &path("s2")));
        assert_eq!(one.config_bytes, two.config_bytes);
        assert_eq!(one.layers[0].descriptor, two.layers[0].descriptor);
        std::fs::write(path("two").join("data"), "other").unwrap();
        assert_ne!(make(&path("two"), &path("s3")).config_bytes, one.config_bytes);
    }

    #[test]
    fn owners_times_and_other_permissions_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let (root, scratch) = (place.path().join("root"), place.path().join("scratch"));
        folder(&root, ["bin/run", "data"]);
        make(&root, &scratch);
        let mut found = Vec::new();
        let layer = File::open(scratch.join("root-0.tar.gz")).unwrap();
        each_entry(layer, LayerLimits::default(), |entry, _| {
            found.push(format!("{} {:o} {}", entry.path, entry.mode, entry.link));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["bin/ 755 ", "bin/run 755 ", "data 644 ", "link 777 bin/run"]);
    }

    #[test]
    fn a_base_is_extended() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        folder(&path("one"), ["bin/run", "data"]);
        let base = make(&path("one"), &path("s1"));
        std::fs::write(path("program"), "p").unwrap();
        std::fs::create_dir(path("s2")).unwrap();
        let program = RootFiles::Program { source: path("program"), name: "function".to_owned() };
        let image = RuntimeImage {
            base: Some(&base),
            layers: vec![program],
            env: vec!["A=1".to_owned(), "B=1".to_owned()],
            user: Some("65532".to_owned()),
            ..RuntimeImage::default()
        };
        let image = runtime_image(image, &path("s2")).unwrap();
        assert_eq!(image.layers.len(), 2);
        let config: serde_json::Value = serde_json::from_slice(&image.config_bytes).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/bin/run"]));
        assert_eq!(config["config"]["Env"], json!(["A=1", "B=1"]));
        assert_eq!(config["config"]["User"], "65532");
        assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_an_image_cannot_have_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let layers = vec![RootFiles::Folder(root)];
        let refused = runtime_image(RuntimeImage { layers, ..RuntimeImage::default() }, place.path());
        assert!(refused.unwrap_err().message.contains("neither a file, a folder nor a link"));
    }
}
