//! Lists: all pages of a collection are read at one revision, in the order of the store, however long the client takes between
//! two of them.
//!
//! The token that continues a list has Kubernetes' form and holds the revision and the last name. When the history no longer
//! holds that revision, the client gets 410 and, in the error, a token that continues at the latest one.

use super::view;
use crate::call::Call;
use crate::negotiate::Representation;
use crate::request::{ListOptions, VersionMatch};
use crate::respond::{Answer, Payload};
use crate::select::Filter;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use transom_object::Status;
use transom_object::status::{Cause, Details};
use transom_store::{Entry, ObjectKey, Snapshot};

/// The longest wait for a revision that the store has not reached.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(3);

/// Where the next page of a list starts, in the form that Kubernetes uses.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    /// -1: continue at the latest revision, without consistency with the pages before.
    rv: i64,
    start: String,
}

pub(super) async fn list(call: &Call) -> Result<Answer, Status> {
    let options = ListOptions::parse(&call.query, false)?;
    let filter = Filter::new(
        call.resource.clone(),
        &call.target.namespace,
        &options.label_selector,
        &options.field_selector,
    )?;
    let (snapshot, after) = snapshot(call, &options).await?;
    // Any version is acceptable: upstream answers from its cache, without pages.
    let limit = if options.resource_version == "0" && after.is_none() { 0 } else { options.limit };
    let page = page(call, &snapshot, after.as_deref(), &filter, limit);
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), snapshot.revision.to_string().into());
    if let Some(last) = page.next {
        metadata.insert("continue".into(), encode_token(snapshot.revision, &last).into());
        if filter.is_everything() {
            metadata.insert("remainingItemCount".into(), page.remaining.into());
        }
    } else if !call.resource.strategy.is_typed() && call.accept.representation == Representation::Object {
        metadata.insert("continue".into(), "".into());
    }
    let entries = call.server.in_version(&call.resource, page.entries).await?;
    let entries: Vec<&Entry> = entries.iter().map(Arc::as_ref).collect();
    let parts = view(call)?.list(&entries, &Value::Object(metadata))?;
    Ok(Answer::ok(Payload::Json(parts.into())))
}

struct Page {
    entries: Vec<Arc<Entry>>,
    /// The place of the last entry when more follow, as the token names it.
    next: Option<String>,
    remaining: usize,
}

fn page(call: &Call, snapshot: &Snapshot, after: Option<&str>, filter: &Filter, limit: usize) -> Page {
    let mut page = Page { entries: Vec::new(), next: None, remaining: 0 };
    let mut last = String::new();
    for (key, entry) in range(call, snapshot, after, filter) {
        if limit > 0 && page.entries.len() == limit {
            // There is more to look at, whether or not any of it matches.
            page.next.get_or_insert_with(|| std::mem::take(&mut last));
            if !filter.is_everything() {
                break;
            }
            page.remaining += 1;
            continue;
        }
        if filter.matches(entry) {
            page.entries.push(entry.clone());
            last = place(call, key);
        }
    }
    page
}

/// The candidates, in key order: one namespace or all, after the token's place, or the one pinned name.
pub(super) fn range<'a>(
    call: &Call,
    snapshot: &'a Snapshot,
    after: Option<&str>,
    filter: &Filter,
) -> Box<dyn Iterator<Item = (&'a ObjectKey, &'a Arc<Entry>)> + Send + 'a> {
    let namespace = call.target.namespace.as_str();
    let key = |ns: &str, name: &str| ObjectKey { namespace: ns.into(), name: name.into() };
    if let Some(name) = filter.pinned_name()
        && (!namespace.is_empty() || !call.resource.namespaced)
    {
        let found = snapshot.objects.get_key_value(&key(namespace, name));
        let fits = |k: &ObjectKey| after.is_none_or(|a| place(call, k).as_str() > a);
        return Box::new(found.into_iter().filter(move |(k, _)| fits(k)).collect::<Vec<_>>().into_iter());
    }
    let from = match after {
        None => Bound::Included(key(namespace, "")),
        Some(place) if namespace.is_empty() && call.resource.namespaced => {
            let (ns, name) = place.split_once('/').unwrap_or((place, ""));
            Bound::Excluded(key(ns, name))
        }
        Some(name) => Bound::Excluded(key(namespace, name)),
    };
    let to = if namespace.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Excluded(key(&format!("{namespace}\0"), ""))
    };
    Box::new(snapshot.objects.range((from, to)))
}

/// An object's place relative to what is listed: its name, or namespace and name across namespaces.
fn place(call: &Call, key: &ObjectKey) -> String {
    if call.resource.namespaced && call.target.namespace.is_empty() {
        format!("{}/{}", key.namespace, key.name)
    } else {
        key.name.to_string()
    }
}

/// Which revision a list shows.
#[derive(Debug)]
enum Start {
    Latest,
    /// The latest, once the store has come this far.
    NotBefore(u64),
    Exact(u64),
    Continued(Token),
}

impl Start {
    fn of(options: &ListOptions) -> Result<Self, Status> {
        if !options.continue_token.is_empty() {
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::decode(&options.continue_token)
                .map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))?;
            return Ok(Self::Continued(token));
        }
        let revision = parse_revision(&options.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        Ok(match (revision, options.version_match) {
            (None | Some(0), _) => Self::Latest,
            (Some(revision), VersionMatch::Exact) => Self::Exact(revision),
            // Pages of one revision are what a limit meant before there was resourceVersionMatch.
            (Some(revision), VersionMatch::Unset) if options.limit > 0 => Self::Exact(revision),
            (Some(revision), _) => Self::NotBefore(revision),
        })
    }
}

async fn snapshot(call: &Call, options: &ListOptions) -> Result<(Snapshot, Option<String>), Status> {
    let store = &call.server.store;
    let key = &call.resource.store_key;
    match Start::of(options)? {
        Start::Latest => Ok((store.snapshot(key), None)),
        Start::NotBefore(revision) => {
            reach(call, revision).await?;
            Ok((store.snapshot(key), None))
        }
        Start::Exact(revision) => {
            reach(call, revision).await?;
            let snapshot = store
                .snapshot_at(key, revision)
                .map_err(|_| Status::expired("The resourceVersion for the provided list is too old."))?;
            Ok((snapshot, None))
        }
        Start::Continued(token) => continued(call, token),
    }
}

/// As Go reads it: bits that do not fill a byte are ignored.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

impl Token {
    /// Decodes what a client sent; `Err` is what is wrong with it.
    fn decode(text: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("continue key is not valid: {why}");
        let bytes = LENIENT.decode(text.trim_end_matches('=')).map_err(|e| invalid(&illegal_byte(&e)))?;
        let json = transom_object::json::decode(&bytes).map_err(|e| invalid(&e.to_string()))?;
        let token: Self = serde_json::from_value(json.value).map_err(|e| invalid(&e.to_string()))?;
        if token.v != "meta.k8s.io/v1" {
            return Err(invalid(&format!("server does not recognize this encoded version {:?}", token.v)));
        }
        if token.rv == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if token.start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        // No step may lead out of the collection.
        let steps = token.start.strip_prefix('/').unwrap_or(&token.start);
        if !steps.is_empty() && steps.split('/').any(|step| matches!(step, "" | "." | "..")) {
            return Err("continue key is not valid".to_owned());
        }
        Ok(token)
    }
}

fn continued(call: &Call, token: Token) -> Result<(Snapshot, Option<String>), Status> {
    let store = &call.server.store;
    let key = &call.resource.store_key;
    let after = token.start.strip_prefix('/').unwrap_or(&token.start).trim_end_matches('\0').to_owned();
    let Ok(revision) = u64::try_from(token.rv) else {
        return Ok((store.snapshot(key), Some(after)));
    };
    match store.snapshot_at(key, revision) {
        Ok(snapshot) => Ok((snapshot, Some(after))),
        Err(_) => {
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
            );
            status.continue_token =
                Some(encode(&Token { v: "meta.k8s.io/v1".into(), rv: -1, start: token.start }));
            Err(status)
        }
    }
}

/// Go's message for text that is not base64.
fn illegal_byte(error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(length) => length.saturating_sub(1),
        base64::DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

fn encode_token(revision: u64, place: &str) -> String {
    let rv = i64::try_from(revision).unwrap_or(i64::MAX);
    encode(&Token { v: "meta.k8s.io/v1".into(), rv, start: format!("/{place}\0") })
}

fn encode(token: &Token) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(token).unwrap_or_default())
}

/// `None` for an unset resourceVersion; `Err` is why the text is not one.
pub(super) fn parse_revision(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let path = transom_object::field::Path::new("resourceVersion");
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        transom_object::field::Error::invalid(&path, text, why).to_string()
    })
}

/// Reads and watches do not foresee a malformed resourceVersion, so it is answered without a reason.
pub(super) fn invalid_version(why: &str) -> Status {
    Status::new(500, "", why)
}

/// Waits a little for a revision that the store has not reached, then fails.
pub(super) async fn reach(call: &Call, revision: u64) -> Result<(), Status> {
    let store = &call.server.store;
    if tokio::time::timeout(CATCH_UP_TIMEOUT, store.wait_for(revision)).await.is_ok() {
        return Ok(());
    }
    let message = format!("Too large resource version: {revision}, current: {}", store.revision());
    Err(Status::new(504, "Timeout", format!("Timeout: {message}")).with_details(Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            ..Cause::default()
        }],
        retry_after_seconds: 1,
        ..Details::default()
    }))
}

#[cfg(test)]
mod tests;
