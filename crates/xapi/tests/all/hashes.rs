//! The hash of a Composition is the one Crossplane computes, whatever is in it: `hashes.json` was recorded from the
//! same steps in Go.

use serde::Deserialize;
use transom_xapi::{Composition, revision};

#[test]
fn hashes_are_crossplanes() {
    // Kubernetes' own reader of JSON: how numbers are read decides how they are written.
    let table = transom_object::json::decode(include_bytes!("hashes.json")).unwrap().value;
    for (i, case) in table.as_array().unwrap().iter().enumerate() {
        let composition = Composition::deserialize(&case["composition"]).unwrap();
        assert_eq!(revision::hash(&composition), case["hash"].as_str().unwrap(), "composition {i}");
    }
}
