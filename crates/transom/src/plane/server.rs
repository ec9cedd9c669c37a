//! The API server of an embedded plane, with its certificates and its upkeep.

use super::data_location::DataLocation;
use super::links::Links;
use super::pki::{self, Authority};
use super::usage_protection::UsageProtection;
use crate::failure::Failure;
use http::Request;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use transom_apiserver::{Identity, Options, Server};
use transom_store::Store;

/// The user that the controllers in this process are to the server.
const CONTROLLERS: &str = "system:serviceaccount:crossplane-system:crossplane";

pub(crate) struct ApiServer {
    pub(super) server: Server,
    pub(super) authority: Authority,
}

impl ApiServer {
    /// Prepares a store to be served. With controllers, the server is ready only when they are, and asks usages before
    /// it deletes.
    pub(crate) async fn start(
        store: Store,
        location: &DataLocation,
        links: &Links,
        with_controllers: bool,
    ) -> Result<Self, Failure> {
        let (authority, token_key) = certificates(location)?;
        let mut options = Options {
            ca_certificate: authority.certificate_pem().to_owned(),
            token_key,
            metrics: links.registry.clone(),
            ..Options::default()
        };
        if with_controllers {
            options.ready_checks = vec![links.controllers_ready()];
            #[cfg(debug_assertions)]
            {
                options.probes = links.idleness.probes();
            }
            options.admission = vec![Box::new(UsageProtection(links.protection.clone()))];
        }
        let server = Server::start(store, options)
            .await
            .map_err(|e| Failure::new(format!("cannot prepare the API server: {e}")))?;
        Ok(Self { server, authority })
    }

    /// A client in this process: its requests are authenticated, authorized and admitted as any others. They are
    /// computed on the runtime of the caller.
    pub(crate) fn client(&self) -> kube::Client {
        let identity = Identity::admin(CONTROLLERS);
        let transport = self.server.clone().map_request(move |mut request: Request<kube::client::Body>| {
            request.extensions_mut().insert(identity.clone());
            request
        });
        kube::Client::new(transport, "default")
    }

    /// Starts garbage collection, expiry and the other duties that follow the log of changes. The task ends after
    /// [`Server::stop`].
    pub(crate) fn start_upkeep(&self, runtime: &Handle) -> JoinHandle<()> {
        let server = self.server.clone();
        runtime.spawn(async move { server.run_upkeep().await })
    }
}

/// The certificate authority, and the key of service account tokens. Those of a plane in memory are not kept.
fn certificates(location: &DataLocation) -> Result<(Authority, Option<Vec<u8>>), Failure> {
    if location.in_memory() {
        return Ok((Authority::ephemeral()?, None));
    }
    let dir = location.pki_dir();
    Ok((Authority::load_or_create(&dir)?, Some(pki::token_key(&dir)?)))
}
