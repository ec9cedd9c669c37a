//! Runs packages on a cluster, as Crossplane does: a ServiceAccount, a Service, Secrets with certificates and a Deployment for
//! each active revision.
//!
//! | module | what it holds |
//! |---|---|
//! | `objects` | [`Workload`]: from a revision, its runtime config and its certificates to the objects; pure |
//! | `certificates` | [`Authority`], [`Leaf`]: made and checked; pure but for new keys |
//! | `secrets` | certificates in Secrets: checked whenever they are needed, replaced before they expire |
//! | `runtime` | [`ClusterRuntime`]: applies the objects, and reports whether a revision can be called |
//! | `provider` | the same for Providers, which are not called |
//!
//! A command that runs controllers on a cluster gives a [`ClusterRuntime`] to the `Installer` of `transom_runner`, where
//! `transom up` gives one that runs containers:
//!
//! ```text
//! let runtime = ClusterRuntime::new(cluster, ClusterRuntimeOptions { namespace, clock, call: router.options() }, local);
//! let installer = Installer::new(resolver, Arc::new(runtime), router);
//! ```
//!
//! `local` runs what needs no Deployment: built-in functions, and those at endpoints. Functions are called at the Service of
//! their revision, with the client certificate in the Secret `crossplane-tls-client`. Nothing here watches: the controllers
//! of packages call [`ensure`](transom_runner::FunctionRuntime::ensure) again, at growing intervals until the revision is
//! ready. A controller that watches Deployments makes it faster.
//!
//! The crate must not know registries and the content of packages: a revision comes with its image.

#![warn(missing_docs)]

mod certificates;
mod objects;
mod provider;
mod runtime;
mod secrets;

pub use certificates::{Authority, CertificateError, Leaf, Need, Usage};
pub use objects::{Names, Workload, WorkloadKind, service_dns_names};
pub use runtime::{ClusterRuntime, ClusterRuntimeOptions};
pub use secrets::{CertificateStore, ServerCertificate, TlsFiles};
