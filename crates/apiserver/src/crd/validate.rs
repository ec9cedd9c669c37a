//! What a definition must be to be accepted.

use serde_json::Value;
use transom_object::field::{Error, Path};
use transom_schema::structural;

pub(crate) fn validate(new: &Value, _old: Option<&Value>) -> Vec<Error> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    let expected = format!(
        "{}.{}",
        spec["names"]["plural"].as_str().unwrap_or_default(),
        spec["group"].as_str().unwrap_or_default()
    );
    if new["metadata"]["name"] != expected.as_str() {
        errors.push(Error::invalid(
            &Path::new("metadata").child("name"),
            new["metadata"]["name"].clone(),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    for (i, version) in spec["versions"].as_array().into_iter().flatten().enumerate() {
        let path = Path::new("spec").child("versions").index(i).child("schema").child("openAPIV3Schema");
        errors.extend(structural::check(&version["schema"]["openAPIV3Schema"], &path));
    }
    errors
}
