//! Kubeconfigs from Secrets. They are written by users of the control plane, so nothing in them may reach files of this machine
//! or run commands on it: certificates, keys and tokens must be part of the text.

use kube::config::{AuthInfo, Cluster, Config, KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::Value;
use transom_object::yaml;

/// Why a kubeconfig cannot be used. Never shows what is in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("failed to load kubeconfig: it is not a kubeconfig in YAML")]
    Unreadable,
    #[error("currentContext not set in kubeconfig")]
    NoContext,
    #[error("the current context of the kubeconfig, its cluster or its user is missing")]
    Missing,
    #[error(
        "the kubeconfig has {field}, which is not supported: {reason}; use the data of certificates and keys, and a token"
    )]
    Unsupported { field: &'static str, reason: &'static str },
    #[error("cannot create a client from the kubeconfig: {0}")]
    Client(String),
}

const FILE: &str = "files of this machine are not read";
const COMMAND: &str = "no command is run for a kubeconfig from a Secret";

/// The connection that a kubeconfig describes.
pub(super) async fn read(text: &[u8]) -> Result<kube::Client, Problem> {
    let text = std::str::from_utf8(text).map_err(|_| Problem::Unreadable)?;
    let parsed: Value = yaml::read(text).map_err(|_| Problem::Unreadable)?;
    let file = Kubeconfig::deserialize(parsed).map_err(|_| Problem::Unreadable)?;
    check(&file)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let failed = |e: &dyn std::fmt::Display| Problem::Client(e.to_string());
    let config = config.map_err(|e| failed(&e))?;
    transom_hosting::connect(&config).map_err(|e| failed(&e))
}

/// Refuses what the current context must not use.
fn check(file: &Kubeconfig) -> Result<(), Problem> {
    let current =
        file.current_context.as_deref().filter(|name| !name.is_empty()).ok_or(Problem::NoContext)?;
    let context = file.contexts.iter().find(|context| context.name == current);
    let context = context.and_then(|context| context.context.as_ref()).ok_or(Problem::Missing)?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).ok_or(Problem::Missing)?;
    let user = context.user.as_deref().unwrap_or_default();
    let user = file.auth_infos.iter().find(|info| info.name == user).and_then(|info| info.auth_info.as_ref());
    let found = of_cluster(cluster).or_else(|| user.and_then(of_user));
    match found {
        Some((field, reason)) => Err(Problem::Unsupported { field, reason }),
        None => Ok(()),
    }
}

fn of_cluster(cluster: &Cluster) -> Option<(&'static str, &'static str)> {
    let checked = [
        (cluster.certificate_authority.is_some(), "certificate-authority", FILE),
        (cluster.proxy_url.is_some(), "proxy-url", "connections are direct"),
    ];
    first(&checked)
}

fn of_user(user: &AuthInfo) -> Option<(&'static str, &'static str)> {
    let checked = [
        (user.exec.is_some(), "exec", COMMAND),
        (user.auth_provider.is_some(), "auth-provider", COMMAND),
        (user.token_file.is_some(), "tokenFile", FILE),
        (user.client_certificate.is_some(), "client-certificate", FILE),
        (user.client_key.is_some(), "client-key", FILE),
    ];
    first(&checked)
}

fn first(checked: &[(bool, &'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
    checked.iter().find(|(is_set, ..)| *is_set).map(|(_, field, reason)| (*field, *reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kubeconfig(cluster: &Value, user: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}, {"name": "unused", "user": {"tokenFile": "/etc/passwd"}}],
        })
    }

    async fn outcome(config: &Value) -> String {
        match read(config.to_string().as_bytes()).await {
            Ok(_) => String::new(),
            Err(problem) => problem.to_string(),
        }
    }

    #[tokio::test]
    async fn files_and_commands_are_refused() {
        let server = json!({"server": "https://127.0.0.1:1"});
        let token = json!({"token": "sesame"});
        assert_eq!(outcome(&kubeconfig(&server, &token)).await, "", "what another user has does not matter");
        for (cluster, user, field) in [
            (
                json!({"server": "https://a", "certificate-authority": "/ca"}),
                token.clone(),
                "certificate-authority",
            ),
            (json!({"server": "https://a", "proxy-url": "http://b"}), token.clone(), "proxy-url"),
            (server.clone(), json!({"exec": {"command": "touch", "apiVersion": "v1"}}), "exec"),
            (server.clone(), json!({"tokenFile": "/etc/passwd"}), "tokenFile"),
            (server.clone(), json!({"client-certificate": "/c"}), "client-certificate"),
            (server.clone(), json!({"client-key": "/k"}), "client-key"),
        ] {
            let words = outcome(&kubeconfig(&cluster, &user)).await;
            assert!(
                words.starts_with(&format!("the kubeconfig has {field}, which is not supported")),
                "{words}"
            );
        }
    }

    #[tokio::test]
    async fn problems_do_not_show_what_is_in_it() {
        let mut without = kubeconfig(&json!({"server": "https://a"}), &json!({"token": "sesame"}));
        without["current-context"] = "".into();
        assert_eq!(outcome(&without).await, "currentContext not set in kubeconfig");
        without["current-context"] = "other".into();
        assert!(outcome(&without).await.contains("is missing"));
        for text in ["token: [sesame", "users: sesame", "sesame", ""] {
            let problem = read(text.as_bytes()).await.err().unwrap().to_string();
            assert!(!problem.contains("sesame"), "{problem}");
        }
        let invalid =
            kubeconfig(&json!({"server": "https://a", "certificate-authority-data": "c2VzYW1l"}), &json!({}));
        assert!(!outcome(&invalid).await.contains("sesame"));
    }
}
