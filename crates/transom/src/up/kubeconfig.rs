//! The admin kubeconfig.

use super::pki::{Authority, write_private};
use crate::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;

pub(super) fn write(path: &Path, address: SocketAddr, authority: &Authority) -> Result<(), Failure> {
    let admin = authority.client("transom-admin", "system:masters")?;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "transom",
            "cluster": {
                "server": format!("https://{}", reachable(address)),
                "certificate-authority-data": STANDARD.encode(authority.certificate_pem()),
            },
        }],
        "users": [{
            "name": "transom-admin",
            "user": {
                "client-certificate-data": STANDARD.encode(&admin.certificate),
                "client-key-data": STANDARD.encode(&admin.key),
            },
        }],
        "contexts": [{"name": "transom", "context": {"cluster": "transom", "user": "transom-admin"}}],
        "current-context": "transom",
    });
    write_private(path, transom_object::yaml::write(&config)).map_err(|e| {
        Failure::new(format!("cannot write the kubeconfig {}: {e}", path.display()))
            .remedy("pass another place with --kubeconfig FILE")
    })
}

/// An address to connect to: listening everywhere is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}
