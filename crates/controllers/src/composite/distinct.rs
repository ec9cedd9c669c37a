//! Two composed resources must not be one object.
//!
//! They would be applied over each other for ever, and each would delete the other when it goes.

use std::collections::BTreeMap;
use transom_compose::Plan;
use transom_object::meta;

/// Says which composed resources of a plan are the same object.
pub(super) fn must_be_distinct(plan: &Plan) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for application in &plan.apply {
        let object = &application.object;
        // Versions of a kind are the same objects.
        let kind = meta::gvk(object).map(|gvk| (gvk.group, gvk.kind));
        let identity = (kind, meta::namespace(object), meta::name(object));
        if let Some(first) = seen.insert(identity, &application.name) {
            return Err(format!(
                "composed resources {first:?} and {:?} have the same name: both are {} {:?}",
                application.name,
                meta::kind(object),
                meta::name(object)
            ));
        }
    }
    Ok(())
}
