//! Two composed resources must not be one object.
//!
//! They would be applied over each other indefinitely, and each would delete the other when it goes.

use crate::decision::Application;
use crate::failure::Cause;
use std::collections::HashMap;
use std::sync::Arc;
use transom_object::meta;

/// Fails with two composed resources that are the same object, if there are any.
pub(crate) fn must_be_distinct(apply: &[Arc<Application>]) -> Result<(), Cause> {
    let mut seen = HashMap::with_capacity(apply.len());
    for application in apply {
        let Application { name, object, .. } = &**application;
        // Versions of a kind are the same objects.
        let kind = meta::gvk(object).map(|gvk| (gvk.group, gvk.kind));
        if let Some(first) = seen.insert((kind, meta::namespace(object), meta::name(object)), name) {
            return Err(Cause::SameObject {
                first: first.clone(),
                second: name.clone(),
                kind: meta::kind(object).to_owned(),
                object: meta::name(object).to_owned(),
            });
        }
    }
    Ok(())
}
