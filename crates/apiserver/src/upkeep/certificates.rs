//! Approved CertificateSigningRequests are signed, and old ones removed.

use super::owners::resource_of;
use super::{Work, identity, ignore_superseded};
use crate::certificates::{CertificateSignerError, Next, STORE_KEY, is_outdated, next};
use crate::change::{Edit, Existing};
use crate::request::{DeleteOptions, Propagation, WriteOptions};
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write::{self, DeleteRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::Arc;
use transom_object::Status;
use transom_object::error_chain::chain;
use transom_store::{Event, Key};

const MANAGER: &str = "kube-controller-manager";

pub(super) fn note(server: &Inner, event: &Event, mut add: impl FnMut(Work)) {
    if &*event.key.resource == STORE_KEY && event.new.is_some() && server.certificate_signer.is_some() {
        add(Work::Certificate(event.key.object.name.clone()));
    }
}

/// Writes the certificate of an approved request, or why there is none.
pub(super) async fn sign(server: &Arc<Inner>, name: &str) -> Result<(), Status> {
    let key = Key::new(STORE_KEY, "", name);
    let (Some(signer), Some(resource)) = (&server.certificate_signer, resource_of(server, &key)) else {
        return Ok(());
    };
    let Some(entry) = server.store.get(&key) else { return Ok(()) };
    let request = resource.decode(&entry)?;
    let result = match next(&request) {
        Next::Nothing => return Ok(()),
        Next::Fail(why) => Err(why),
        Next::Sign(order) => match signer.sign(&order) {
            Ok(signed) => Ok(STANDARD.encode(signed)),
            Err(error @ CertificateSignerError::Request(_)) => Err(chain(&error)),
            Err(error @ CertificateSignerError::Unavailable(_)) => {
                return Err(Status::internal(chain(&error)));
            }
        },
    };
    let update = write::Update {
        namespace: "",
        name,
        subresource: Subresource::Status,
        options: &WriteOptions::of_manager(MANAGER),
        owns_fields: true,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: identity::certificates(),
    };
    let mut edit = Edit(|existing: &Existing<'_>| {
        let gone = || Status::not_found(&resource.group_resource(), name);
        let mut live = existing.value.cloned().ok_or_else(gone)?;
        // Decided again: it may have been denied in the meantime. Its spec cannot have changed, but another request may
        // have taken its name.
        let same = live["metadata"]["uid"] == request["metadata"]["uid"];
        if same && !matches!(next(&live), Next::Nothing) {
            record(&mut live, &result);
        }
        Ok(live)
    });
    ignore_superseded(write::update(server, &resource, &update, &mut edit).await.map(drop))
}

fn record(request: &mut Value, result: &Result<String, String>) {
    match result {
        Ok(certificate) => request["status"]["certificate"] = certificate.as_str().into(),
        Err(why) => {
            let failed = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
                "lastUpdateTime": null, "lastTransitionTime": null});
            match request["status"]["conditions"].as_array_mut() {
                Some(conditions) => conditions.push(failed),
                None => request["status"]["conditions"] = json!([failed]),
            }
        }
    }
}

/// Deletes the requests that are out of date.
pub(super) async fn clean(server: &Arc<Inner>) {
    let now = server.environment.now().as_second();
    for (object, entry) in &server.store.snapshot(STORE_KEY).objects {
        let key = Key::new(STORE_KEY, "", &object.name);
        let Some(resource) = resource_of(server, &key) else { return };
        if !resource.decode(entry).is_ok_and(|request| is_outdated(&request, now)) {
            continue;
        }
        let mut options = DeleteOptions::with_propagation(Propagation::Background);
        options.preconditions.uid = Some(entry.header.uid.to_string());
        let request = DeleteRequest {
            namespace: "",
            name: &object.name,
            options: &options,
            by: identity::certificates(),
        };
        if let Err(status) = write::delete(server, &resource, &request).await {
            tracing::debug!(request = %object.name, error = %status, "an old certificate signing request was not removed");
        }
    }
}
