//! How deep composite resources are nested.
//!
//! A Composition that composes its own kind, directly, through a claim or through other composite resources, would never
//! end. So a composite resource with [`MAX_OBJECTS_ABOVE`] objects above it composes nothing.

use crate::world::World;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::constants::label;

/// The most objects that a composite resource may have above it: composite resources and claims.
const MAX_OBJECTS_ABOVE: usize = 32;

/// A cache of the number of objects above each object, by uid. What is above an object does not change, so each is read
/// once; a composite resource that has neither controller nor claim is not looked up at all.
#[derive(Debug, Default)]
pub struct Nesting(Mutex<HashMap<String, usize>>);

impl Nesting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what is cached of an object that is deleted.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Fails for a composite resource that is nested too deeply.
    pub(crate) async fn check(&self, world: &dyn World, xr: &Value) -> Result<(), String> {
        let depth = self.depth(world, xr).await;
        if depth < MAX_OBJECTS_ABOVE {
            return Ok(());
        }
        let (kind, top) = (meta::kind(xr), meta::label(xr, label::COMPOSITE));
        Err(format!(
            "composite resources are nested {depth} levels deep; the limit is {MAX_OBJECTS_ABOVE}. Most likely a Composition of \
             {kind} composes {kind} again, directly or through others: correct it, then delete the topmost composite \
             resource {:?}",
            top.unwrap_or_default()
        ))
    }

    /// The number of objects above an object, at most one more than the limit.
    async fn depth(&self, world: &dyn World, object: &Value) -> usize {
        let mut visited: Vec<String> = Vec::new();
        let mut current = Cow::Borrowed(object);
        // The depth of the object that was visited last, unless it may be another one next time.
        let last = loop {
            let uid = meta::uid(&current).to_owned();
            let cached = self.cached(&uid);
            if let (Some(depth), true) = (cached, visited.is_empty()) {
                return depth;
            } else if let Some(depth) = cached {
                break Some(depth + 1);
            }
            visited.push(uid);
            let Some(above) = Above::of(&current) else { break Some(0) };
            if visited.len() > MAX_OBJECTS_ABOVE {
                return visited.len();
            }
            if let Some(depth) = above.uid.as_deref().and_then(|uid| self.cached(uid)) {
                break Some(depth + 1);
            }
            match world.owner(&above.kind, &above.namespace, &above.name).await {
                Ok(Some(parent)) if above.uid.as_deref().is_none_or(|uid| uid == meta::uid(&parent)) => {
                    current = Cow::Owned(parent);
                }
                // What is gone counts as the topmost object, and so does what cannot be read this time.
                Ok(_) => break Some(1),
                Err(_) => break None,
            }
        };
        let depth = last.unwrap_or(1) + visited.len() - 1;
        // Most composite resources have nothing above them: they take no memory here.
        if last.is_some() && depth > 0 {
            let depths = visited.into_iter().enumerate().map(|(below, uid)| (uid, depth - below));
            self.lock().extend(depths);
        }
        depth
    }

    fn cached(&self, uid: &str) -> Option<usize> {
        self.lock().get(uid).copied()
    }
}

/// What an object exists for: the object that controls it, or the claim that a composite resource was made for.
struct Above {
    kind: GroupVersionKind,
    namespace: String,
    name: String,
    uid: Option<String>,
}

impl Above {
    fn of(object: &Value) -> Option<Self> {
        let kind = |api_version: &str, kind: &str| {
            GroupVersion::parse(api_version).unwrap_or_default().with_kind(kind)
        };
        if let Some(owner) = meta::controller_of(object) {
            return Some(Self {
                kind: kind(&owner.api_version, &owner.kind),
                namespace: meta::namespace(object).to_owned(),
                name: owner.name,
                uid: Some(owner.uid),
            });
        }
        let claim = object.pointer("/spec/claimRef")?;
        let field = |name: &str| claim.get(name).and_then(Value::as_str);
        Some(Self {
            kind: kind(field("apiVersion")?, field("kind")?),
            namespace: field("namespace")?.to_owned(),
            name: field("name")?.to_owned(),
            uid: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Objects;
    use serde_json::json;

    fn nested(level: usize) -> Value {
        let mut object = json!({
            "apiVersion": "e/v1", "kind": "X",
            "metadata": {"name": format!("x{level}"), "uid": format!("u{level}"), "labels": {"crossplane.io/composite": "x0"}},
        });
        if let Some(above) = level.checked_sub(1) {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "e/v1", "kind": "X", "name": format!("x{above}"), "uid": format!("u{above}"),
                "controller": true,
            }]);
        }
        object
    }

    #[tokio::test]
    async fn a_composite_resource_that_is_nested_too_deeply_is_refused() {
        let world: Objects = (0..50).map(nested).collect();
        let nesting = Nesting::default();
        assert_eq!(nesting.check(&world, &nested(0)).await, Ok(()));
        assert_eq!(nesting.check(&world, &nested(31)).await, Ok(()));
        let why = nesting.check(&world, &nested(32)).await.unwrap_err();
        assert!(why.starts_with("composite resources are nested 32 levels deep; the limit is 32."), "{why}");
        assert!(why.ends_with("delete the topmost composite resource \"x0\""), "{why}");
        assert!(Nesting::default().check(&world, &nested(49)).await.is_err(), "without a cache, too");
    }

    #[tokio::test]
    async fn an_owner_that_cannot_be_read_counts_as_the_topmost_one() {
        assert_eq!(Nesting::default().depth(&Objects::new(), &nested(40)).await, 1);
    }
}
