//! What images are pulled with.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::async_trait;
use transom_oci::credentials::{DockerConfig, HelperOptions, from_secret};
use transom_packages::{Credentials, Reference};

/// The service account whose image pull secrets are used for all packages.
const SERVICE_ACCOUNT: &str = "crossplane";

/// Finds what an image is pulled with.
#[async_trait]
pub(crate) trait PullCredentials: Send + Sync + 'static {
    /// The credentials for a reference, given the names of Secrets. Errors say nothing of what is in them.
    async fn find(&self, reference: &Reference, secrets: &[String]) -> Result<Vec<Credentials>, String>;
}

/// Those of the user who runs a command, as Docker keeps them.
pub(crate) struct DockerCredentials(pub(crate) DockerConfig);

#[async_trait]
impl PullCredentials for DockerCredentials {
    async fn find(&self, reference: &Reference, _: &[String]) -> Result<Vec<Credentials>, String> {
        self.0.lookup(reference, &HelperOptions::default()).await.map_err(|e| e.to_string())
    }
}

/// Those in Secrets of a control plane: the ones that the package names, and those of the service account.
pub(crate) struct SecretCredentials {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
}

#[async_trait]
impl PullCredentials for SecretCredentials {
    async fn find(&self, _: &Reference, secrets: &[String]) -> Result<Vec<Credentials>, String> {
        let mut all = Vec::new();
        for name in secrets {
            let missing = || format!("there is no pull secret {name:?} in namespace {:?}", self.namespace);
            all.extend(self.secret(name).await?.ok_or_else(missing)?);
        }
        let account = self.read("serviceaccounts", SERVICE_ACCOUNT).await?.unwrap_or_default();
        for secret in account["imagePullSecrets"].as_array().into_iter().flatten() {
            // As for Pods, a Secret of the account that does not exist is left out.
            let name = secret["name"].as_str().unwrap_or_default();
            all.extend(self.secret(name).await?.unwrap_or_default());
        }
        Ok(all)
    }
}

impl SecretCredentials {
    async fn secret(&self, name: &str) -> Result<Option<Vec<Credentials>>, String> {
        let Some(secret) = self.read("secrets", name).await? else { return Ok(None) };
        let details: BTreeMap<String, Vec<u8>> = transom_xapi::connection::details(&secret);
        let read = from_secret(|field| details.get(field).map(Vec::as_slice));
        read.map(Some)
            .map_err(|e| format!("cannot use pull secret {name:?} in namespace {:?}: {e}", self.namespace))
    }

    async fn read(&self, resource: &str, name: &str) -> Result<Option<Value>, String> {
        let path = format!("/api/v1/namespaces/{}/{resource}/{name}", self.namespace);
        let request = http::Request::get(path).body(Vec::new()).map_err(|e| e.to_string())?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(e) => Err(format!("cannot get {resource} {name:?} in namespace {:?}: {e}", self.namespace)),
        }
    }
}
