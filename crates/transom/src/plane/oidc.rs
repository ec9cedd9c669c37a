//! Tokens of OpenID Connect issuers: fetches their keys, again when a token names a key that is not known.

use clap::Args;
use http::{Request, Uri};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use transom_apiserver::{Identity, TokenAuthenticator, async_trait};
use transom_console::Failure;
use transom_object::time::Timestamp;
use transom_object::yaml;
use transom_oidc::{Configuration, Issuer, KeySet, Refused, User, issuer_of};

const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Keys are fetched again when they are older than this.
const KEYS_MAX_AGE: Duration = Duration::from_secs(3600);
/// The shortest interval between two requests to an issuer, for any number of tokens.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// How users are known, besides certificates and tokens of the server itself.
#[derive(Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct AuthenticationArgs {
    /// OpenID Connect issuers whose tokens are accepted: an AuthenticationConfiguration of apiserver.config.k8s.io/v1
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,
}

impl AuthenticationArgs {
    /// What accepts tokens. A configuration that cannot be read prevents the start.
    pub(crate) fn open(&self) -> Result<Vec<Box<dyn TokenAuthenticator>>, Failure> {
        let Some(path) = &self.authentication_config else { return Ok(Vec::new()) };
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(format!("the authentication configuration {}: {why}", path.display()))
                .remedy("write it as the AuthenticationConfiguration that Kubernetes documents")
        };
        let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
        let value = yaml::read(&text).map_err(|e| wrong(&e))?;
        let configuration = Configuration::parse(&value).map_err(|e| wrong(&e))?;
        let keys = configuration.issuers.iter().map(|_| Mutex::default()).collect();
        Ok(vec![Box::new(IssuerTokens { configuration, keys })])
    }
}

struct IssuerTokens {
    configuration: Configuration,
    /// Of each issuer.
    keys: Vec<Mutex<Option<Fetched>>>,
}

struct Fetched {
    /// None if they could not be fetched.
    keys: Option<Arc<KeySet>>,
    at: Instant,
}

#[async_trait]
impl TokenAuthenticator for IssuerTokens {
    async fn authenticate(&self, token: &str) -> Option<Identity> {
        let url = issuer_of(token)?;
        let position = self.configuration.issuers.iter().position(|issuer| issuer.url == url)?;
        match self.user(position, token).await {
            Ok(user) => Some(identity(user)),
            Err(why) => {
                tracing::debug!(issuer = url, why, "a token was refused");
                None
            }
        }
    }
}

fn identity(user: User) -> Identity {
    let mut identity = Identity::new(user.name, user.groups);
    (identity.uid, identity.extra) = (user.uid, user.extra);
    identity
}

impl IssuerTokens {
    async fn user(&self, position: usize, token: &str) -> Result<User, String> {
        let issuer = &self.configuration.issuers[position];
        for newer_than in [KEYS_MAX_AGE, MIN_INTERVAL] {
            let keys = self.keys(position, newer_than).await?;
            match issuer.authenticate(token, &keys, Timestamp::now().as_second()) {
                Ok(user) => return Ok(user),
                Err(Refused::Invalid(why)) => return Err(why),
                Err(Refused::UnknownKey) => {}
            }
        }
        Err("the issuer has no key that it names".to_owned())
    }

    /// The keys of an issuer, fetched if they are older than this.
    async fn keys(&self, position: usize, newer_than: Duration) -> Result<Arc<KeySet>, String> {
        let mut fetched = self.keys[position].lock().await;
        let age = fetched.as_ref().map(|fetched| fetched.at.elapsed());
        let failed = fetched.as_ref().is_some_and(|fetched| fetched.keys.is_none());
        if age.is_none_or(|age| age > newer_than || (failed && age > MIN_INTERVAL)) {
            let issuer = &self.configuration.issuers[position];
            let keys = tokio::time::timeout(FETCH_TIMEOUT, fetch_keys(issuer)).await;
            let keys = keys.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            if let Err(error) = &keys {
                tracing::warn!(issuer = issuer.url, error, "cannot fetch the keys of an issuer");
            }
            // Keys that cannot be fetched again are used as long as they verify tokens.
            let before = fetched.take().and_then(|fetched| fetched.keys);
            *fetched = Some(Fetched { keys: keys.ok().map(Arc::new).or(before), at: Instant::now() });
        }
        let keys = fetched.as_ref().and_then(|fetched| fetched.keys.clone());
        keys.ok_or_else(|| "the keys of the issuer could not be fetched".to_owned())
    }
}

async fn fetch_keys(issuer: &Issuer) -> Result<KeySet, String> {
    let below = || format!("{}/.well-known/openid-configuration", issuer.url.trim_end_matches('/'));
    let discovery = fetch(&issuer.discovery_url.clone().unwrap_or_else(below), issuer).await?;
    if discovery["issuer"] != *issuer.url {
        return Err("its configuration names another issuer".to_owned());
    }
    let keys = discovery["jwks_uri"].as_str().filter(|url| url.starts_with("https://"));
    let keys = keys.ok_or("its configuration has no jwks_uri that begins with https://")?;
    KeySet::parse(&fetch(keys, issuer).await?).ok_or_else(|| "its keys are not a JWK set".to_owned())
}

/// Reads a JSON document over HTTPS.
async fn fetch(url: &str, issuer: &Issuer) -> Result<Value, String> {
    let failed = |e: &dyn std::fmt::Display| format!("{url}: {e}");
    let uri: Uri = url.parse().map_err(|e| failed(&e))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let origin = format!("https://{}", uri.authority().map_or("", |authority| authority.as_str()));
    let mut config = kube::Config::new(origin.parse().map_err(|e| failed(&e))?);
    if let Some(authority) = &issuer.certificate_authority {
        let certificates = CertificateDer::pem_slice_iter(authority.as_bytes());
        let certificates: Result<Vec<Vec<u8>>, _> =
            certificates.map(|certificate| certificate.map(|der| der.to_vec())).collect();
        config.root_cert = Some(certificates.map_err(|e| failed(&e))?);
    }
    let client = kube::Client::try_from(config).map_err(|e| failed(&e))?;
    let request = Request::get(path).body(Vec::new()).map_err(|e| failed(&e))?;
    let text = client.request_text(request).await.map_err(|e| failed(&e))?;
    serde_json::from_str(&text).map_err(|e| failed(&e))
}
