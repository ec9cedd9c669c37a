//! What images are pulled with: the Secrets of a control plane, or Docker's configuration of a user. Errors never quote what a
//! Secret contains.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_oci::credentials::{CredentialsError, DockerConfig, HelperOptions, from_secret};
use transom_packages::{Credentials, Reference};

/// The service account whose image pull secrets are used for all packages.
const SERVICE_ACCOUNT: &str = "crossplane";

/// Why credentials cannot be found. The text says nothing of what is in a Secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullCredentialsError {
    /// Secrets are read from a control plane, and there is none.
    #[error("there is no control plane here to read Secret {0:?} from")]
    NoControlPlane(String),
    /// A Secret does not exist.
    #[error("there is no {what} {name:?} in namespace {namespace:?}")]
    NotFound {
        /// `pull secret` or `Secret`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The namespace of the control plane.
        namespace: String,
    },
    /// Docker's configuration has none.
    #[error(transparent)]
    Docker(#[from] CredentialsError),
    /// The content of a pull secret cannot be used.
    #[error("cannot use pull secret {name:?} in namespace {namespace:?}")]
    Malformed {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Why.
        source: CredentialsError,
    },
    /// The control plane does not return an object. The text of the client's error contains those of its sources, so it is
    /// no source itself.
    #[error("cannot get {resource} {name:?} in namespace {namespace:?}: {error}")]
    Read {
        /// The resource.
        resource: String,
        /// The name of the object.
        name: String,
        /// Its namespace.
        namespace: String,
        /// What the client reports.
        error: kube::Error,
    },
    /// The name makes no path of a request.
    #[error(transparent)]
    Request(#[from] http::Error),
}

/// Finds what an image is pulled with.
#[async_trait]
pub trait PullCredentials: Send + Sync + 'static {
    /// The credentials for a reference, given the names of Secrets.
    async fn find(
        &self,
        reference: &Reference,
        secrets: &[String],
    ) -> Result<Vec<Credentials>, PullCredentialsError>;

    /// The data of a Secret in the namespace of the control plane.
    async fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, PullCredentialsError> {
        Err(PullCredentialsError::NoControlPlane(name.to_owned()))
    }
}

/// Those of the user who runs a command, as Docker keeps them.
pub struct DockerCredentials(pub DockerConfig);

#[async_trait]
impl PullCredentials for DockerCredentials {
    async fn find(
        &self,
        reference: &Reference,
        _: &[String],
    ) -> Result<Vec<Credentials>, PullCredentialsError> {
        Ok(self.0.lookup(reference, &HelperOptions::default()).await?)
    }
}

/// Those in Secrets of a control plane: the ones that the package names, and those of the service account.
pub struct SecretCredentials {
    /// Reads the Secrets.
    pub client: kube::Client,
    /// The namespace of the control plane.
    pub namespace: String,
}

#[async_trait]
impl PullCredentials for SecretCredentials {
    async fn find(
        &self,
        _: &Reference,
        secrets: &[String],
    ) -> Result<Vec<Credentials>, PullCredentialsError> {
        let mut all = Vec::new();
        for name in secrets {
            let missing = || self.missing("pull secret", name);
            all.extend(self.pull_secret(name).await?.ok_or_else(missing)?);
        }
        let account = self.read("serviceaccounts", SERVICE_ACCOUNT).await?.unwrap_or_default();
        for secret in account["imagePullSecrets"].as_array().into_iter().flatten() {
            // As for Pods, a Secret of the account that does not exist is left out.
            let name = secret["name"].as_str().unwrap_or_default();
            all.extend(self.pull_secret(name).await?.unwrap_or_default());
        }
        Ok(all)
    }

    async fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, PullCredentialsError> {
        let missing = || self.missing("Secret", name);
        let secret = self.read("secrets", name).await?.ok_or_else(missing)?;
        Ok(transom_xapi::connection::details(&secret))
    }
}

impl SecretCredentials {
    fn missing(&self, what: &'static str, name: &str) -> PullCredentialsError {
        PullCredentialsError::NotFound { what, name: name.to_owned(), namespace: self.namespace.clone() }
    }

    async fn pull_secret(&self, name: &str) -> Result<Option<Vec<Credentials>>, PullCredentialsError> {
        let Some(secret) = self.read("secrets", name).await? else { return Ok(None) };
        let details: BTreeMap<String, Vec<u8>> = transom_xapi::connection::details(&secret);
        let read = from_secret(|field| details.get(field).map(Vec::as_slice));
        let (name, namespace) = (name.to_owned(), self.namespace.clone());
        read.map(Some).map_err(|source| PullCredentialsError::Malformed { name, namespace, source })
    }

    async fn read(&self, resource: &str, name: &str) -> Result<Option<Value>, PullCredentialsError> {
        let path = format!("/api/v1/namespaces/{}/{resource}/{name}", self.namespace);
        let request = http::Request::get(path).body(Vec::new())?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(PullCredentialsError::Read {
                resource: resource.to_owned(),
                name: name.to_owned(),
                namespace: self.namespace.clone(),
                error,
            }),
        }
    }
}
