//! The cache: verified, bounded, shared.

use crate::images::{CONFIG, image, package_layer};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Semaphore;
use transom_oci::cache::{Cache, Cached, PullPolicy};
use transom_oci::testing::{Server, client};
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

#[tokio::test]
async fn a_warm_cache_needs_one_head_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    let remote = Arc::new(client());
    let cache = Arc::new(Cache::open(folder.path(), 1 << 20).await.unwrap());
    let cached = Cached::new(Arc::clone(&remote), cache);
    let tag = server.reference("v1");
    assert_eq!(&cached.fetch(&tag, &[]).await.unwrap().content[..], b"a");
    let cold = remote.requests();
    assert_eq!(&cached.fetch(&tag, &[]).await.unwrap().content[..], b"a");
    assert_eq!(remote.requests(), cold + 1);
    assert_eq!(&cached.fetch(&stored, &[]).await.unwrap().content[..], b"a");
    assert_eq!(&cached.fetch_with(&stored, PullPolicy::Never, &[]).await.unwrap().content[..], b"a");
    assert_eq!(&cached.at_hand(&stored).await.unwrap().unwrap().content[..], b"a");
    assert_eq!(remote.requests(), cold + 1);
    cached.fetch_with(&stored, PullPolicy::Always, &[]).await.unwrap();
    assert_eq!(remote.requests(), cold + 3);
    let other = server.store("v2", &image(CONFIG, &[package_layer("b")], true));
    let error = cached.fetch_with(&other, PullPolicy::Never, &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::NotFound);
    assert!(error.message.contains("packagePullPolicy is Never"), "{error}");
    let asked = remote.requests();
    assert!(cached.at_hand(&other).await.unwrap().is_none());
    assert_eq!(remote.requests(), asked);
}

#[tokio::test]
async fn a_damaged_entry_is_removed_and_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("sound content")], true));
    let digest = stored.digest.clone().unwrap();
    let path = folder.path().join(digest.hex());
    let remote = Arc::new(client());
    let cache = Arc::new(Cache::open(folder.path(), 1 << 20).await.unwrap());
    let cached = Cached::new(Arc::clone(&remote), Arc::clone(&cache));
    cached.fetch(&stored, &[]).await.unwrap();
    let sound = std::fs::read(&path).unwrap();
    // Every byte of the entry matters, and so does its end. Gzip's header has bytes that do not.
    let body = sound.iter().position(|byte| *byte == b'\n').unwrap() + 11;
    for at in (0..sound.len()).filter(|at| *at < body - 10 || *at >= body) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        let found = cache.get(&digest).await.unwrap();
        assert!(found.is_none() && !path.exists(), "byte {at}");
    }
    for length in 0..sound.len() {
        std::fs::write(&path, &sound[..length]).unwrap();
        let found = cache.get(&digest).await.unwrap();
        // What gzip appends after the content may be cut off: the digest is verified all the same.
        assert!(found.is_none_or(|found| &found[..] == b"sound content"), "{length} bytes");
    }
    std::fs::write(&path, b"damaged").unwrap();
    let before = remote.requests();
    assert_eq!(&cached.fetch(&stored, &[]).await.unwrap().content[..], b"sound content");
    assert!(remote.requests() > before);
    assert_eq!(std::fs::read(&path).unwrap(), sound);
}

fn digest(number: u8) -> Digest {
    Digest::of(&[number])
}

/// Content that does not compress.
fn content(number: u8) -> Bytes {
    let mut state = u64::from(number) + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(1000).collect::<Vec<u8>>().into()
}

#[tokio::test]
async fn the_least_recently_used_entries_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 4000).await.unwrap();
    for number in 0..3 {
        cache.put(&digest(number), content(number)).await.unwrap();
    }
    cache.get(&digest(0)).await.unwrap().unwrap();
    cache.put(&digest(3), content(3)).await.unwrap();
    let kept: Vec<u8> = (0..4).filter(|number| cache.contains(&digest(*number))).collect();
    assert_eq!(kept, [0, 2, 3]);
    assert!(cache.bytes() <= 4000);
    // What alone is too large is not kept and evicts nothing.
    cache.put(&digest(9), (0..10).flat_map(content).collect::<Vec<u8>>().into()).await.unwrap();
    assert_eq!((cache.contains(&digest(9)), cache.contains(&digest(0))), (false, true));
    drop(cache);

    std::fs::write(folder.path().join(".new-1-1"), b"interrupted").unwrap();
    let cache = Cache::open(folder.path(), 3000).await.unwrap();
    let kept: Vec<u8> = (0..4).filter(|number| cache.contains(&digest(*number))).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.contains(&3), "the newest is kept: {kept:?}");
    assert!(!folder.path().join(".new-1-1").exists());
    let bytes: u64 =
        std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(bytes, cache.bytes());
    assert_eq!(cache.get(&digest(3)).await.unwrap().unwrap(), content(3));
}

/// A registry that does not respond until the test opens it.
struct Gate {
    fetches: AtomicU32,
    open: Semaphore,
    result: Result<Bytes, RegistryErrorKind>,
}

#[async_trait]
impl Registry for Gate {
    async fn resolve(&self, _: &Reference, _: &[Credentials]) -> Result<Digest, RegistryError> {
        Ok(digest(1))
    }

    async fn fetch(&self, reference: &Reference, _: &[Credentials]) -> Result<Fetched, RegistryError> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.open.acquire().await.unwrap().forget();
        let error = |kind| RegistryError { kind, message: "failed".to_owned(), retry_after: None };
        let content = self.result.clone().map_err(error)?;
        Ok(Fetched { digest: reference.digest.clone().unwrap(), content })
    }

    async fn tags(&self, _: &Reference, _: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        Ok(vec![])
    }
}

async fn concurrent(result: Result<Bytes, RegistryErrorKind>) -> (u32, Vec<bool>) {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate { fetches: AtomicU32::new(0), open: Semaphore::new(0), result });
    let cache = Arc::new(Cache::open(folder.path(), 1 << 20).await.unwrap());
    let cached = Arc::new(Cached::new(Arc::clone(&gate), cache));
    let reference = Reference {
        registry: "r.example".to_owned(),
        repository: "a".to_owned(),
        tag: None,
        digest: Some(digest(1)),
    };
    let start = || {
        let (cached, reference) = (Arc::clone(&cached), reference.clone());
        tokio::spawn(async move { cached.fetch_with(&reference, PullPolicy::Always, &[]).await.is_ok() })
    };
    let mut tasks: Vec<_> = (0..8).map(|_| start()).collect();
    while gate.fetches.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The first is cancelled: another takes over.
    let first = tasks.remove(0);
    first.abort();
    assert!(first.await.is_err());
    gate.open.add_permits(100);
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    (gate.fetches.load(Ordering::SeqCst), results)
}

#[tokio::test]
async fn concurrent_fetches_of_one_digest_are_one() {
    let (fetches, results) = concurrent(Ok(Bytes::from_static(b"x"))).await;
    assert_eq!((fetches, results), (2, vec![true; 7]), "the one that was cancelled, and one for all others");
    let (fetches, results) = concurrent(Err(RegistryErrorKind::Unavailable)).await;
    assert_eq!((fetches, results), (2, vec![false; 7]));
    // Credentials differ: each is tried.
    let (fetches, _) = concurrent(Err(RegistryErrorKind::Unauthorized)).await;
    assert_eq!(fetches, 8);
}
