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
//! | `package_service` | the Service of a package, which leads to one of its revisions |
//! | `following` | watches what runs revisions, and reports the revisions that a change concerns |
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
//! their revision, with the client certificate in the Secret `crossplane-tls-client`. What a revision runs by is watched:
//! its Deployment, Services, ServiceAccounts and Secrets, and the Secret of the authority. The runtime reports which revisions
//! a change concerns ([`on_change`](transom_runner::FunctionRuntime::on_change)) and when the next certificate is to be
//! replaced ([`due_in`](transom_runner::FunctionRuntime::due_in)); the controllers of packages call
//! [`ensure`](transom_runner::FunctionRuntime::ensure) again then. Objects that are as they should be are not written.
//!
//! The crate must not know registries and the content of packages: a revision comes with its image.

#![warn(missing_docs)]

mod certificates;
mod following;
mod objects;
mod package_service;
mod provider;
mod runtime;
mod secrets;

pub use certificates::{Authority, CertificateError, Leaf, Need, Usage};
pub use objects::{Names, Workload, WorkloadKind, service_dns_names};
pub use runtime::{ClusterRuntime, ClusterRuntimeOptions};
pub use secrets::{CertificateStore, ServerCertificate, TlsFiles};
