//! A registry in memory that counts what it is asked for and can be made to fail.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use transom_function::async_trait;
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

#[derive(Default)]
pub struct MemoryRegistry {
    /// `package.yaml` by source and tag.
    images: Mutex<BTreeMap<(String, String), String>>,
    /// What was asked for.
    requests: Mutex<Vec<String>>,
    down: AtomicBool,
    /// The password without which nothing is served.
    password: Mutex<Option<String>>,
    /// Fetches of this image wait, after so many that do not.
    held: Mutex<Option<(Digest, usize)>>,
    released: Notify,
}

impl MemoryRegistry {
    /// Pushes a package. Returns its digest.
    pub fn push(&self, reference: &str, package: &str) -> Digest {
        let (source, tag) = reference.rsplit_once(':').expect("a tag");
        self.images.lock().unwrap().insert((source.to_owned(), tag.to_owned()), package.to_owned());
        Digest::of(package.as_bytes())
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    pub fn require_password(&self, password: &str) {
        *self.password.lock().unwrap() = Some(password.to_owned());
    }

    /// Holds back the image from the second fetch on, until [`Self::release`].
    pub fn hold_second_fetch(&self, digest: &Digest) {
        *self.held.lock().unwrap() = Some((digest.clone(), 1));
    }

    pub fn release(&self) {
        *self.held.lock().unwrap() = None;
        self.released.notify_waiters();
    }

    fn is_held(&self, digest: &Digest) -> bool {
        match &mut *self.held.lock().unwrap() {
            Some((held, left)) if held == digest => std::mem::replace(left, 0) == 0,
            _ => false,
        }
    }

    /// What it was asked for since this was last called.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    fn ask(&self, what: &str, with: &[Credentials]) -> Result<(), RegistryError> {
        self.requests.lock().unwrap().push(what.to_owned());
        if self.down.load(Ordering::SeqCst) {
            return Err(error(RegistryErrorKind::Unavailable, format!("{what}: connection refused")));
        }
        let password = self.password.lock().unwrap().clone();
        if password.is_some_and(|password| !with.iter().any(|c| c.password == password)) {
            return Err(error(RegistryErrorKind::Unauthorized, format!("{what}: unauthorized")));
        }
        Ok(())
    }
}

fn error(kind: RegistryErrorKind, message: String) -> RegistryError {
    RegistryError { kind, message, retry_after: None }
}

#[async_trait]
impl Registry for MemoryRegistry {
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError> {
        self.ask(&format!("resolve {reference}"), with)?;
        let key = (reference.source(), reference.tag.clone().unwrap_or_default());
        let images = self.images.lock().unwrap();
        let found = images.get(&key).map(|package| Digest::of(package.as_bytes()));
        found.ok_or_else(|| error(RegistryErrorKind::NotFound, format!("{reference}: not found")))
    }

    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError> {
        self.ask(&format!("fetch {}", reference.source()), with)?;
        let digest = reference.digest.clone().expect("a digest");
        let released = self.released.notified();
        if self.is_held(&digest) {
            released.await;
        }
        let images = self.images.lock().unwrap();
        let found = images.iter().find(|((source, _), package)| {
            *source == reference.source() && Digest::of(package.as_bytes()) == digest
        });
        match found {
            Some((_, package)) => Ok(Fetched { digest, content: package.clone().into_bytes().into() }),
            None => Err(error(RegistryErrorKind::NotFound, format!("{reference}: not found"))),
        }
    }

    async fn tags(&self, reference: &Reference, with: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        self.ask(&format!("tags {}", reference.source()), with)?;
        let images = self.images.lock().unwrap();
        let of = images.keys().filter(|(source, _)| *source == reference.source());
        let tags: Vec<String> = of.map(|(_, tag)| tag.clone()).collect();
        if tags.is_empty() {
            return Err(error(RegistryErrorKind::NotFound, format!("{}: not found", reference.source())));
        }
        Ok(tags)
    }
}
