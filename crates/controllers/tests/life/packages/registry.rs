//! A registry in memory that counts what it is asked for and can be made to fail. A key of it is any text: what a key signed
//! verifies by that text.

use crate::life::fixture::PATIENCE;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use transom_function::async_trait;
use transom_packages::trust::{Authority, Evidence, SignatureVerifier, Signed};
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

/// A key, and what it signed.
type Signature = (String, Vec<u8>);

#[derive(Default)]
pub(crate) struct MemoryRegistry {
    /// `package.yaml` by source and tag.
    images: Mutex<BTreeMap<(String, String), String>>,
    /// What was asked for.
    requests: Mutex<Vec<String>>,
    /// Keys and what they signed, by the digest that the registry returns it for.
    signatures: Mutex<BTreeMap<Digest, Vec<Signature>>>,
    /// The digests that were fetched, and are at hand since.
    fetched: Mutex<BTreeSet<Digest>>,
    down: AtomicBool,
    /// Requests that begin like this are refused with a wait.
    busy: Mutex<Option<(String, Duration)>>,
    /// Requests that begin like this are not answered.
    hanging: Mutex<Option<String>>,
    /// The password without which nothing is served.
    password: Mutex<Option<String>>,
    /// Fetches of this image wait, after so many that do not.
    held: Mutex<Option<(Digest, usize)>>,
    released: Notify,
}

impl MemoryRegistry {
    /// Pushes a package. Returns its digest.
    pub(crate) fn push(&self, reference: &str, package: &str) -> Digest {
        let (source, tag) = reference.rsplit_once(':').expect("a tag");
        self.images.lock().unwrap().insert((source.to_owned(), tag.to_owned()), package.to_owned());
        Digest::of(package.as_bytes())
    }

    /// Signs an image by a key.
    pub(crate) fn sign(&self, image: &Digest, key: &str) {
        let payload = json!({"critical": {"image": {"docker-manifest-digest": image.as_str()}}});
        self.add_signed(image, key, &payload);
    }

    /// Attests something of an image by a key.
    pub(crate) fn attest(&self, image: &Digest, key: &str, predicate_type: &str) {
        let subject = json!([{"digest": {"sha256": image.hex()}}]);
        self.add_signed(image, key, &json!({"subject": subject, "predicateType": predicate_type}));
    }

    fn add_signed(&self, image: &Digest, key: &str, payload: &serde_json::Value) {
        let signed = (key.to_owned(), payload.to_string().into_bytes());
        self.signatures.lock().unwrap().entry(image.clone()).or_default().push(signed);
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Refuses requests that begin like this, and asks for a wait.
    pub(crate) fn set_busy(&self, requests: &str, retry_after: Duration) {
        *self.busy.lock().unwrap() = Some((requests.to_owned(), retry_after));
    }

    pub(crate) fn set_ready(&self) {
        *self.busy.lock().unwrap() = None;
    }

    /// Does not answer lookups of tags that begin like this.
    pub(crate) fn hang(&self, requests: &str) {
        *self.hanging.lock().unwrap() = Some(requests.to_owned());
    }

    pub(crate) fn require_password(&self, password: &str) {
        *self.password.lock().unwrap() = Some(password.to_owned());
    }

    /// Holds back the image from the second fetch on, until [`Self::release`].
    pub(crate) fn hold_second_fetch(&self, digest: &Digest) {
        *self.held.lock().unwrap() = Some((digest.clone(), 1));
    }

    pub(crate) fn release(&self) {
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
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Waits until it was asked this.
    pub(crate) async fn until_asked(&self, request: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.requests.lock().unwrap().iter().any(|asked| asked == request) {
            assert!(std::time::Instant::now() < deadline, "{request} was not asked");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    fn find(&self, reference: &Reference) -> Option<Fetched> {
        let digest = reference.digest.clone().expect("a digest");
        let images = self.images.lock().unwrap();
        let found = images.iter().find(|((source, _), package)| {
            *source == reference.source() && Digest::of(package.as_bytes()) == digest
        });
        found.map(|(_, package)| Fetched { digest, content: package.clone().into_bytes().into() })
    }

    fn ask(&self, what: &str, with: &[Credentials]) -> Result<(), RegistryError> {
        self.requests.lock().unwrap().push(what.to_owned());
        if self.down.load(Ordering::SeqCst) {
            return Err(error(RegistryErrorKind::Unavailable, format!("{what}: connection refused")));
        }
        let busy = self.busy.lock().unwrap().clone();
        if let Some((_, asked)) = busy.filter(|(requests, _)| what.starts_with(requests)) {
            let error = error(RegistryErrorKind::Unavailable, format!("{what}: too many requests"));
            return Err(RegistryError { retry_after: Some(asked), ..error });
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
        let request = format!("resolve {reference}");
        self.ask(&request, with)?;
        let hangs = self.hanging.lock().unwrap().as_ref().is_some_and(|start| request.starts_with(start));
        if hangs {
            std::future::pending::<()>().await;
        }
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
        let found = self.find(reference);
        if let Some(fetched) = &found {
            self.fetched.lock().unwrap().insert(fetched.digest.clone());
        }
        found.ok_or_else(|| error(RegistryErrorKind::NotFound, format!("{reference}: not found")))
    }

    async fn at_hand(&self, reference: &Reference) -> Result<Option<Fetched>, RegistryError> {
        let fetched = self.fetched.lock().unwrap().clone();
        Ok(self.find(reference).filter(|found| fetched.contains(&found.digest)))
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

#[async_trait]
impl SignatureVerifier for MemoryRegistry {
    fn trust_root(&self) -> &'static str {
        ""
    }

    async fn evidence(
        &self,
        image: &Reference,
        authorities: &[Authority],
        with: &[Credentials],
    ) -> Vec<Evidence> {
        let digest = image.digest.clone().expect("a digest");
        if let Err(error) = self.ask(&format!("signatures {}", image.source()), with) {
            let evidence = match error.retry_after {
                Some(asked) => Evidence::Busy(error.message, asked),
                None => Evidence::Unknown(error.message),
            };
            return vec![evidence; authorities.len()];
        }
        let signatures = self.signatures.lock().unwrap().get(&digest).cloned().unwrap_or_default();
        let of = |authority: &Authority| match &authority.key {
            Some(Ok(key)) => {
                let by = signatures.iter().filter(|(by, _)| by.as_bytes() == key);
                let signed = by.map(|(_, payload)| Signed { payload: payload.clone(), signer: None });
                Evidence::Found { verified: signed.collect(), refused: Vec::new() }
            }
            Some(Err(problem)) => Evidence::Unknown(problem.to_string()),
            None => Evidence::Unknown("keyless is not for these tests".to_owned()),
        };
        authorities.iter().map(of).collect()
    }
}
