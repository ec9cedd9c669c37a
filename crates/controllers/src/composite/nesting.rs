//! How deep composite resources are nested.
//!
//! A Composition that composes its own kind, directly, through a claim or through other composite resources, would never
//! end. So a composite resource with [`DEEPEST`] objects above it composes nothing.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_engine::{Cluster, Error, Result};
use transom_object::{GroupVersion, GroupVersionKind, meta};

/// The most objects that a composite resource may have above it: composite resources and claims.
pub(crate) const DEEPEST: usize = 32;

/// How many objects are above those that were looked at, by uid. What is above an object does not change, so each is
/// read once; a composite resource that has neither controller nor claim is not looked up at all.
#[derive(Default)]
pub(crate) struct Nesting(Mutex<HashMap<String, usize>>);

impl Nesting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what is cached of an object that is deleted.
    pub(crate) fn forget(&self, object: &Value) {
        self.lock().remove(meta::uid(object));
    }

    /// Fails for a composite resource that is nested too deeply.
    pub(crate) async fn check(&self, cluster: &Cluster, xr: &Value) -> Result<()> {
        let depth = self.depth(cluster, xr).await;
        if depth < DEEPEST {
            return Ok(());
        }
        let (kind, top) = (meta::kind(xr), meta::label(xr, transom_xapi::constants::label::COMPOSITE));
        Err(Error::unfit(format!(
            "composite resources are nested {depth} levels deep, and {DEEPEST} is the limit: does a Composition of {kind} \
             compose a {kind} again, directly or through other composite resources? Correct it, then delete the topmost \
             one, {:?}",
            top.unwrap_or_default()
        )))
    }

    /// The number of objects above an object, at most one more than the limit.
    async fn depth(&self, cluster: &Cluster, object: &Value) -> usize {
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
            if visited.len() > DEEPEST {
                return visited.len();
            }
            if let Some(depth) = above.uid.as_deref().and_then(|uid| self.cached(uid)) {
                break Some(depth + 1);
            }
            match cluster.get(&above.gvk, &above.namespace, &above.name).await {
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
    gvk: GroupVersionKind,
    namespace: String,
    name: String,
    uid: Option<String>,
}

impl Above {
    fn of(object: &Value) -> Option<Self> {
        let gvk = |api_version: &str, kind: &str| {
            GroupVersion::parse(api_version).unwrap_or_default().with_kind(kind)
        };
        if let Some(owner) = meta::controller_of(object) {
            return Some(Self {
                gvk: gvk(&owner.api_version, &owner.kind),
                namespace: meta::namespace(object).to_owned(),
                name: owner.name,
                uid: Some(owner.uid),
            });
        }
        let claim = object.pointer("/spec/claimRef")?;
        let field = |name: &str| claim.get(name).and_then(Value::as_str);
        Some(Self {
            gvk: gvk(field("apiVersion")?, field("kind")?),
            namespace: field("namespace")?.to_owned(),
            name: field("name")?.to_owned(),
            uid: None,
        })
    }
}
