//! How deep composite resources are nested.
//!
//! A Composition that composes its own kind, itself or through others, would never end. So a composite resource with
//! [`DEEPEST`] owners above it composes nothing.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_engine::{Cluster, Error, Result};
use transom_object::{GroupVersion, meta};

/// The most owners that a composite resource may have above it.
pub(crate) const DEEPEST: usize = 32;

/// How many owners are above those that compose composite resources, by uid. Owners do not change, so each is read
/// once; a composite resource that nothing controls is not looked up at all.
#[derive(Default)]
pub(crate) struct Nesting(Mutex<HashMap<String, usize>>);

impl Nesting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An owner that is deleted.
    pub(crate) fn forget(&self, owner: &Value) {
        self.lock().remove(meta::uid(owner));
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

    /// The number of owners above an object, as far as that matters.
    async fn depth(&self, cluster: &Cluster, object: &Value) -> usize {
        let mut unknown = Vec::new();
        let (mut controller, mut namespace) =
            (meta::controller_of(object), meta::namespace(object).to_owned());
        let known = loop {
            let Some(owner) = controller else { break 0 };
            if let Some(depth) = self.lock().get(&owner.uid) {
                break depth + 1;
            }
            let gvk = GroupVersion::parse(&owner.api_version).unwrap_or_default().with_kind(&*owner.kind);
            let read = cluster.get(&gvk, &namespace, &owner.name).await;
            let parent = read.ok().flatten().filter(|parent| meta::uid(parent) == owner.uid);
            unknown.push(owner.uid);
            if unknown.len() > DEEPEST {
                return unknown.len();
            }
            // An owner that cannot be read counts as the topmost one.
            let Some(parent) = parent else { break 0 };
            controller = meta::controller_of(&parent);
            meta::namespace(&parent).clone_into(&mut namespace);
        };
        let depth = known + unknown.len();
        let mut depths = self.lock();
        for (above, uid) in unknown.into_iter().enumerate() {
            depths.insert(uid, depth - above - 1);
        }
        depth
    }
}
