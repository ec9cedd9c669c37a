//! Layers that lie on top of each other, and layers that try to get out.

use super::writer::Writer;
use super::*;
use crate::layer::tar::{Entry, EntryKind};
use std::os::unix::fs::PermissionsExt;

fn entry(path: &str, kind: EntryKind, link: &str) -> Entry {
    Entry { path: path.to_owned(), kind, mode: 0o4755, size: 0, link: link.to_owned(), offset: 0 }
}

fn file(path: &str, content: &str) -> (Entry, String) {
    let size = content.len() as u64;
    (Entry { size, mode: 0o600, ..entry(path, EntryKind::File, "") }, content.to_owned())
}

fn other(path: &str, kind: EntryKind, link: &str) -> (Entry, String) {
    (entry(path, kind, link), String::new())
}

/// Unpacks layers, each a list of entries; the folder is inside of a temporary one.
fn unpacked(layers: &[Vec<(Entry, String)>]) -> (tempfile::TempDir, Result<(), String>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let limits = RootFsLimits { bytes: 1000, entries: 50, layers: 5 };
    let mut writer = Writer::open(&root, limits).unwrap();
    let result = layers.iter().try_for_each(|layer| {
        writer.begin_layer();
        layer.iter().try_for_each(|(entry, content)| writer.entry(entry, &mut content.as_bytes()))
    });
    (dir, result.and_then(|()| writer.finish()))
}

fn read(dir: &tempfile::TempDir, path: &str) -> Option<String> {
    std::fs::read_to_string(dir.path().join("root").join(path)).ok()
}

#[test]
fn layers_lie_on_top_of_each_other() {
    let lower = vec![
        file("./etc/one", "1"),
        file("etc/two", "2"),
        file("gone/deep/file", "x"),
        file("data/old", "old"),
        other("usr/lib", EntryKind::Folder, ""),
        other("lib", EntryKind::SymbolicLink, "usr/lib"),
    ];
    let upper = vec![
        file("etc/one", "one"),
        file("etc/.wh.two", ""),
        file(".wh.gone", ""),
        file("data/new", "new"),
        file("data/.wh..wh..opq", ""),
        other("lib", EntryKind::Folder, ""),
        file("lib/library", "l"),
        other("etc/again", EntryKind::HardLink, "/etc/one"),
        other("dev/sda", EntryKind::Device, ""),
        other("queue", EntryKind::Pipe, ""),
    ];
    let (dir, result) = unpacked(&[lower, upper]);
    result.unwrap();
    assert_eq!(read(&dir, "etc/one").as_deref(), Some("one"));
    assert_eq!(read(&dir, "etc/again").as_deref(), Some("one"));
    assert_eq!(read(&dir, "etc/two"), None);
    assert!(!dir.path().join("root/gone").exists());
    assert_eq!((read(&dir, "data/old"), read(&dir, "data/new").as_deref()), (None, Some("new")));
    assert_eq!(read(&dir, "usr/lib/library").as_deref(), Some("l"), "through the link");
    for folder in ["proc", "dev", "sys", "tmp"] {
        assert!(dir.path().join("root").join(folder).is_dir(), "{folder}");
    }
    let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("root/tmp"), 0o1777, "writable by the user of the container");
    assert!(!dir.path().join("root/dev/sda").exists());
    assert!(!dir.path().join("root/queue").exists());
    let mode = std::fs::metadata(dir.path().join("root/etc/one")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644, "readable by the user of the container");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let escapes = [
        vec![file("../outside", "x")],
        vec![file("a/../../outside", "x")],
        vec![other("link", EntryKind::SymbolicLink, ".."), file("link/outside", "x")],
        vec![other("link", EntryKind::SymbolicLink, "/"), file("link/outside", "x")],
        vec![other("link", EntryKind::SymbolicLink, "../outside"), file("link", "x")],
        vec![other("hard", EntryKind::HardLink, "../victim")],
        vec![other("up", EntryKind::SymbolicLink, "../.."), file("up/.wh.victim", "")],
        vec![other("up", EntryKind::SymbolicLink, "../.."), other("hard", EntryKind::HardLink, "up/victim")],
    ];
    for layer in escapes {
        let paths: Vec<String> = layer.iter().map(|(entry, _)| entry.path.clone()).collect();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join("victim"), "safe").unwrap();
        let mut writer = Writer::open(&root, RootFsLimits::default()).unwrap();
        writer.begin_layer();
        for (entry, content) in &layer {
            // Refused, or written below the root.
            let _ = writer.entry(entry, &mut content.as_bytes());
        }
        assert!(!dir.path().join("outside").exists(), "{paths:?}");
        let victim = std::fs::read_to_string(dir.path().join("victim")).unwrap();
        assert_eq!(victim, "safe", "{paths:?}");
        let linked = std::fs::symlink_metadata(root.join("hard"));
        assert!(linked.is_err(), "{paths:?}");
    }
}

#[test]
fn devices_are_refused_where_containers_would_see_them() {
    for path in ["sda", "./etc/sda", "data/dev/sda", "device"] {
        let (dir, result) = unpacked(&[vec![other(path, EntryKind::Device, "")]]);
        let problem = result.unwrap_err();
        let name = path.trim_start_matches("./");
        assert_eq!(problem, format!("has the device {name:?}, which is refused"));
        assert!(!dir.path().join("root").join(path).exists(), "{path}");
    }
}

#[test]
fn sizes_and_counts_are_bounded() {
    let (_dir, result) = unpacked(&[vec![file("a", &"x".repeat(600)), file("b", &"x".repeat(600))]]);
    assert!(result.unwrap_err().contains("more than 1000 bytes"));
    let many: Vec<_> = (0..51).map(|n| file(&format!("f{n}"), "")).collect();
    let (_dir, result) = unpacked(&[many]);
    assert!(result.unwrap_err().contains("more than 50 files"));
}

#[test]
fn an_image_must_be_for_this_machine() {
    let config = |os: &str, architecture: &str| ImageConfig {
        os: os.to_owned(),
        architecture: architecture.to_owned(),
        ..ImageConfig::default()
    };
    assert_eq!(fits(&config("linux", "amd64"), "amd64"), Ok(()));
    assert_eq!(fits(&config("", ""), "amd64"), Ok(()));
    let error = fits(&config("linux", "arm64"), "amd64").unwrap_err();
    assert_eq!(error, "the image is for linux/arm64; this machine runs linux/amd64");
}
