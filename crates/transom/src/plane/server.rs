//! The API server of an embedded plane, with its certificates and its upkeep.

use super::account_admission::AccountAdmission;
use super::conversions::PlaneCaller;
use super::data_location::DataLocation;
use super::installation_admission::InstallationAdmission;
use super::links::Links;
use super::pki::{self, Authority};
use super::usage_protection::UsageProtection;
use http::Request;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use transom_apiserver::{AuditLog, Identity, Options, Server, TokenAuthenticator};
use transom_console::Failure;
use transom_engine::Cluster;
use transom_store::Store;
use transom_xapi::roles;

pub(crate) struct ApiServer {
    pub(super) server: Server,
    pub(super) authority: Arc<Authority>,
}

/// The namespace of the service accounts that the controllers in this process are to the server. They do not exist as
/// objects: no token of theirs is needed.
const NAMESPACE: &str = "crossplane-system";

/// What is done with requests before the server decides about them.
#[derive(Default)]
pub(crate) struct Requests {
    /// Records them.
    pub(super) audit: Option<Arc<dyn AuditLog>>,
    /// Know tokens that the server did not sign.
    pub(super) authenticators: Vec<Box<dyn TokenAuthenticator>>,
}

impl ApiServer {
    /// Prepares a store to be served. With controllers, the server is ready only when they are, and asks usages before
    /// it deletes.
    pub(crate) async fn start(
        store: Store,
        location: &DataLocation,
        links: &Links,
        with_controllers: bool,
        requests: Requests,
    ) -> Result<Self, Failure> {
        let (authority, token_key) = certificates(location)?;
        let authority = Arc::new(authority);
        let itself: Arc<OnceLock<Cluster>> = Arc::default();
        let mut options = Options {
            ca_certificate: authority.certificate_pem().to_owned(),
            token_key,
            metrics: links.registry.clone(),
            rbac: true,
            audit: requests.audit,
            authenticators: requests.authenticators,
            webhooks: Some(Arc::new(PlaneCaller::new(store.clone()))),
            certificate_signer: Some(authority.clone()),
            ..Options::default()
        };
        if with_controllers {
            options.ready_checks = vec![links.controllers_ready()];
            #[cfg(debug_assertions)]
            {
                options.probes = links.idleness.probes();
            }
            options.policy = roles::of_control_plane(NAMESPACE);
            options.admission = vec![
                Box::new(UsageProtection(links.protection.clone())),
                Box::new(AccountAdmission {
                    cluster: itself.clone(),
                    own: roles::accounts_of_control_plane(NAMESPACE),
                }),
                Box::new(InstallationAdmission { cluster: itself.clone() }),
            ];
            #[cfg(target_os = "linux")]
            {
                let access = super::provider_access::ProviderAccess(links.privileged.clone());
                options.beyond_rbac = Some(Box::new(access));
            }
        }
        let server = Server::start(store, options)
            .await
            .map_err(|e| Failure::new(format!("cannot prepare the API server: {e}")))?;
        let api = Self { server, authority };
        // The server is started once.
        let _ = itself.set(Cluster::new(api.client_of(Identity::admin("transom:admission"))));
        Ok(api)
    }

    /// A client in this process for the controllers: its requests are authenticated, authorized and admitted as any
    /// others. They are computed on the runtime of the caller.
    pub(crate) fn client(&self) -> kube::Client {
        self.client_of(Identity::service_account(NAMESPACE, roles::CONTROLLERS))
    }

    /// A client for what makes the roles of definitions.
    pub(crate) fn role_client(&self) -> kube::Client {
        self.client_of(Identity::service_account(NAMESPACE, roles::ROLE_MANAGER))
    }

    /// A client in this process for a user.
    pub(super) fn client_of(&self, identity: Identity) -> kube::Client {
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
