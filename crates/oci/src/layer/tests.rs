//! Layers by tables of their entries.

use super::*;
use std::io::Write;

const LIMITS: LayerLimits =
    LayerLimits { package_bytes: 1000, layer_bytes: 64 << 20, ratio: 250, ratio_free_bytes: 1 << 20 };

/// Name, type flag, content.
type TestEntry<'a> = (&'a str, u8, &'a [u8]);

fn archive(entries: &[TestEntry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, flag, content) in entries {
        let mut block = tar::go_header(name, content.len() as u64).unwrap();
        let sum = |block: &[u8]| block.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        block[156] = *flag;
        block[148..156].copy_from_slice(b"        ");
        let total = sum(&block);
        block[148..156].copy_from_slice(format!("{total:06o}\0 ").as_bytes());
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(tar::padding(content.len() as u64));
    }
    bytes.extend_from_slice(&[0; 1024]);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn searched(bytes: Vec<u8>, role: LayerRole, hidden: &Hidden) -> Result<Searched, String> {
    search(io::Cursor::new(bytes), role, hidden, LIMITS)
}

#[test]
fn a_package_is_found_plain_or_compressed() {
    let plain = archive(&[("./a", b'0', b"x"), ("./package.yaml", b'0', b"kind: A")]);
    let zstd =
        ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let two_frames = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9][..], &zstd].concat();
    for bytes in [gzip(&plain), zstd, two_frames, plain] {
        let found = searched(bytes, LayerRole::Base, &Hidden::default()).unwrap();
        assert_eq!(found.package.as_deref(), Some(&b"kind: A"[..]));
    }
}

#[test]
fn unsound_layers_are_refused_with_a_reason() {
    let cases: &[(&[TestEntry<'_>], &str)] = &[
        (&[("../package.yaml", b'0', b"x")], "leaves the image"),
        (&[("a/../../etc/passwd", b'0', b"x"), ("package.yaml", b'0', b"x")], "leaves the image"),
        (&[("/package.yaml", b'0', b"x")], "absolute path"),
        (&[("package.yaml", b'1', b"")], "is a link"),
        (&[("package.yaml", b'2', b"")], "is a link"),
        (&[("package.yaml", b'3', b"")], "is a device"),
        (&[("package.yaml", b'6', b"")], "is a device"),
        (&[("package.yaml", b'S', b"")], "special file"),
        (&[("package.yaml", b'0', &[b'x'; 1001])], "at most 1000"),
        (&[("other.yaml", b'0', b"x")], "has no package.yaml"),
        (&[], "has no package.yaml"),
    ];
    for (entries, expected) in cases {
        let error = searched(archive(entries), LayerRole::Base, &Hidden::default()).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn absolute_paths_of_other_files_are_allowed_in_runtime_layers() {
    let layer = archive(&[("/ko-app/run", b'0', b"x"), ("package.yaml", b'0', b"y")]);
    assert!(searched(layer, LayerRole::Any, &Hidden::default()).unwrap().package.is_some());
}

#[test]
fn whiteouts_hide_what_is_below() {
    let below = || archive(&[("a/package.yaml", b'0', b"x")]);
    for (above, found) in [
        (".wh.b", true),
        (".wh.a", false),
        ("a/.wh.package.yaml", false),
        ("a/.wh..wh..opq", false),
        (".wh..wh..opq", false),
        ("b/.wh..wh..opq", true),
    ] {
        let hides =
            searched(archive(&[(above, b'0', b"")]), LayerRole::Any, &Hidden::default()).unwrap().hides;
        let package = searched(below(), LayerRole::Any, &hides).unwrap().package;
        assert_eq!(package.is_some(), found, "{above}");
    }
}

#[test]
fn bombs_are_refused() {
    let bomb = gzip(&archive(&[("zeros", b'0', &vec![0; 8 << 20])]));
    let error = searched(bomb, LayerRole::Any, &Hidden::default()).unwrap_err();
    assert!(error.contains("bomb"), "{error}");
    let big = archive(&[("zeros", b'0', &vec![0; 65 << 20])]);
    let error = searched(big, LayerRole::Any, &Hidden::default()).unwrap_err();
    assert!(error.contains("expands to more than 67108864 bytes"), "{error}");
}

#[test]
fn a_window_that_would_take_memory_is_refused() {
    // Magic, a descriptor without single segment, a window of 2 GiB.
    let frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0, 0, 0];
    let error = searched(frame, LayerRole::Any, &Hidden::default()).unwrap_err();
    assert!(error.contains("window"), "{error}");
}

#[test]
fn a_truncated_layer_is_refused() {
    let whole = archive(&[("package.yaml", b'0', b"kind: A")]);
    for bytes in [whole[..515].to_vec(), gzip(&whole)[..40].to_vec(), whole[..100].to_vec()] {
        assert!(searched(bytes, LayerRole::Base, &Hidden::default()).is_err());
    }
    let without_padding = whole[..512 + "kind: A".len()].to_vec();
    assert!(searched(without_padding, LayerRole::Base, &Hidden::default()).is_ok(), "as umoci writes it");
}

#[test]
fn whiteouts_cannot_take_memory() {
    let mut hidden = Hidden::default();
    let long = |number: usize| format!("{number}/{}", "a".repeat(1 << 20));
    let error = (0..20).try_for_each(|number| hidden.insert(long(number))).unwrap_err();
    assert!(error.contains("hides more than"), "{error}");
    let mut half = Hidden::default();
    (0..10).try_for_each(|number| half.insert(long(number))).unwrap();
    let mut all = half.clone();
    assert!(all.extend(half).is_err());
}
