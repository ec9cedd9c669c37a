//! The admission webhooks of controllers on a cluster: usage protection, validation of what users install, and whether the
//! author of a definition may use the service account that it names.

use super::installation_admission;
use super::links::Links;
use http::StatusCode;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use transom_console::Failure;
use transom_controllers::{
    ACCOUNTS_PATH, CONVERSION_PATH, Conversions, Protection, USAGES_PATH, VALIDATION_PATH, review_account,
    webhook_configurations,
};
use transom_engine::Cluster;
use transom_hosting::{
    Announced, Answer, Handler, Lifetimes, Question, Reached, Webhook, WebhookOptions, Webhooks,
};
use transom_object::GroupVersionKind;
use transom_xapi::AccountReference;

/// The Secret of the certificates. Those of Crossplane are left alone.
const SECRET: &str = "transom-webhook-certificates";

/// How webhooks are served.
pub(crate) struct WebhookArgs {
    pub(crate) address: SocketAddr,
    pub(crate) reached: Reached,
    /// Of the server certificate; that of the authority is longer.
    pub(crate) certificate_lifetime: Option<Duration>,
}

/// Serves the webhooks of the controllers, which are the service account `own` and keep their Secret in its namespace.
pub(super) async fn start(
    args: WebhookArgs,
    client: kube::Client,
    own: AccountReference,
    links: &Links,
) -> Result<Webhooks, Failure> {
    let conversion = links.conversion.clone();
    let lifetimes = args
        .certificate_lifetime
        .map_or_else(Lifetimes::default, |server| Lifetimes { authority: server * 3, server });
    let options = WebhookOptions {
        address: args.address,
        reached: args.reached,
        namespace: own.namespace.clone(),
        secret: SECRET.to_owned(),
        lifetimes,
        webhooks: webhook_configurations()
            .map(|(path, configuration)| Webhook { configuration, path })
            .to_vec(),
        announced: Some(Announced {
            path: CONVERSION_PATH,
            tell: Arc::new(move |client_config| conversion.serve(client_config)),
        }),
    };
    let cluster = Cluster::new(client);
    let handler = handler(links.protection.clone(), cluster.clone(), own);
    let starting = Webhooks::start(cluster, options, handler, OffsetDateTime::now_utc);
    starting.await.map_err(|e| {
        Failure::new(format!("cannot serve webhooks: {}", e.chain()))
            .remedy("pass another --webhook-port, or --enable-webhooks=false to go without usage protection")
    })
}

/// Converts objects by the rules of a definition, which is read for every review: a copy could be older than the request. A list of
/// many objects takes a while: other reviews go on meanwhile.
async fn convert(
    conversions: &Arc<Conversions>,
    cluster: &Cluster,
    definition: &str,
    review: Value,
) -> Result<Value, tokio::task::JoinError> {
    let gvk = GroupVersionKind::new("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition");
    let read = cluster.get(&gvk, "", definition).await;
    let conversions = conversions.clone();
    let answered = tokio::task::spawn_blocking(move || match read {
        Ok(definition) => conversions.answer(&review, definition.as_ref()),
        Err(error) => Conversions::failure(&review, &format!("cannot get the definition: {}", error.chain())),
    });
    answered.await
}

fn handler(protection: Arc<Protection>, cluster: Cluster, own: AccountReference) -> Handler {
    let own: Arc<[AccountReference]> = Arc::new([own]);
    let conversions = Arc::new(Conversions::default());
    Arc::new(move |question: Question| {
        let (protection, cluster, conversions) = (protection.clone(), cluster.clone(), conversions.clone());
        let own = own.clone();
        Box::pin(async move {
            let review: Value = match serde_json::from_slice(&question.body) {
                Ok(review) => review,
                Err(e) => {
                    return Answer::text(StatusCode::BAD_REQUEST, format!("the body is not JSON: {e}\n"));
                }
            };
            let answer = match question.path.as_str() {
                USAGES_PATH => protection.review(&review),
                VALIDATION_PATH => installation_admission::review(&cluster, &review).await,
                ACCOUNTS_PATH => review_account(&cluster, &own, &review).await,
                path => match path.strip_prefix(CONVERSION_PATH).and_then(|rest| rest.strip_prefix('/')) {
                    Some(definition) => match convert(&conversions, &cluster, definition, review).await {
                        Ok(answer) => answer,
                        Err(error) => {
                            let why = format!("the conversion failed: {error}\n");
                            return Answer::text(StatusCode::INTERNAL_SERVER_ERROR, why);
                        }
                    },
                    None => return Answer::not_found(),
                },
            };
            let body = answer.to_string().into_bytes();
            Answer { status: StatusCode::OK, content_type: "application/json", body }
        })
    })
}
