//! Acting as another user: the `Impersonate-*` headers, each of which the client must have the right for.
//!
//! The verb is `impersonate`, on `users`, `groups` and `serviceaccounts` of the core group and on `uids` and
//! `userextras/KEY` of `authentication.k8s.io`. The narrower verbs of constrained impersonation are not evaluated.

use crate::auth::{AUTHENTICATED, Attributes, Identity, UNAUTHENTICATED};
use crate::negotiate::header_text;
use crate::server::Inner;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use transom_object::{Status, names};

const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The headers, as they were sent.
struct Wanted {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Inner {
    /// The user that the client acts as, if it wants that and may; otherwise the client.
    pub(crate) async fn impersonate(
        &self,
        client: Identity,
        headers: &HeaderMap,
    ) -> Result<Identity, Status> {
        let Some(wanted) = wanted(headers)? else { return Ok(client) };
        let account = service_account(&wanted.user);
        let (resource, namespace, name) = match account {
            Some((namespace, name)) => ("serviceaccounts", namespace, name),
            None => ("users", "", wanted.user.as_str()),
        };
        let base = Attributes::of(&client, "impersonate");
        self.authorize(&Attributes { resource, namespace, name, ..base }).await?;
        for group in &wanted.groups {
            self.authorize(&Attributes { resource: "groups", name: group, ..base }).await?;
        }
        let base = Attributes { group: "authentication.k8s.io", version: "v1", ..base };
        for (key, values) in &wanted.extra {
            for value in values {
                let attributes = Attributes { resource: "userextras", subresource: key, name: value, ..base };
                self.authorize(&attributes).await?;
            }
        }
        if !wanted.uid.is_empty() {
            self.authorize(&Attributes { resource: "uids", name: &wanted.uid, ..base }).await?;
        }
        let groups = groups(&wanted, account.map(|(namespace, _)| namespace));
        Ok(Identity { user: wanted.user, uid: wanted.uid, groups, extra: wanted.extra })
    }
}

/// The groups that were given, or those of the service account; and whether the user is authenticated.
fn groups(wanted: &Wanted, namespace: Option<&str>) -> Vec<String> {
    let mut groups = wanted.groups.clone();
    if let (true, Some(namespace)) = (groups.is_empty(), namespace) {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let has = |name: &str| groups.iter().any(|group| group == name);
    if wanted.user == "system:anonymous" {
        if !has(UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    groups
}

fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, Status> {
    let all = |name: &http::HeaderName| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            let decoded = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into);
            extra.entry(decoded).or_default().extend(all(name));
        }
    }
    let wanted = Wanted {
        user: header_text(headers, "impersonate-user").to_owned(),
        uid: header_text(headers, "impersonate-uid").to_owned(),
        groups: all(&http::HeaderName::from_static("impersonate-group")),
        extra,
    };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    let sent = ["impersonate-user", "impersonate-uid", "impersonate-group"];
    if wanted.extra.is_empty() && !sent.iter().any(|name| headers.contains_key(*name)) {
        return Ok(None);
    }
    Err(Status::bad_request(
        "requested impersonation without impersonating a user name; send Impersonate-User",
    ))
}

/// Namespace and name, if the user is a service account.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let valid = names::is_dns1123_label(namespace).is_empty() && names::is_dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}
