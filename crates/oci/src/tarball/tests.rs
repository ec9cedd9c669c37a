//! Compared with go-containerregistry v0.21.6, driven as `xpkg build` and `xpkg push` drive it: the compressed layers
//! are those that it wrote.

use super::config::{GoConfigFile, History};
use super::read::image_of;
use super::*;
use crate::image::{Descriptor, layer_label, media_type};
use crate::source::Part;
use std::collections::BTreeMap;
use transom_packages::Digest;

const PACKAGE: &str = "1f8b08000000000004ffeccf3d0ac3300c0560cd3e85a76e2ecfc57828a5d0de44b4a5042721e467c8ed83338424abf160d0b73c84063d75fc09fcff5d676e6aca0400bc736b02382770db7611c15ae7411a99fa1c4cc3c83d21f9566cbe7fae10c61815aaf67bd78fd7e5fd54712ea4ba104288044b000000ffffead23e1400080000";
const EXAMPLES: &str = "1f8b08000000000004ffecd1310a86300c05e0ccff297a82feafb638789b0edd5a28d682de5e2a0aa2a3590af9960759f24274cdffb0fa9463287af329123f00189d3b12c0330163af59433083832505fe2a6fb52c7e267cded59adf8febc4f9fb49995f278d85104270d8030000ffff54b00ed700080000";

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn an_archive_and_its_pushed_form_are_those_of_the_original() {
    let mut config = GoConfigFile::default();
    let mut layers = Vec::new();
    let contents = [
        (PACKAGE, "base", "sha256:fdabcdbee555a6d0fab595356de57ecd216f620d385096f9b12c28f9099c9a50"),
        (EXAMPLES, "upbound", "sha256:7ae98061d371025eb3f9a82ecf0fa50cb2b3ea3f16a07709cd7fe1849557a819"),
    ];
    for (hex, label, diff_id) in contents {
        let bytes = unhex(hex);
        let descriptor = Descriptor::of(media_type::DOCKER_LAYER_GZIP, &bytes);
        config.config.label(layer_label(&descriptor.digest), label);
        config.rootfs.diff_ids.push(diff_id.to_owned());
        config.history.push(History::default());
        layers.push((descriptor, Part::Bytes(bytes.into())));
    }
    let config = go_json(&config).unwrap().into();
    let image = image_of(&config, layers, BTreeMap::new()).unwrap();
    assert_eq!(
        image.digest.as_str(),
        "sha256:67d1b02246ca52148a555f678f6c4d1b3f9605866bd86a08810cf0b11ccf6c44"
    );

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.xpkg");
    write(&[(&image, &[])], &path).unwrap();
    let archive = std::fs::read(&path).unwrap();
    assert_eq!(
        Digest::of(&archive).as_str(),
        "sha256:5381508875a8a779b0e636cf9c74b0a801485d0d3d808bb9f3eaae3f4ec314ac"
    );

    let read = Tarball::open(&path).unwrap().single().unwrap();
    let pushed = read.annotated(&BTreeMap::new()).unwrap();
    assert_eq!(
        pushed.digest.as_str(),
        "sha256:6aeffe1baf15df25c7d038eae781a1950eb033e61dd6b76608c9993f6ca55e15"
    );
}
