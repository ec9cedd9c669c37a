//! `provider-sql` for PostgreSQL: databases, roles and privileges, with the API of the original.
//!
//! Both generations of kinds are served, `postgresql.sql.crossplane.io` (cluster scoped) and
//! `postgresql.sql.m.crossplane.io` (namespaced), and do the same in SQL.
//!
//! | module | what it is for |
//! |---|---|
//! | `config` | ProviderConfigs: their schema, and the server and credentials that they lead to |
//! | `pool`, `idle`, `tls` | connections, one pool for each ProviderConfig |
//! | `statement` | quoting, and errors of the server |
//! | `database`, `role`, `grant`, `schema`, `extension`, `default_privileges` | the kinds |

mod config;
mod database;
mod default_privileges;
mod extension;
mod grant;
mod idle;
mod pool;
mod privileges;
mod role;
mod schema;
mod statement;
mod tls;

use pool::Pools;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use transom_object::GroupVersionKind;
use transom_provider::{ConfigKinds, Layout, ManagedKind, Provider, Reference, Scope, Settings};

const VERSION: &str = "v1alpha1";
/// The group of cluster scoped kinds.
const CLUSTER_GROUP: &str = "postgresql.sql.crossplane.io";
/// The group of namespaced kinds.
const NAMESPACED_GROUP: &str = "postgresql.sql.m.crossplane.io";

/// The provider.
pub fn provider() -> Provider {
    let settings = Settings {
        poll_interval: Some(Duration::from_secs(600)),
        max_reconcile_rate: 1000,
        first_backoff: Duration::from_millis(100),
        ..Settings::default()
    };
    let pools = Arc::<Pools>::default();
    let forgotten = pools.clone();
    let mut provider =
        Provider::new("provider-sql", settings).forgetting(move |config| forgotten.forget(config));
    for generation in [Generation { layout: Layout::Legacy }, Generation { layout: Layout::Modern }] {
        provider = provider
            .configs(generation.configs())
            .manages(database::kind(generation), database::Databases(pools.clone()))
            .manages(role::kind(generation), role::Roles(pools.clone()))
            .manages(grant::kind(generation), grant::Grants(pools.clone()))
            .manages(schema::kind(generation), schema::Schemas(pools.clone()))
            .manages(extension::kind(generation), extension::Extensions(pools.clone()))
            .manages(default_privileges::kind(generation), default_privileges::Defaults(pools.clone()));
    }
    provider
}

/// The kinds of Crossplane v1, or those of v2.
#[derive(Clone, Copy)]
struct Generation {
    layout: Layout,
}

impl Generation {
    fn group(self) -> &'static str {
        match self.layout {
            Layout::Legacy => CLUSTER_GROUP,
            Layout::Modern => NAMESPACED_GROUP,
        }
    }

    fn gvk(self, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group(), VERSION, kind)
    }

    fn configs(self) -> ConfigKinds {
        ConfigKinds {
            group: self.group(),
            version: VERSION,
            layout: self.layout,
            categories: &["crossplane", "provider", "sql"],
            spec: if self.layout == Layout::Legacy { config::legacy_schema } else { config::modern_schema },
            secret_name: ".spec.credentials.connectionSecretRef.name",
        }
    }

    /// A kind of this generation.
    fn kind(self, kind: &'static str, plural: &'static str, parameters: Value) -> ManagedKind {
        ManagedKind {
            group: self.group(),
            version: VERSION,
            kind,
            plural,
            scope: if self.layout == Layout::Legacy { Scope::Cluster } else { Scope::Namespaced },
            layout: self.layout,
            categories: &["crossplane", "managed", "sql"],
            description: "Something in a PostgreSQL server.",
            parameters,
            more_spec: json!({}),
            at_provider: None,
            references: Vec::new(),
            configs: Some(self.configs()),
            deterministic_names: true,
        }
    }

    fn reference(self, field: &'static str, kind: &str) -> Reference {
        Reference::one(field, self.gvk(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_have_all_kinds() {
        let provider = provider();
        let names: Vec<&str> =
            provider.crds().iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
        for plural in [
            "databases",
            "roles",
            "grants",
            "schemas",
            "extensions",
            "defaultprivileges",
            "providerconfigs",
            "providerconfigusages",
        ] {
            for group in [CLUSTER_GROUP, NAMESPACED_GROUP] {
                assert!(names.contains(&format!("{plural}.{group}").as_str()), "{plural} {group}");
            }
        }
        assert!(names.contains(&"clusterproviderconfigs.postgresql.sql.m.crossplane.io"));
    }
}
