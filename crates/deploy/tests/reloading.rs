//! Functions that use new certificates without a restart: those of the SDK in Rust.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use transom_deploy::CertificateStore;
use transom_function::testing::{RequestBuilder, Scripted, serve_with};
use transom_function::{RunFunctionRequest, ServeOptions, async_trait};
use transom_runner::{Endpoint, Instance, Lookup, Remote, Tls};

const HOST: &str = "function-x-1.crossplane-system";

/// Leads to a server on loopback.
struct Loopback(SocketAddr);

#[async_trait]
impl Lookup for Loopback {
    async fn lookup(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.0])
    }
}

/// Puts the certificates of a Secret into a directory, as the kubelet does with a volume.
async fn mount(plane: &Plane, dir: &Path) {
    let secret = plane.get("Secret", "function-x-1-tls-server").await.unwrap();
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        let content = STANDARD.decode(secret["data"][file].as_str().unwrap()).unwrap();
        std::fs::write(dir.join(file), content).unwrap();
    }
}

/// Calls the function once with a certificate of the client, on a new connection.
async fn call(address: SocketAddr, authorities: &str, leaf: &transom_deploy::Leaf) -> Result<(), String> {
    let tls = Tls {
        ca: authorities.as_bytes().to_vec(),
        certificate: leaf.certificate.as_bytes().to_vec(),
        key: leaf.key.as_bytes().to_vec(),
    };
    let endpoint =
        Endpoint::mutual_tls(format!("dns:///{HOST}:9443"), tls).found_by(Arc::new(Loopback(address)));
    let options = Options { wait_for_start: std::time::Duration::ZERO, ..Options::default() };
    let remote = Remote::new(endpoint, &options).unwrap();
    remote.call(RequestBuilder::new(json!({})).build()).await.map(drop).map_err(|status| status.to_string())
}

#[tokio::test]
async fn pods_of_a_function_that_reloads_certificates_stay() {
    let plane = Plane::new().await;
    let spec = plane.function(1).await;
    let mut revision =
        plane.cluster.get(&gvk("FunctionRevision"), "", "function-x-1").await.unwrap().unwrap();
    revision["status"]["capabilities"] = json!(["composition", "certificate-reload"]);
    plane.cluster.update_status(&revision, "test").await.unwrap();
    plane.ensure(&spec).await;
    let read = async || {
        let version =
            plane.get("Deployment", "function-x-1").await.unwrap()["metadata"]["resourceVersion"].clone();
        (version, plane.get("Secret", "function-x-1-tls-server").await.unwrap()["data"]["tls.crt"].clone())
    };
    let before = read().await;
    plane.replace_authority().await;
    plane.ensure(&spec).await;
    let after = read().await;
    assert_eq!(after.0, before.0, "its Deployment is not changed");
    assert_ne!(after.1, before.1);
}

#[tokio::test]
async fn calls_go_on_while_all_certificates_are_replaced() {
    let plane = Plane::new().await;
    let spec = plane.function(1).await;
    plane.ensure(&spec).await;
    let dir = tempfile::tempdir().unwrap();
    mount(&plane, dir.path()).await;
    let function = Scripted(|mut request: RunFunctionRequest| Ok(request.start_response()));
    let options = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let served = serve_with(function, options).await;
    let clock = Clock::starting_at(Timestamp::now());
    let store = CertificateStore::new(plane.cluster.clone(), NAMESPACE, clock);
    let first = store.own_client().await.unwrap();
    call(served.address, &first.authorities, &first.current).await.unwrap();
    plane.replace_authority().await;
    plane.ensure(&spec).await;
    let second = store.own_client().await.unwrap();
    let previous = second.previous.clone().unwrap();
    // The pod has not got its new files yet.
    call(served.address, &second.authorities, &previous).await.unwrap();
    assert!(call(served.address, &second.authorities, &second.current).await.is_err());
    mount(&plane, dir.path()).await;
    // Both are accepted now, and the server was not restarted.
    call(served.address, &second.authorities, &previous).await.unwrap();
    call(served.address, &second.authorities, &second.current).await.unwrap();
    served.stop().await;
}
