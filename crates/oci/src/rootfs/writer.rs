//! Writes the entries of layers below a folder, and never outside of it.

use super::RootFsLimits;
use crate::layer::tar::{Entry, EntryKind};
use crate::layer::{display_path, normal};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Folders that containers have file systems mounted on.
const MOUNT_POINTS: [&str; 4] = ["proc", "dev", "sys", "tmp"];
/// What the paths of devices begin with that no container sees.
const DEVICES: &str = "dev/";
/// What the name of a whiteout begins with.
const WHITEOUT: &str = ".wh.";
/// The rest of the name of the whiteout that hides everything in its folder.
const OPAQUE: &str = ".wh..opq";

pub(super) struct Writer {
    root: OwnedFd,
    limits: RootFsLimits,
    bytes: u64,
    entries: u64,
    /// What the current layer has written, with the folders above: its whiteouts hide the layers below only.
    written: BTreeSet<String>,
}

impl Writer {
    pub(super) fn open(folder: &Path, limits: RootFsLimits) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Self { root, limits, bytes: 0, entries: 0, written: BTreeSet::new() })
    }

    pub(super) fn begin_layer(&mut self) {
        self.written.clear();
    }

    /// Writes an entry. Errors are the rest of a sentence about the layer.
    pub(super) fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<(), String> {
        if entry.path.split('/').any(|part| part == "..") {
            return Err(format!("has the path {:?}, which leaves the image", display_path(&entry.path)));
        }
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(format!("the image has more than {} files, which is refused", self.limits.entries));
        }
        let path = normal(&entry.path);
        let (parent, name) = split(&path);
        if name.is_empty() {
            return Ok(());
        }
        let failed = |error: io::Error| format!("cannot unpack {:?}: {error}", display_path(&path));
        let folder = self.folder(parent).map_err(failed)?;
        match name.strip_prefix(WHITEOUT) {
            Some(OPAQUE) => return self.hide_all(&folder, parent).map_err(failed),
            Some(hidden) if is_plain(hidden) => return remove(&folder, hidden).map_err(failed),
            Some(_) => return Err(format!("has the whiteout {:?}, which is malformed", display_path(&path))),
            None => {}
        }
        self.note(&path);
        match entry.kind {
            EntryKind::Folder => make_folder(&folder, name).map_err(failed),
            EntryKind::File => self.file(&folder, name, entry, content),
            EntryKind::SymbolicLink => {
                let made = remove(&folder, name)
                    .and_then(|()| Ok(rustix::fs::symlinkat(entry.link.as_str(), &folder, name)?));
                made.map_err(failed)
            }
            EntryKind::HardLink => self.hard_link(&folder, name, &entry.link).map_err(failed),
            // Containers get a /dev of their own, with the few devices that they need.
            EntryKind::Device if path.starts_with(DEVICES) => Ok(()),
            EntryKind::Device => Err(format!("has the device {:?}, which is refused", display_path(&path))),
            // Containers of one image, which share its files, could talk to each other through a pipe.
            EntryKind::Pipe | EntryKind::Other => Ok(()),
        }
    }

    /// Makes what containers need, and has all files written to the disk.
    pub(super) fn finish(&self) -> Result<(), String> {
        for name in MOUNT_POINTS {
            // A link would lead out of the image when something is mounted on it.
            let is_link = rustix::fs::readlinkat(&self.root, name, Vec::new()).is_ok();
            let cleared = if is_link { remove(&self.root, name) } else { Ok(()) };
            let made = cleared.and_then(|()| make_folder(&self.root, name));
            made.map_err(|error| format!("/{name} cannot be a folder: {error}"))?;
        }
        // OCI runtimes give the file system that they mount there the mode of the folder.
        let everybody = Mode::from_raw_mode(0o1777);
        let opened = rustix::fs::chmodat(&self.root, "tmp", everybody, AtFlags::empty());
        opened.map_err(|error| format!("/tmp cannot be opened to all users: {error}"))?;
        let root = rustix::fs::openat(&self.root, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let synced = root.and_then(rustix::fs::syncfs);
        synced.map_err(|error| format!("cannot be written to the disk: {error}"))
    }

    fn note(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            if !self.written.contains(&path[..at]) {
                self.written.insert(path[..at].to_owned());
            }
        }
        self.written.insert(path.to_owned());
    }

    /// Opens a folder, with links resolved below the root. Folders that are missing are made.
    fn folder(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let target = if path.is_empty() { "." } else { path };
        match rustix::fs::openat2(&self.root, target, flags, Mode::empty(), within) {
            Err(Errno::NOENT) if !path.is_empty() => {
                let (parent, name) = split(path);
                let above = self.folder(parent)?;
                make_folder(&above, name)?;
                Ok(rustix::fs::openat2(&self.root, target, flags, Mode::empty(), within)?)
            }
            opened => Ok(opened?),
        }
    }

    fn file(
        &mut self,
        folder: &OwnedFd,
        name: &str,
        entry: &Entry,
        content: &mut dyn Read,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot unpack {:?}: {error}", display_path(&entry.path));
        let left = self.limits.bytes - self.bytes;
        if entry.size > left {
            let most = self.limits.bytes;
            return Err(format!("the image expands to more than {most} bytes, which is refused"));
        }
        self.bytes += entry.size;
        remove(folder, name).map_err(failed)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
        io::copy(&mut content.take(entry.size), &mut file).map_err(failed)?;
        // The mode that a file is created with is cut by the process' mask.
        rustix::fs::fchmod(&file, file_mode(entry.mode)).map_err(|error| failed(error.into()))
    }

    fn hard_link(&self, folder: &OwnedFd, name: &str, target: &str) -> io::Result<()> {
        if target.split('/').any(|part| part == "..") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the link leaves the image"));
        }
        let target = normal(target);
        let (parent, file) = split(&target);
        let from = self.folder(parent)?;
        let found = rustix::fs::statat(&from, file, AtFlags::SYMLINK_NOFOLLOW)?;
        let to = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        if to.is_ok_and(|to| to.st_ino == found.st_ino && to.st_dev == found.st_dev) {
            return Ok(());
        }
        remove(folder, name)?;
        Ok(rustix::fs::linkat(&from, file, folder, name, AtFlags::empty())?)
    }

    /// Removes what the layers below have in a folder.
    fn hide_all(&self, folder: &OwnedFd, path: &str) -> io::Result<()> {
        for item in std::fs::read_dir(through(folder))? {
            let name = item?.file_name().to_string_lossy().into_owned();
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if !self.written.contains(&below) {
                remove(folder, &name)?;
            }
        }
        Ok(())
    }
}

/// The folder of a path, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".."
}

/// An open folder as a path, for functions that take no descriptors.
fn through(folder: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))
}

/// Everybody may read the file, and run it if its owner may: it is run by another user than it is owned by.
fn file_mode(mode: u32) -> Mode {
    let everybody = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    if mode & 0o111 == 0 { everybody } else { everybody | Mode::XUSR | Mode::XGRP | Mode::XOTH }
}

/// Makes a folder, in place of anything else of that name.
fn make_folder(parent: &OwnedFd, name: &str) -> io::Result<()> {
    let everybody = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => return Ok(()),
        // A link to a folder stands for that folder: `/lib` in many images.
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => return Ok(()),
        Ok(_) => remove(parent, name)?,
        Err(_) => {}
    }
    rustix::fs::mkdirat(parent, name, everybody)?;
    Ok(rustix::fs::chmodat(parent, name, everybody, AtFlags::empty())?)
}

/// Removes a file, a link or a folder with everything in it. It need not exist.
fn remove(parent: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => std::fs::remove_dir_all(through(parent).join(name)),
        Err(error) => Err(error.into()),
    }
}
