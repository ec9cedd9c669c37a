//! Schemas as CustomResourceDefinitions may write them.

use crate::tables::{equal, run};
use transom_object::field::Path;
use transom_schema::structural;

#[test]
fn completeness() {
    run("structural-schema/validation/TestValidateStructuralCompleteness.testCases.json", |case| {
        // An option that custom resource definitions never set.
        if case.inputs["options"].is_object() {
            return Ok(());
        }
        let found = structural::incomplete(&case.inputs["schema"], &Path::root());
        let got: Vec<String> = found.iter().map(ToString::to_string).collect();
        equal(&got, &case.want_err.as_str().map(str::to_owned).into_iter().collect())
    });
}
