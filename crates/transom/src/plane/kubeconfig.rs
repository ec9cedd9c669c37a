//! Writes the kubeconfig of the admin, only when it changes: a plane must start on a full disk, too. Only its owner can read it.

use super::pki::{Authority, write_private};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use transom_console::Failure;

const ADMIN: &str = "transom-admin";

/// Writes the kubeconfig unless the file is current: a plane must start on a full disk, too.
pub(super) fn write(path: &Path, address: SocketAddr, authority: &Authority) -> Result<(), Failure> {
    let server = format!("https://{}", reachable(address));
    if is_current(path, &server, authority) {
        return Ok(());
    }
    let admin = authority.client(ADMIN, "system:masters")?;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "transom",
            "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(authority.certificate_pem()),
            },
        }],
        "users": [{
            "name": ADMIN,
            "user": {
                "client-certificate-data": STANDARD.encode(&admin.certificate),
                "client-key-data": STANDARD.encode(&admin.key),
            },
        }],
        "contexts": [{"name": "transom", "context": {"cluster": "transom", "user": ADMIN}}],
        "current-context": "transom",
    });
    write_private(path, transom_object::yaml::write(&config)).map_err(|e| {
        Failure::new(format!("cannot write the kubeconfig {}: {e}", path.display()))
            .remedy("pass another file with --kubeconfig FILE")
    })
}

/// Whether the file gives access to this plane, only its owner can read it, and its certificate need not be renewed yet.
fn is_current(path: &Path, server: &str, authority: &Authority) -> bool {
    let private = std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 == 0);
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let Ok(config) = transom_object::yaml::read(&text) else { return false };
    let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
    let certificate = user["client-certificate-data"].as_str().and_then(|data| STANDARD.decode(data).ok());
    private
        && cluster["server"] == server
        && cluster["certificate-authority-data"] == STANDARD.encode(authority.certificate_pem())
        && user["client-key-data"].as_str().is_some_and(|key| !key.is_empty())
        && certificate.is_some_and(|certificate| authority.is_lasting(&certificate, ADMIN))
}

/// An address to connect to: a plane that listens on all addresses is reached on loopback.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
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
