//! ProviderConfigs: their schema, and the server and credentials that they lead to.

use super::tls::{Certificates, SslMode};
use serde_json::{Value, json};
use transom_object::{GroupVersionKind, meta};
use transom_provider::schema::{choice, object, text, with};
use transom_provider::{Details, Error, ErrorContext, Resource, Result, secret_data};

const SOURCE: &str = "PostgreSQLConnectionSecret";
const DEFAULT_DATABASE: &str = "postgres";

pub(super) fn legacy_schema(_: bool) -> Value {
    schema(true)
}

/// A namespaced configuration reads Secrets of its own namespace only.
pub(super) fn modern_schema(namespaced: bool) -> Value {
    schema(!namespaced)
}

fn schema(with_namespace: bool) -> Value {
    let mut secret = object("The Secret.", &["name"], json!({"name": text("Its name.")}));
    if with_namespace {
        secret["properties"]["namespace"] = text("Its namespace.");
        secret["required"] = json!(["name", "namespace"]);
    }
    let key = |what: &str| text(&format!("The key of the {what}."));
    let mapping = object(
        "The keys of the Secret, where they differ from the standard ones.",
        &[],
        json!({
            "endpoint": key("address"), "port": key("port"), "username": key("name of the user"),
            "password": key("password"),
        }),
    );
    let credentials = object(
        "Where to connect to, and as which user.",
        &["source"],
        json!({
            "source": choice("Where the credentials are.", &[SOURCE]),
            "connectionSecretRef": secret,
            "secretKeyMapping": mapping,
        }),
    );
    let modes = choice("How connections are encrypted.", &["disable", "require", "verify-ca", "verify-full"]);
    object(
        "How to connect to a PostgreSQL server.",
        &["credentials"],
        json!({
            "credentials": credentials,
            "defaultDatabase": with(
                text("The database to connect to, where none is given."),
                json!({"default": DEFAULT_DATABASE}),
            ),
            "sslMode": with(modes, json!({"default": "verify-full"})),
        }),
    )
}

/// A server and the credentials for it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) endpoint: String,
    pub(super) port: String,
    pub(super) username: String,
    pub(super) password: Vec<u8>,
    pub(super) default_database: String,
    pub(super) mode: SslMode,
    pub(super) certificates: Certificates,
}

impl Target {
    /// Where the ProviderConfig of a managed resource leads.
    pub(super) async fn of<P>(resource: &Resource<'_, P>) -> Result<Self> {
        let config = resource.config.ok_or_else(|| Error::permanent("cannot get ProviderConfig"))?;
        let reference = config.pointer("/spec/credentials/connectionSecretRef");
        let text =
            |field: &str| reference.and_then(|r| r.get(field)).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            return Err(Error::permanent("ProviderConfig does not reference a credentials Secret"));
        }
        let own = meta::namespace(config);
        let namespace = if own.is_empty() { text("namespace") } else { own };
        let secret = GroupVersionKind::new("", "v1", "Secret");
        let attempted = "cannot get credentials Secret";
        let live = resource.cluster.get(&secret, namespace, text("name")).await.context(attempted)?;
        let missing =
            || Error::domain(format!("secrets {:?} not found in namespace {namespace:?}", text("name")));
        let live = live.ok_or_else(missing).context(attempted)?;
        Ok(Self::read(config, &secret_data(&live)))
    }

    fn read(config: &Value, data: &Details) -> Self {
        let mapped = |field: &str| config.pointer(&format!("/spec/credentials/secretKeyMapping/{field}"));
        let bytes = |field: &str| {
            let mapped = mapped(field).and_then(Value::as_str).and_then(|key| data.get(key));
            mapped.or_else(|| data.get(field)).cloned().unwrap_or_default()
        };
        let text = |field: &str| String::from_utf8_lossy(&bytes(field)).into_owned();
        let setting = |field: &str| config["spec"][field].as_str();
        Self {
            endpoint: text("endpoint"),
            port: text("port"),
            username: text("username"),
            password: bytes("password"),
            default_database: setting("defaultDatabase").unwrap_or(DEFAULT_DATABASE).to_owned(),
            mode: match setting("sslMode") {
                Some("disable") => SslMode::Disable,
                Some("require") => SslMode::Require,
                Some("verify-ca") => SslMode::VerifyCa,
                _ => SslMode::VerifyFull,
            },
            certificates: Certificates {
                authorities: bytes("clusterCA"),
                client: bytes("clientCert"),
                client_key: bytes("clientKey"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_can_be_mapped() {
        let mapping = json!({"username": "user", "password": "absent"});
        let config = json!({"spec": {"credentials": {"secretKeyMapping": mapping}, "sslMode": "require"}});
        let data =
            ["user", "username", "password", "endpoint"].map(|key| (key.to_owned(), key.as_bytes().to_vec()));
        let target = Target::read(&config, &data.into());
        assert_eq!((target.username.as_str(), target.password.as_slice()), ("user", &b"password"[..]), "P18");
        assert_eq!((target.default_database.as_str(), target.mode), ("postgres", SslMode::Require));
        assert_eq!(target.port, "");
    }
}
