//! Functions behind web servers (`type: Webhook`), beside functions of other types, over HTTP and with certificates on both sides.

use crate::scenarios::user::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, server};
use transom_object::meta;
use transom_testkit::process::transom;

/// The Secret with the client's certificate, and the namespace of the control plane.
const TLS: &str = "web-tls";
const NAMESPACE: &str = "crossplane-system";

/// What a web server responds with.
#[derive(Clone, Copy)]
enum Reply {
    /// What it was sent, with one more ConfigMap.
    Composes,
    Text(&'static str),
    Busy,
    Never,
}

/// A web server, and the documents that it was sent.
#[derive(Clone)]
struct Web {
    port: u16,
    reply: Arc<Mutex<Reply>>,
    documents: Arc<Mutex<Vec<Value>>>,
    tls: Arc<Mutex<Option<TlsAcceptor>>>,
}

impl Web {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            port: listener.local_addr().unwrap().port(),
            reply: Arc::new(Mutex::new(Reply::Composes)),
            documents: Arc::default(),
            tls: Arc::new(Mutex::new(tls)),
        };
        let serving = web.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        web
    }

    async fn serve(self, stream: TcpStream) {
        let tls = self.tls.lock().unwrap().clone();
        let Some(tls) = tls else { return self.respond(stream).await };
        match tls.accept(stream).into_fallible().await {
            Ok(stream) => self.respond::<server::TlsStream<TcpStream>>(stream).await,
            Err((_, mut refused)) => {
                // Closing it now would end the connection before the client has read why.
                let _ = refused.read_to_end(&mut Vec::new()).await;
            }
        }
    }

    async fn respond<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S) {
        let service = hyper::service::service_fn(|request| self.answer(request));
        let connection = hyper::server::conn::http1::Builder::new();
        // A client that gives up closes its connection.
        let _ = connection.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        assert_eq!(request.method(), http::Method::POST);
        assert_eq!(request.headers()[header::CONTENT_TYPE], "application/yaml");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let document = documents(std::str::from_utf8(&body).unwrap()).remove(0);
        self.documents.lock().unwrap().push(document.clone());
        let reply = *self.reply.lock().unwrap();
        let (status, text) = match reply {
            Reply::Composes => (StatusCode::OK, composed(&document).to_string()),
            Reply::Text(text) => (StatusCode::OK, text.to_owned()),
            Reply::Busy => (StatusCode::SERVICE_UNAVAILABLE, "come back later".to_owned()),
            Reply::Never => std::future::pending().await,
        };
        Ok(Response::builder().status(status).body(Full::new(text.into())).unwrap())
    }

    fn says(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    fn calls(&self) -> usize {
        self.documents.lock().unwrap().len()
    }

    /// The step that calls it, with more fields of `webhook`.
    fn step(&self, scheme: &str, more: &Value) -> Value {
        let mut webhook = json!({"url": format!("{scheme}://127.0.0.1:{}/function", self.port)});
        webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({
            "step": "web",
            "inline": {"type": "Webhook", "webhook": webhook},
            "input": {"apiVersion": "example.org/v1", "kind": "Config", "colour": "red"},
        })
    }
}

/// The answer to a document: what is desired, and a ConfigMap with what the document says.
fn composed(document: &Value) -> Value {
    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": data});
    if document["kind"] == "ResourceList" {
        let mut items = document["items"].as_array().unwrap().clone();
        let composite = &items[0]["metadata"]["name"];
        let mut listed = map(json!({"of": composite}));
        listed["metadata"]["annotations"] = json!({
            "fn.apiextensions.crossplane.io/type": "ComposedResource", "fn.apiextensions.crossplane.io/name": "listed",
        });
        items.push(listed);
        return json!({"kind": "ResourceList", "items": items});
    }
    let field = &document["observed"]["composite"]["resource"]["spec"]["coolField"];
    let data = json!({"field": field, "colour": document["config"]["colour"]});
    let mut desired = document["desired"].clone();
    let web = json!({"name": "web", "resource": map(data), "readinessChecks": [{"type": "None"}]});
    desired["resources"].as_array_mut().unwrap().push(web);
    json!({"desired": desired})
}

fn with_steps(steps: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline", "pipeline": steps},
    })
}

fn call(function: &str) -> Value {
    json!({"step": function, "functionRef": {"name": function}})
}

/// The data of the composed ConfigMaps, by the name of the resource.
async fn maps(user: &User) -> Value {
    let named = |map: &Value| {
        let name = meta::annotation(map, "crossplane.io/composition-resource-name")?.to_owned();
        Some((name, map["data"].clone()))
    };
    user.composed(MAP, "one").await.iter().filter_map(named).collect()
}

async fn until_synced_says(user: &User, words: &str) {
    user.until(THING, "one", |thing| message_of(thing, "Synced").contains(words)).await;
}

async fn touch(user: &User, field: &str) {
    user.patch(THING, "one", json!({"spec": {"coolField": field}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_server_is_a_function_beside_others() {
    let web = Web::start(None).await;
    let user = User::new().await;
    user.function("remote", |_, response| {
        let desired = response.desired.as_ref().map_or(0, |desired| desired.resources.len());
        response.composite().set("status.coolerField", format!("{desired} resources"))?;
        Ok(())
    })
    .await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let mut list = web.step("http", &json!({}));
    list["step"] = "list".into();
    list["inline"]["io"] = "ResourceList".into();
    let steps = [web.step("http", &json!({})), list, call("remote"), call("function-auto-ready")];
    let composition = with_steps(&steps);
    user.apply(&composition.to_string()).await;
    let thing = object("Thing", "one", "coolField: a");
    user.apply(&thing).await;
    let ready = user.until_ready(THING, "one").await;
    assert_eq!(ready["status"]["coolerField"], "2 resources", "the function over gRPC got both");
    let expected = |field: &str| json!({"web": {"field": field, "colour": "red"}, "listed": {"of": "one"}});
    assert_eq!(maps(&user).await, expected("a"));
    // While nothing changes, it is not called.
    user.until_idle().await;
    let calls = web.calls();
    user.apply(&thing).await;
    user.apply(&composition.to_string()).await;
    user.until_idle().await;
    assert_eq!(web.calls(), calls);
    touch(&user, "b").await;
    user.until_idle().await;
    assert_eq!(maps(&user).await, expected("b"));
    assert!(web.calls() > calls);
    rendered(&composition, &thing);
}

/// `render` calls it as well.
fn rendered(composition: &Value, thing: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut composition = composition.clone();
    // The function over gRPC belongs to the control plane.
    composition["spec"]["pipeline"].as_array_mut().unwrap().remove(2);
    for (name, text) in [("xr.yaml", thing), ("composition.yaml", composition.to_string().as_str())] {
        std::fs::write(file(name), text).unwrap();
    }
    let mut command = transom(&["render", &file("xr.yaml"), &file("composition.yaml"), "-o", "json"]);
    let output = tokio::task::block_in_place(|| command.output()).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("\"colour\": \"red\"") && printed.contains("\"of\": \"one\""), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_web_server_does_wrong_is_in_the_condition_and_deletes_nothing() {
    let web = Web::start(None).await;
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let steps = [web.step("http", &json!({"timeout": "2s"})), call("function-auto-ready")];
    user.apply(&with_steps(&steps).to_string()).await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    user.until_ready(THING, "one").await;
    for (at, (reply, words)) in [
        (Reply::Never, "it did not respond within 2 s"),
        (Reply::Busy, "it responded with status 503 Service Unavailable: come back later"),
        (Reply::Text(""), "its output is not a FunctionIO: it is empty"),
        (Reply::Text("<html>"), "its output is not a FunctionIO: it is not an object"),
        (Reply::Text("desired: ["), "its output is not a FunctionIO: "),
        (Reply::Text("results: []"), "its output is not a FunctionIO: it has no field desired"),
        (Reply::Text("kind: ResourceList\nitems: []\n"), "its kind is \"ResourceList\""),
    ]
    .into_iter()
    .enumerate()
    {
        web.says(reply);
        touch(&user, &format!("change-{at}")).await;
        until_synced_says(&user, words).await;
        let thing = user.get(THING, "one").await.unwrap();
        assert_eq!(status_of(&thing, "Synced"), "False");
        assert_eq!(maps(&user).await["web"]["field"], "a", "{words}");
    }
    web.says(Reply::Composes);
    touch(&user, "z").await;
    user.until_ready(THING, "one").await;
    assert_eq!(maps(&user).await["web"]["field"], "z");
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Each has a name of its own: certificates are verified with the authority that they name.
fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for the loopback address, and its key.
fn issue(authority: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// Shows a certificate of an authority, and wants one of it.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let (certificate, key) = issue(authority);
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        );
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// A Secret with the authority of servers, and the certificate of the client by another one.
fn secret(servers: &Authority, client: Option<&(String, String)>) -> String {
    let mut data = json!({"ca.crt": STANDARD.encode(servers.pem())});
    if let Some((certificate, key)) = client {
        data["tls.crt"] = STANDARD.encode(certificate).into();
        data["tls.key"] = STANDARD.encode(key).into();
    }
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": TLS, "namespace": NAMESPACE}, "data": data}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_server_and_the_control_plane_show_certificates_that_can_change() {
    let (first, second) = (authority("first"), authority("second"));
    let web = Web::start(Some(acceptor(&first))).await;
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let apply = async |more: Value| {
        let steps = [web.step("https", &more), call("function-auto-ready")];
        user.apply(&with_steps(&steps).to_string()).await;
    };
    user.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")).await;
    let by_secret = json!({"tlsSecretRef": {"name": TLS}});
    apply(by_secret.clone()).await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    until_synced_says(&user, &format!("there is no Secret \"{TLS}\" in namespace \"{NAMESPACE}\"")).await;
    // Servers want to see a certificate, and one that they know.
    let (ours, strangers) = (issue(&first), issue(&second));
    user.apply(&secret(&first, None)).await;
    touch(&user, "b").await;
    until_synced_says(
        &user,
        "the request failed: connection error: received fatal alert: CertificateRequired",
    )
    .await;
    user.apply(&secret(&first, Some(&strangers))).await;
    touch(&user, "c").await;
    until_synced_says(&user, "received fatal alert: UnknownCA").await;
    // The plane wants to see one of the authority in the Composition, or else in the Secret.
    user.apply(&secret(&first, Some(&ours))).await;
    let mut with_bundle = by_secret.clone();
    with_bundle["caBundle"] = STANDARD.encode(second.pem()).into();
    apply(with_bundle.clone()).await;
    let unknown = format!("TLS with 127.0.0.1:{} failed: invalid peer certificate: UnknownIssuer", web.port);
    until_synced_says(&user, &unknown).await;
    assert_eq!(web.calls(), 0, "nothing was sent");
    with_bundle["caBundle"] = STANDARD.encode(first.pem()).into();
    apply(with_bundle).await;
    user.until_ready(THING, "one").await;
    assert_eq!(maps(&user).await["web"]["field"], "c");
    apply(by_secret).await;
    touch(&user, "d").await;
    user.until(THING, "one", |thing| status_of(thing, "Synced") == "True").await;
    // Both sides change to another authority. The composite resource is not changed for that.
    *web.tls.lock().unwrap() = Some(acceptor(&second));
    touch(&user, "e").await;
    until_synced_says(&user, &unknown).await;
    user.apply(&secret(&second, Some(&strangers))).await;
    user.until_ready(THING, "one").await;
    assert_eq!(maps(&user).await["web"]["field"], "e");
    let log = user.home.log();
    for (_, key) in [&ours, &strangers] {
        let line = key.lines().nth(1).unwrap();
        let events = user.events_of("one").await.concat();
        assert!(!log.contains(line) && !events.contains(line));
    }
}
