//! Providers that run from their packages: controllers in containers, with the network of this machine, that are clients of
//! the plane as they would be in a cluster.
//!
//! A provider has the service account of its revision, a token of which is in the files where clients in a cluster look for
//! it. The account may do everything in the plane, as long as the provider runs.

use crate::config::Overrides;
use crate::ends::Ends;
use crate::images::Image;
use crate::logs::Printed;
use crate::program::{Program, Recipe};
use crate::revision::{RUNS_HERE, environment, host_name, limited, without_program, working_dir};
use crate::runtime::Shared;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;
use transom_container::{ContainerSpec, Mount, Network};
use transom_deploy::{CertificateStore, Leaf, service_dns_names};
use transom_engine::{Cluster, Error, ErrorContext, Result};
use transom_packages::establish::WEBHOOK_PORT;
use transom_runner::{Problem, ProviderChanged, ProviderRuntime, ProviderSpec, ProviderState, Reason};
use transom_xapi::constants::owner;
use transom_xapi::metadata::controller_reference;

/// Where clients in a cluster look for their credentials.
const ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const SERVER_CERTIFICATES_DIR: &str = "/tls/server";
const CLIENT_CERTIFICATES_DIR: &str = "/tls/client";
/// What resolves names in the network of this machine.
const RESOLVER_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// How long a token is valid. A container that is started later gets another one.
const TOKEN_SECONDS: u64 = 365 * 24 * 3600;
/// How long the first look at a provider waits for it to run.
const START_WITHIN: Duration = Duration::from_secs(3);

/// The names of the service accounts that may do everything, because they are those of providers that run.
pub type Privileged = Arc<RwLock<BTreeSet<String>>>;

/// How providers reach the plane.
pub struct PlaneAccess {
    /// Where it serves.
    pub address: SocketAddr,
    /// The authority of its certificate, in PEM.
    pub authority: String,
    /// The namespace of packages.
    pub namespace: String,
    /// Asks for tokens.
    pub client: kube::Client,
    /// Reads and writes service accounts.
    pub cluster: Cluster,
    /// Has the certificates of providers.
    pub certificates: CertificateStore,
    /// Kept up to date with the providers that run.
    pub privileged: Privileged,
}

/// Runs Providers in containers on this machine.
pub struct ProviderContainers {
    shared: Arc<Shared>,
    plane: Arc<PlaneAccess>,
    memory_bytes: u64,
    providers: Mutex<BTreeMap<String, Arc<Provider>>>,
    /// The providers that are being stopped.
    stopping: Mutex<JoinSet<()>>,
    changed: Arc<RwLock<Option<ProviderChanged>>>,
    /// What is remarkable about the end of providers that were stopped, by revision.
    ends: Arc<Ends<String>>,
}

struct Provider {
    spec: ProviderSpec,
    overrides: Overrides,
    program: Program,
}

impl ProviderContainers {
    pub(crate) fn new(shared: Arc<Shared>, plane: PlaneAccess, memory_bytes: u64) -> Self {
        Self {
            shared,
            plane: Arc::new(plane),
            memory_bytes,
            providers: Mutex::default(),
            stopping: Mutex::default(),
            changed: Arc::default(),
            ends: Arc::default(),
        }
    }

    fn providers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Provider>>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, spec: &ProviderSpec) -> Provider {
        let overrides = Overrides::of(&spec.config);
        let container = Arc::new(ProviderContainer {
            spec: spec.clone(),
            overrides: overrides.clone(),
            plane: self.plane.clone(),
            shared: self.shared.clone(),
            memory_bytes: self.memory_bytes,
        });
        let described = move |image: Image| {
            let container = container.clone();
            Box::pin(async move { container.describe(image).await }) as BoxFuture<'static, _>
        };
        let (changed, revision) = (self.changed.clone(), spec.revision.clone());
        let notify = move || {
            let changed = changed.read().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(changed) = changed {
                changed(&revision);
            }
        };
        let recipe = Recipe {
            image: spec.image.clone(),
            describe: Box::new(described),
            log: Printed::Provider.log(&self.shared.place.dir, &spec.provider, &spec.revision),
            changed: Arc::new(notify),
        };
        Provider { spec: spec.clone(), overrides, program: Program::start(recipe, &self.shared) }
    }

    /// The running provider that is wanted, and whether it was just started.
    fn provider(&self, spec: &ProviderSpec) -> (Arc<Provider>, bool) {
        let mut providers = self.providers();
        if let Some(found) = providers.get(&spec.revision) {
            let is_same = found.program.is_of(&spec.image) && found.spec.config == spec.config;
            if is_same && found.spec.uid == spec.uid {
                return (found.clone(), false);
            }
        }
        if let Some(other) = providers.remove(&spec.revision) {
            self.stop_later(other);
        }
        self.ends.remove(&spec.revision);
        let started = Arc::new(self.start(spec));
        providers.insert(spec.revision.clone(), started.clone());
        (started, true)
    }

    fn stop_later(&self, provider: Arc<Provider>) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while stopping.try_join_next().is_some() {}
        let (ends, changed) = (self.ends.clone(), self.changed.clone());
        stopping.spawn(async move {
            let Some(end) = provider.program.stop().await else { return };
            let revision = &provider.spec.revision;
            tracing::info!(revision, end, "a provider was stopped");
            ends.insert(revision.clone(), end);
            let changed = changed.read().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(changed) = changed {
                changed(revision);
            }
        });
    }

    /// Stops all providers, and waits until nothing of them is left.
    pub async fn stop(&self) {
        let mut all = {
            let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *stopping)
        };
        for (_, provider) in std::mem::take(&mut *self.providers()) {
            all.spawn(async move { drop(provider.program.stop().await) });
        }
        while all.join_next().await.is_some() {}
    }
}

#[async_trait]
impl ProviderRuntime for ProviderContainers {
    async fn certify(&self, provider: &ProviderSpec) -> Result<Option<String>, Problem> {
        let certified = async {
            let certificate = self.plane.server_certificate(provider).await?;
            self.plane.apply_webhook_service(provider).await?;
            Ok(certificate)
        };
        let certified = certified.await;
        let problem = |error: Error| Problem::new(Reason::NotDeployed, error.chain().to_string());
        certified.map(|certificate| Some(certificate.authorities)).map_err(problem)
    }

    async fn ensure(&self, provider: &ProviderSpec) -> ProviderState {
        let (found, is_new) = self.provider(provider);
        if is_new {
            found.program.until_started_or_failed(START_WITHIN).await;
        }
        match found.program.standing() {
            Ok(()) => {
                let notes = [Some(RUNS_HERE.to_owned()), found.overrides.note(), found.program.remarks()];
                let notes = notes.into_iter().flatten();
                ProviderState::Running(notes.collect::<Vec<_>>().join("; "))
            }
            Err(problem) if problem.reason == Reason::InvalidImage => ProviderState::Failed(problem),
            Err(problem) => ProviderState::Pending(problem),
        }
    }

    async fn release(&self, revision: &str) {
        self.plane.privilege(revision, false);
        let released = self.providers().remove(revision);
        if let Some(provider) = released {
            self.stop_later(provider);
        }
    }

    fn remark(&self, revision: &str) -> Option<String> {
        self.ends.get(revision)
    }

    fn on_change(&self, changed: ProviderChanged) {
        *self.changed.write().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }
}

impl PlaneAccess {
    fn privilege(&self, account: &str, is_privileged: bool) {
        let user = format!("system:serviceaccount:{}:{account}", self.namespace);
        let mut privileged = self.privileged.write().unwrap_or_else(PoisonError::into_inner);
        match is_privileged {
            true => privileged.insert(user),
            false => privileged.remove(&user),
        };
    }

    async fn server_certificate(&self, provider: &ProviderSpec) -> Result<transom_deploy::ServerCertificate> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.cluster
            .apply(&namespace, owner::RUNTIME)
            .await
            .context("cannot make the namespace of packages")?;
        let names = service_dns_names(&provider.provider, &self.namespace).to_vec();
        let secret = format!("{}-tls-server", provider.provider);
        self.certificates.server(&secret, Some(owner_of(provider)), names).await
    }

    /// The Service that the provider's webhooks name. The provider has the network of this machine, so that the Service is
    /// another name of it; its certificate is for the name of the Service.
    async fn apply_webhook_service(&self, provider: &ProviderSpec) -> Result<()> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": provider.provider, "namespace": self.namespace, "ownerReferences": [owner_of(provider)],
            },
            "spec": {
                "type": "ExternalName", "externalName": "localhost",
                "ports": [{"name": "webhooks", "port": WEBHOOK_PORT}],
            },
        });
        let applied = self.cluster.apply(&service, owner::RUNTIME).await;
        applied.map(drop).context("cannot apply provider package service")
    }

    /// A token of the service account of a provider, which is made if it does not exist.
    async fn token(&self, provider: &ProviderSpec) -> Result<String> {
        let metadata = json!({
            "name": provider.revision, "namespace": self.namespace, "ownerReferences": [owner_of(provider)],
        });
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        self.cluster
            .apply(&account, owner::RUNTIME)
            .await
            .context("cannot apply provider package service account")?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": TOKEN_SECONDS},
        });
        let path =
            format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", self.namespace, provider.revision);
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(request.to_string().into_bytes());
        let answer =
            self.client.request::<Value>(request.map_err(Error::transport)?).await.map_err(Error::transport);
        let answer = answer.context("cannot make a token for the provider")?;
        let token = answer["status"]["token"].as_str();
        token.map(str::to_owned).ok_or_else(|| Error::domain("the server's answer has no token"))
    }
}

fn owner_of(provider: &ProviderSpec) -> Value {
    controller_reference("pkg.crossplane.io/v1", "ProviderRevision", &provider.revision, &provider.uid)
}

/// What the container of a provider is made from.
struct ProviderContainer {
    spec: ProviderSpec,
    overrides: Overrides,
    plane: Arc<PlaneAccess>,
    shared: Arc<Shared>,
    memory_bytes: u64,
}

impl ProviderContainer {
    async fn describe(&self, image: Image) -> Result<ContainerSpec, Problem> {
        let config = &image.config;
        let entrypoint = self.overrides.command.as_ref().unwrap_or(&config.entrypoint);
        let arguments = self.overrides.args.as_ref().unwrap_or(&config.cmd);
        let args: Vec<String> = entrypoint.iter().chain(arguments).cloned().collect();
        if args.is_empty() {
            return Err(without_program(&self.spec.image.reference));
        }
        let mounts = self.mounts().await?;
        self.plane.privilege(&self.spec.revision, true);
        let limits =
            transom_container::Limits { memory_bytes: self.memory_bytes, ..self.shared.containers.limits };
        Ok(ContainerSpec {
            name: host_name(&self.spec.revision),
            root: image.root.clone(),
            args,
            env: environment(&image, &self.overrides, self.variables()),
            cwd: working_dir(&image),
            port: None,
            network: Network::Host,
            mounts,
            limits: limited(limits, &self.overrides),
        })
    }

    fn variables(&self) -> [String; 10] {
        let PlaneAccess { address, namespace, .. } = &*self.plane;
        let ProviderSpec { provider, revision, uid, .. } = &self.spec;
        [
            format!("KUBERNETES_SERVICE_HOST={}", address.ip()),
            format!("KUBERNETES_SERVICE_PORT={}", address.port()),
            format!("POD_NAMESPACE={namespace}"),
            format!("PROVIDER_NAME={provider}"),
            format!("REVISION_NAME={revision}"),
            format!("REVISION_UID={uid}"),
            format!("TLS_SERVER_CERTS_DIR={SERVER_CERTIFICATES_DIR}"),
            format!("WEBHOOK_TLS_CERT_DIR={SERVER_CERTIFICATES_DIR}"),
            format!("TLS_CLIENT_CERTS_DIR={CLIENT_CERTIFICATES_DIR}"),
            // Controllers elect no leader among the one that there is.
            "LEADER_ELECTION=false".to_owned(),
        ]
    }

    /// The files that a provider has in a cluster: its token, its certificates, and what names are resolved with.
    async fn mounts(&self) -> Result<Vec<Mount>, Problem> {
        let not_made = |error: &Error| Problem::new(Reason::NotDeployed, error.chain().to_string());
        let server = self.plane.server_certificate(&self.spec).await.map_err(|e| not_made(&e))?;
        let token = self.plane.token(&self.spec).await.map_err(|e| not_made(&e))?;
        let (names, secret) =
            (vec![self.spec.revision.clone()], format!("{}-tls-client", self.spec.provider));
        let client = self.plane.certificates.client(&secret, Some(owner_of(&self.spec)), names).await;
        let client = client.map_err(|e| not_made(&e))?;
        let on_disk = |e: io::Error| {
            Problem::new(Reason::NotDeployed, format!("cannot write the credentials of a provider: {e}"))
        };
        let folder = self.shared.workspace()?.new_folder("provider").map_err(on_disk)?;
        let account =
            [("token", &*token), ("ca.crt", &*self.plane.authority), ("namespace", &*self.plane.namespace)];
        let pair = |leaf: &Leaf| (leaf.certificate.clone(), leaf.key.clone());
        let (server_pair, client_pair) = (pair(&server.leaf), pair(&client.current));
        let server =
            [("tls.crt", &*server_pair.0), ("tls.key", &*server_pair.1), ("ca.crt", &*server.authorities)];
        let client =
            [("tls.crt", &*client_pair.0), ("tls.key", &*client_pair.1), ("ca.crt", &*client.authorities)];
        let mut mounts = Vec::new();
        for (name, files, target) in [
            ("account", account, ACCOUNT_DIR),
            ("server", server, SERVER_CERTIFICATES_DIR),
            ("client", client, CLIENT_CERTIFICATES_DIR),
        ] {
            let source = write_files(&folder.join(name), &files).map_err(on_disk)?;
            mounts.push(Mount { source, target: target.to_owned() });
        }
        for file in RESOLVER_FILES.into_iter().filter(|file| Path::new(file).is_file()) {
            // Where it is a link, the container must have what it leads to.
            let source = fs::canonicalize(file).map_err(on_disk)?;
            mounts.push(Mount { source, target: file.to_owned() });
        }
        Ok(mounts)
    }
}

/// Writes files that the user of a container can read. Others cannot: the folder is in one of this process alone.
fn write_files(folder: &Path, files: &[(&str, &str)]) -> io::Result<PathBuf> {
    fs::create_dir(folder)?;
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    Ok(folder.to_owned())
}
