//! Finished documents, and how they are built.
//!
//! A document is made from resources, which never change: a changed definition is another resource. So a
//! document is fresh as long as the same resources are served. It is built away from the threads that serve
//! requests, one at a time, and kept as compressed bytes with a hash of its content: the tree it was built as takes twenty
//! times the memory, and nearly every client asks for gzip.

use super::describe;
use crate::registry::Served;
use crate::resource::Resource;
use crate::server::Inner;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use transom_object::json;

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    V2Json,
    V2Protobuf,
    V3 { group: String, version: String },
}

#[derive(Clone)]
pub(super) struct Finished {
    /// Of the document's content, in hexadecimal.
    pub(super) hash: Arc<str>,
    zipped: Bytes,
}

impl Finished {
    pub(super) fn zipped(&self) -> Bytes {
        self.zipped.clone()
    }

    /// The document itself, for the few clients that do not take gzip.
    pub(super) async fn plain(self) -> Bytes {
        let unzip = move || {
            let mut out = Vec::new();
            // What was zipped here unzips.
            let _ = GzDecoder::new(&*self.zipped).read_to_end(&mut out);
            Bytes::from(out)
        };
        tokio::task::spawn_blocking(unzip).await.unwrap_or_default()
    }
}

struct Kept {
    of: Vec<Arc<Resource>>,
    finished: Finished,
}

#[derive(Default)]
pub(crate) struct Cache {
    kept: Mutex<BTreeMap<Name, Kept>>,
    /// Held while documents are built, so that concurrent requests wait for one builder.
    building: tokio::sync::Mutex<()>,
}

impl Cache {
    fn fresh(&self, name: &Name, of: &[Arc<Resource>]) -> Option<Finished> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |k: &&Kept| k.of.len() == of.len() && k.of.iter().zip(of).all(|(a, b)| Arc::ptr_eq(a, b));
        kept.get(name).filter(same).map(|k| k.finished.clone())
    }

    fn keep(&self, name: Name, of: Vec<Arc<Resource>>, finished: Finished) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(name, Kept { of, finished });
    }

    /// Removes documents of what is no longer served.
    fn sweep(&self, served: &[Name]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|name, _| !matches!(name, Name::V3 { .. }) || served.contains(name));
    }
}

impl Name {
    pub(super) fn of(&self, served: &Served) -> Vec<Arc<Resource>> {
        match self {
            Self::V3 { group, version } => served.in_version(group, version).into_iter().cloned().collect(),
            _ => served.all().cloned().collect(),
        }
    }

    /// The document, and whether it will not differ when it is built again from the same resources.
    fn build(&self, server: &Inner, of: &[Arc<Resource>]) -> (Finished, bool) {
        let described = describe::all(server, of);
        let bytes = match self {
            Self::V3 { .. } => json::encode(&transom_openapi::v3(&described.resources)),
            Self::V2Json => json::encode(&transom_openapi::v2(&described.resources)),
            Self::V2Protobuf => transom_openapi::v2_protobuf(&transom_openapi::v2(&described.resources)),
        };
        let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02X}")).collect();
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let zipped = gz.write_all(&bytes).and_then(|()| gz.finish()).unwrap_or_default();
        (Finished { hash: hash.into(), zipped: zipped.into() }, described.current)
    }
}

/// A document that describes what is served now.
pub(super) async fn get(server: &Arc<Inner>, served: &Served, name: Name) -> Option<Finished> {
    all(server, served, vec![name]).await.pop()
}

/// The documents of every group and version served, in discovery's order.
pub(super) async fn every_version(server: &Arc<Inner>, served: &Served) -> Vec<(Name, Finished)> {
    let names: Vec<Name> = served
        .groups()
        .into_iter()
        .flat_map(|(group, versions)| {
            versions.into_iter().map(move |version| Name::V3 { group: group.clone(), version })
        })
        .collect();
    server.documents.sweep(&names);
    let finished = all(server, served, names.clone()).await;
    names.into_iter().zip(finished).collect()
}

/// The requested documents, in that order.
async fn all(server: &Arc<Inner>, served: &Served, names: Vec<Name>) -> Vec<Finished> {
    let wanted: Vec<_> = names.into_iter().map(|name| (name.of(served), name)).collect();
    let fresh = |server: &Inner| -> Option<Vec<Finished>> {
        wanted.iter().map(|(of, name)| server.documents.fresh(name, of)).collect()
    };
    if let Some(finished) = fresh(server) {
        return finished;
    }
    let _building = server.documents.building.lock().await;
    let server = server.clone();
    let build = move || {
        wanted
            .into_iter()
            .map(|(of, name)| {
                if let Some(finished) = server.documents.fresh(&name, &of) {
                    return finished;
                }
                let (finished, current) = name.build(&server, &of);
                if current {
                    server.documents.keep(name, of, finished.clone());
                }
                finished
            })
            .collect()
    };
    tokio::task::spawn_blocking(build).await.unwrap_or_default()
}
