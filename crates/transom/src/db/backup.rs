//! `transom db backup` and `restore`: a copy of a plane that may be running, and a plane from a copy.
//!
//! A backup is a directory: `store` has the objects, `pki` the certificate authority and the key of tokens, so that the
//! kubeconfigs of the plane work with a restored one, and `backup.json` has the checksum of every file. It is written last:
//! a directory without it is not a backup.

use super::{DataDir, store_of};
use crate::plane::{explain, write_private};
use clap::Args;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::Failure;

const MANIFEST: &str = "backup.json";
const PARTS: [&str; 2] = ["store", "pki"];

#[derive(Args)]
pub(crate) struct Backup {
    /// The directory to write the backup to; it must not exist
    target: PathBuf,

    #[command(flatten)]
    dir: DataDir,
}

#[derive(Args)]
pub(crate) struct Restore {
    /// The directory that `transom db backup` wrote
    source: PathBuf,

    #[command(flatten)]
    dir: DataDir,
}

pub(super) fn backup(options: &Backup) -> Result<ExitCode, Failure> {
    let (from, to) = (options.dir.resolve()?, options.target.as_path());
    create(to).map_err(|e| {
        Failure::new(format!("cannot create {}: {e}", to.display()))
            .remedy("name a directory that does not exist yet")
    })?;
    let written = write_backup(&from, to);
    if written.is_err() {
        // Half a backup must not be taken for one.
        let _ = fs::remove_dir_all(to);
    }
    let report = written?;
    anstream::println!("revision {}, {} objects in {}", report.revision, report.objects, to.display());
    Ok(ExitCode::SUCCESS)
}

fn write_backup(from: &Path, to: &Path) -> Result<transom_store::Report, Failure> {
    let cannot = |e: &io::Error| Failure::new(format!("cannot back up {}: {e}", from.display()));
    create(&to.join("store")).map_err(|e| cannot(&e))?;
    transom_store::copy(&store_of(from), &to.join("store")).map_err(|e| {
        cannot(&e)
            .remedy("pass the data directory of `transom up` with --data-dir; a plane in memory has none")
    })?;
    copy_files(&from.join("pki"), &to.join("pki")).map_err(|e| cannot(&e))?;
    let report = verified(&to.join("store"))?;
    let manifest = json!({
        "format": 1, "revision": report.revision, "objects": report.objects, "files": checksums(to).map_err(|e| cannot(&e))?,
    });
    write_private(&to.join(MANIFEST), format!("{manifest:#}\n")).map_err(|e| cannot(&e))?;
    Ok(report)
}

pub(super) fn restore(options: &Restore) -> Result<ExitCode, Failure> {
    let (from, to) = (options.source.as_path(), options.dir.resolve()?);
    check_manifest(from)?;
    for part in PARTS {
        if fs::read_dir(to.join(part)).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Failure::new(format!("{} has a {part} already", to.display()))
                .remedy("restore into a new directory with --data-dir, and start `transom up` with it"));
        }
    }
    let cannot = |e: &io::Error| Failure::new(format!("cannot restore to {}: {e}", to.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&to).map_err(|e| cannot(&e))?;
    for part in PARTS {
        copy_files(&from.join(part), &to.join(part)).map_err(|e| cannot(&e))?;
    }
    let report = verified(&to.join("store"))?;
    anstream::println!("revision {}, {} objects in {}", report.revision, report.objects, to.display());
    Ok(ExitCode::SUCCESS)
}

/// Reads all of a copied store.
fn verified(store: &Path) -> Result<transom_store::Report, Failure> {
    let report = transom_store::verify(store).map_err(|e| explain(&e))?;
    match report.damage.first() {
        None => Ok(report),
        Some(damage) => Err(Failure::new(format!("the copy is damaged: {damage}"))
            .remedy("stop the plane, then check the original with `transom db verify`")),
    }
}

/// Every file must be there, and be what it was.
fn check_manifest(backup: &Path) -> Result<(), Failure> {
    let wrong = |why: String| {
        Failure::new(format!("{} is not a complete backup: {why}", backup.display()))
            .remedy("use another backup; `transom db backup` makes them")
    };
    let text = fs::read_to_string(backup.join(MANIFEST)).map_err(|e| wrong(format!("{MANIFEST}: {e}")))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("{MANIFEST}: {e}")))?;
    let found = checksums(backup).map_err(|e| wrong(e.to_string()))?;
    let files = manifest["files"].as_object().cloned().unwrap_or_default();
    if let Some(missing) = files.keys().find(|name| !found.contains_key(*name)) {
        return Err(wrong(format!("{missing} is missing")));
    }
    match found.iter().find(|(name, checksum)| files.get(*name) != Some(checksum)) {
        Some((changed, _)) => Err(wrong(format!("{changed} is not what was backed up"))),
        None => Ok(()),
    }
}

/// The SHA-256 of every file, by its path.
fn checksums(backup: &Path) -> io::Result<Map<String, Value>> {
    let mut sums = Map::new();
    for part in PARTS {
        for (name, path) in files(&backup.join(part))? {
            let mut digest = Sha256::new();
            io::copy(&mut fs::File::open(path)?, &mut digest)?;
            let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            sums.insert(format!("{part}/{name}"), hex.into());
        }
    }
    Ok(sums)
}

/// The files of a directory by name, but not the lock of a store. A directory that does not exist has none.
fn files(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != "LOCK" && !name.contains(".tmp") {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for (name, path) in files(from)? {
        write_private(&to.join(name), fs::read(path)?)?;
    }
    Ok(())
}

fn create(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)
}
