//! The server: a `tower::Service` from HTTP requests to HTTP responses.
//!
//! request info → authentication → impersonation → authorization → registry → body → verb → representation. The
//! order is part of the API: it decides which of several errors a client gets.

use crate::admission::{Chain, Dynamic};
use crate::audit::{AuditLog, Trail};
use crate::auth::{Attributes, Authorizer, Identity, TokenAuthenticator};
use crate::body::ApiBody;
use crate::call::Call;
use crate::certificates::CertificateSigner;
use crate::environment::Environment;
use crate::negotiate::{Accept, Unacceptable, header_text};
use crate::overload::Seats;
use crate::rbac::Rbac;
use crate::registry::Registry;
use crate::request::{Query, RequestInfo, Target, Verb};
use crate::resource::Access;
use crate::services::Claims;
use crate::tokens::Signer;
use crate::{discovery, health, metrics, openapi, respond, verbs};
use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use transom_object::{Status, fields, names};
use transom_store::Store;

/// The largest request body.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long a request other than a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The Kubernetes API over a store. Cheap to clone; all clones are one server.
#[derive(Clone)]
pub struct Server {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) authenticators: Vec<Box<dyn TokenAuthenticator>>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// Roles and bindings, whether or not they are the authorizer.
    pub(crate) rbac: Arc<Rbac>,
    pub(crate) admission: Chain,
    pub(crate) audit: Option<Arc<dyn AuditLog>>,
    pub(crate) seats: Seats,
    /// Webhooks, policies and quotas.
    pub(crate) dynamic: Dynamic,
    pub(crate) certificate_signer: Option<Arc<dyn CertificateSigner>>,
    pub(crate) environment: Box<dyn Environment>,
    /// Held while a CustomResourceDefinition is decided and installed: names are accepted one at a time.
    pub(crate) definitions: Arc<tokio::sync::Mutex<()>>,
    /// The addresses and node ports that Services hold.
    pub(crate) service_claims: Claims,
    pub(crate) health: health::Health,
    pub(crate) metrics: metrics::Metrics,
    pub(crate) documents: openapi::Cache,
    /// The certificate authority published in every namespace as `kube-root-ca.crt`.
    pub(crate) ca_certificate: String,
    pub(crate) signer: Signer,
    /// Ends watches and upkeep when the server stops.
    pub(crate) stopping: tokio::sync::watch::Sender<bool>,
    /// The revision at which upkeep had nothing left to do; 0 while it has.
    pub(crate) upkeep_idle_at: std::sync::atomic::AtomicU64,
}

impl Server {
    /// Handles one request. Never fails: every failure is a response.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<ApiBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = Instant::now();
        let audit_id = self.audit_id(&request);
        let (mut parts, body) = request.into_parts();
        let trail = self.inner.audit.clone().map(|log| Arc::new(Trail::new(log)));
        if let Some(trail) = &trail {
            parts.headers.insert("audit-id", audit_id.clone());
            parts.extensions.insert(trail.clone());
        }
        let accept_encoding = header_text(&parts.headers, header::ACCEPT_ENCODING.as_str()).to_owned();
        let head = parts.method == Method::HEAD;
        let query = Query::parse(parts.uri.query());
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), query.flag("watch"));
        let label = metrics::Label::of(info.as_ref().ok());
        let outcome = AssertUnwindSafe(self.route(parts, query, info, body)).catch_unwind().await;
        let mut response = outcome.unwrap_or_else(|_| {
            tracing::error!("a request handler panicked; the request was answered with 500");
            respond::render_error(
                &Status::internal("the request handler failed unexpectedly; see the server's log"),
                &Accept::fallback(),
            )
        });
        self.inner.metrics.observe(label, response.status(), started.elapsed());
        if let Some(trail) = &trail {
            trail.answered(&self.inner, &response);
        }
        if head {
            *response.body_mut() = ApiBody::empty();
        }
        let mut response = respond::compress(response, &accept_encoding);
        let headers = response.headers_mut();
        headers.insert("audit-id", audit_id);
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }

    async fn route<B>(
        &self,
        parts: Parts,
        query: Query,
        info: Result<RequestInfo, Status>,
        body: B,
    ) -> Response<ApiBody>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let pretty = query.has("pretty").then(|| query.flag("pretty"));
        let accept = Accept::parse(&parts.headers, pretty);
        let on_error = accept.clone().unwrap_or_else(|_| Accept::fallback());
        let failed = |status: &Status| respond::render_error(status, &on_error);
        let info = match info {
            Ok(info) => info,
            Err(status) => return failed(&status),
        };
        let deadline = Deadline::of(&info, &query);
        let user = match deadline.limit(self.admitted_user(&info, &parts, &query)).await {
            Ok(user) => user,
            Err(status) => return failed(&status),
        };
        let _seat = match self.inner.seats.take(&info, &parts, &user).await {
            Ok(seat) => seat,
            Err(response) => return *response,
        };
        match info {
            RequestInfo::Other(segments) => self.other(&segments, &parts, &query, &on_error).await,
            RequestInfo::Resource { verb, target } => {
                let work = self.resource(verb, target, query, accept, user, parts, body, deadline);
                match work.await {
                    Ok(response) => response,
                    Err(status) => failed(&status),
                }
            }
        }
    }

    /// The client's audit id if it gave a printable one, or a new one.
    fn audit_id<B>(&self, request: &Request<B>) -> HeaderValue {
        let given = request.headers().get("audit-id").filter(|v| v.len() <= 64 && v.to_str().is_ok());
        given.cloned().unwrap_or_else(|| {
            HeaderValue::from_str(&self.inner.new_uid()).unwrap_or(HeaderValue::from_static("-"))
        })
    }

    /// The identity the transport vouched for, or a bearer token's, or anonymous. An invalid token is refused rather
    /// than ignored; other authentication schemes are ignored.
    async fn authenticate(&self, parts: &Parts) -> Result<Identity, Status> {
        if let Some(user) = parts.extensions.get::<Identity>() {
            return Ok(user.clone());
        }
        if !parts.headers.contains_key(header::AUTHORIZATION) {
            return Ok(Identity::anonymous());
        }
        let credential = header_text(&parts.headers, header::AUTHORIZATION.as_str());
        let Some(token) = credential.strip_prefix("Bearer ") else { return Ok(Identity::anonymous()) };
        let known = self.inner.authenticate_any(token.trim(), &[]).await;
        known.map(|(user, _)| user).ok_or_else(Status::unauthorized)
    }

    /// The user whose rights count, after impersonation, once the authorizer has allowed the request.
    async fn admitted_user(
        &self,
        info: &RequestInfo,
        parts: &Parts,
        query: &Query,
    ) -> Result<Identity, Status> {
        let (client, trail) = (self.authenticate(parts).await, parts.extensions.get::<Arc<Trail>>());
        if let Some(trail) = trail {
            trail.begin(
                &self.inner,
                header_text(&parts.headers, "audit-id"),
                info,
                parts,
                client.as_ref().ok(),
            );
        }
        let user = self.inner.impersonate(client?, &parts.headers).await?;
        if let Some(trail) = trail.filter(|_| parts.headers.contains_key("impersonate-user")) {
            trail.acts_as(&user);
        }
        self.authorize_request(info, parts, query, &user).await?;
        Ok(user)
    }

    async fn authorize_request(
        &self,
        info: &RequestInfo,
        parts: &Parts,
        query: &Query,
        user: &Identity,
    ) -> Result<(), Status> {
        match info {
            RequestInfo::Resource { verb, target } => {
                let selected = selected_name(*verb, target, query);
                let mut attributes = Attributes::of_target(user, verb.as_str(), target);
                if let Some(name) = &selected {
                    attributes.name = name;
                }
                self.decide(&attributes, parts).await
            }
            RequestInfo::Other(segments) => {
                let method = parts.method.as_str().to_ascii_lowercase();
                // As it is routed, so that no other spelling of a path passes another rule.
                let end = if segments.is_empty() || !parts.uri.path().ends_with('/') { "" } else { "/" };
                let path = format!("/{}{end}", segments.join("/"));
                self.decide(&Attributes::of_path(user, &method, &path), parts).await
            }
        }
    }

    /// The decision about a request, which is recorded with its reason.
    async fn decide(&self, attributes: &Attributes<'_>, parts: &Parts) -> Result<(), Status> {
        let outcome = self.inner.authorize(attributes).await;
        let trail = parts.extensions.get::<Arc<Trail>>();
        if let Some(trail) = trail.filter(|trail| trail.is_recorded()) {
            let (_, reason) = self.inner.authorizer.explain(attributes).await;
            trail.authorized(&outcome, reason);
        }
        outcome
    }

    /// Discovery, OpenAPI, health, version, metrics.
    async fn other(
        &self,
        segments: &[String],
        parts: &Parts,
        query: &Query,
        accept: &Accept,
    ) -> Response<ApiBody> {
        let routed = matches!(segments, [first] if first == "version" || first == "api");
        if routed && parts.method != Method::GET {
            return respond::render_error(&Status::method_not_allowed(), accept);
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return page_not_found();
        }
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => respond::render(respond::Answer::value(health::version()), accept),
            ["healthz" | "livez" | "readyz", ..] => {
                self.inner.health.answer(&self.inner.store, &segments, query).await
            }
            ["metrics"] => self.inner.metrics.answer(),
            ["openapi", ..] => openapi::answer(&self.inner, &segments[1..], parts, query).await,
            [] | ["api", ..] | ["apis", ..] => discovery::answer(&self.inner, &segments, parts, accept),
            _ => page_not_found(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parsed request, each part used once")]
    async fn resource<B>(
        &self,
        verb: Verb,
        target: Target,
        query: Query,
        accept: Result<Accept, Unacceptable>,
        user: Identity,
        parts: Parts,
        body: B,
        deadline: Deadline,
    ) -> Result<Response<ApiBody>, Status>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let served = self.inner.registry.served();
        let Some(resource) = served.find(&target.gvr).cloned() else {
            // Built-in groups refuse an unknown resource with a Status; other groups may be unknown themselves.
            let known = served
                .in_version(&target.gvr.group, &target.gvr.version)
                .iter()
                .any(|r| r.definition.is_none());
            return if known { Err(Status::no_such_resource()) } else { Ok(page_not_found()) };
        };
        let cluster_wide_list = target.name.is_empty() && matches!(verb, Verb::List | Verb::Watch);
        let is_namespace = resource.is_namespace();
        let scope_fits = if resource.namespaced {
            !target.namespace.is_empty() || cluster_wide_list || resource.access == Access::CreateOnly
        } else {
            target.namespace.is_empty() || is_namespace
        };
        if !scope_fits {
            return if resource.definition.is_some() {
                Ok(page_not_found())
            } else {
                Err(Status::no_such_resource())
            };
        }
        if parts.method == Method::HEAD && resource.definition.is_none() {
            // Custom kinds answer it as they answer GET.
            return Err(Status::method_not_allowed());
        }
        let accept = accept.map_err(|e| e.status(resource.definition.is_some()))?;
        let target = if is_namespace { Target { namespace: String::new(), ..target } } else { target };
        let warnings = Mutex::default();
        let trail = parts.extensions.get::<Arc<Trail>>().cloned();
        let call = Call {
            server: self.inner.clone(),
            resource,
            verb,
            target,
            query,
            accept,
            user,
            headers: parts.headers,
            warnings,
            trail,
        };
        let deadline = deadline.validated()?;
        let work = async {
            let body = read_body(body, verb).await?;
            if let Some(trail) = &call.trail {
                trail.sent(&body);
            }
            verbs::dispatch(&call, body).await
        };
        let mut response = match deadline.limit(work).await {
            Ok(answer) => respond::render(answer, &call.accept),
            Err(status) => respond::render_error(&status, &call.accept),
        };
        respond::warn(&mut response, call.resource.deprecation.iter().chain(&call.take_warnings()));
        Ok(response)
    }
}

/// The one object that a list or watch selects by its name: it needs the right for that object alone.
fn selected_name(verb: Verb, target: &Target, query: &Query) -> Option<String> {
    let selector = query.get("fieldSelector");
    if !matches!(verb, Verb::List | Verb::Watch) || !target.name.is_empty() || selector.is_empty() {
        return None;
    }
    let selector = fields::Selector::parse(selector).ok()?;
    let name = selector.exact("metadata.name")?;
    names::is_path_segment_name(name).is_empty().then(|| name.to_owned())
}

fn page_not_found() -> Response<ApiBody> {
    respond::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// When a request is given up: one deadline for everything that it waits for, authorization included.
struct Deadline {
    at: tokio::time::Instant,
    /// Why the `timeout=` of the query is invalid. It is reported to users that the authorizer allows, as the last of
    /// all mistakes.
    invalid: Option<Status>,
}

impl Deadline {
    fn of(info: &RequestInfo, query: &Query) -> Self {
        let (timeout, invalid) = match request_timeout(info, query) {
            Ok(timeout) => (timeout, None),
            Err(status) => (REQUEST_TIMEOUT, Some(status)),
        };
        Self { at: tokio::time::Instant::now() + timeout, invalid }
    }

    fn validated(self) -> Result<Self, Status> {
        match self.invalid {
            Some(status) => Err(status),
            None => Ok(self),
        }
    }

    async fn limit<T>(&self, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let timed_out =
            || Status::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout");
        tokio::time::timeout_at(self.at, work).await.unwrap_or_else(|_| Err(timed_out()))
    }
}

/// `timeout=` on the query shortens the default; it is a Go duration.
fn request_timeout(info: &RequestInfo, query: &Query) -> Result<Duration, Status> {
    let asked = query.get("timeout");
    let limited = matches!(info, RequestInfo::Resource { verb, .. } if *verb != Verb::Watch);
    if asked.is_empty() || !limited {
        return Ok(REQUEST_TIMEOUT);
    }
    let invalid =
        |why: String| Status::bad_request(format!("invalid timeout specified in the request URL - {why}"));
    let nanos = transom_object::time::parse_duration(asked).map_err(|e| invalid(e.to_string()))?;
    let nanos = u64::try_from(nanos).map_err(|_| invalid(format!("{asked} is negative")))?;
    Ok(if nanos == 0 { REQUEST_TIMEOUT } else { Duration::from_nanos(nanos).min(REQUEST_TIMEOUT) })
}

async fn read_body<B>(body: B, verb: Verb) -> Result<Bytes, Status>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !verb.mutates() {
        return Ok(Bytes::new());
    }
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(e) if e.is::<http_body_util::LengthLimitError>() => {
            Err(Status::too_large(format!("Request entity too large: limit is {BODY_LIMIT}")))
        }
        Err(e) => Err(Status::bad_request(format!("the request body could not be read: {e}"))),
    }
}

impl<B> tower_service::Service<Request<B>> for Server
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
