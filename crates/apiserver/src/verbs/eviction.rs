//! `pods/x/eviction`: deletes a pod, unless a PodDisruptionBudget needs it.
//!
//! Nothing here keeps the status of budgets up to date: it is what a controller, or a test, has written.

use super::binding::{read, success};
use super::not_supported;
use crate::admission::{Operation, Options, Request};
use crate::call::{Call, Requester};
use crate::change::{Edit, Existing};
use crate::pods::{self, Budget};
use crate::request::{DeleteOptions, Verb, WriteOptions};
use crate::resource::Resource;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::upkeep::identity;
use crate::write::{self, DeleteRequest, Update};
use serde_json::Value;
use std::sync::Arc;
use transom_object::{GroupResource, GroupVersion, Status};

const TYPE: &str = "io.k8s.api.policy.v1.Eviction";
/// How often an eviction begins anew when the pod changes under it.
const MAX_WRITE_ATTEMPTS: usize = 20;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    if call.verb != Verb::Create {
        return Err(not_supported(call));
    }
    let (mut eviction, options) = read(call, body, "Eviction", TYPE)?;
    if eviction["metadata"]["name"] != *call.target.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let review = Request {
        operation: Operation::Create,
        resource: &call.resource,
        subresource: Subresource::Eviction,
        namespace: &call.target.namespace,
        name: &call.target.name,
        options: Options::Write(&options),
        by: call.requester(),
    };
    call.server.admit_mutating(&review, &mut eviction, None).await?;
    let mut deletion = match &eviction["deleteOptions"] {
        Value::Null => DeleteOptions::default(),
        given => DeleteOptions::parse(&call.query, Some(given))?,
    };
    deletion.dry_run |= options.dry_run;
    call.server.admit_validating(&review, Some(&eviction), None).await?;
    let pinned = deletion.preconditions.resource_version.is_some();
    for _ in 1..MAX_WRITE_ATTEMPTS {
        match evict(call, &deletion).await {
            Err(status) if status.code == 409 && !pinned => {}
            outcome => return outcome.map(|()| success()),
        }
    }
    evict(call, &deletion).await.map(|()| success())
}

/// One attempt; a conflict means that the pod has changed since it was read.
async fn evict(call: &Call, options: &DeleteOptions) -> Result<(), Status> {
    let pod = live(call)?;
    let version = || pod["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    let mut options = options.clone();
    let held = if pods::is_undisturbed(&pod) {
        // A pod that has not started must not have become healthy meanwhile.
        pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null()
    } else {
        match Budget::of(&pod, &budgets(call)?)? {
            Budget::Unlimited => false,
            Budget::Unhealthy => true,
            Budget::Counted(budget) => {
                disrupt(call, &budget, options.dry_run).await?;
                false
            }
        }
    };
    if held && options.preconditions.resource_version.is_none() {
        options.preconditions.resource_version = version();
    }
    if !options.dry_run {
        let marked = mark(call, &options).await?;
        if options.preconditions.resource_version.is_some() {
            options.preconditions.resource_version = Some(marked);
        }
    }
    let request = DeleteRequest {
        namespace: &call.target.namespace,
        name: &call.target.name,
        options: &options,
        by: call.requester(),
    };
    write::delete(&call.server, &call.resource, &request).await.map(drop)
}

fn live(call: &Call) -> Result<Value, Status> {
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    call.resource.decode(&*call.server.store.get(&key).ok_or_else(|| super::missing(call))?)
}

/// The condition that says why the pod goes, for clients that watch it. Returns the version of the pod with it.
async fn mark(call: &Call, options: &DeleteOptions) -> Result<String, Status> {
    let mut edit = Edit(|existing: &Existing<'_>| {
        let live = existing.value.ok_or_else(|| super::missing(call))?;
        let wanted = [
            ("uid", "UID", &options.preconditions.uid),
            ("resourceVersion", "ResourceVersion", &options.preconditions.resource_version),
        ];
        for (field, title, wanted) in wanted {
            let found = live["metadata"][field].as_str().unwrap_or_default();
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
                let why = format!(
                    "the {title} in the precondition ({wanted}) does not match the {title} in record ({found})"
                );
                return Err(Status::conflict(&GroupResource::new("", "Pod"), &call.target.name, why));
            }
        }
        Ok(pods::mark_disrupted(live, existing.now))
    });
    let options = WriteOptions::of_manager("kube-apiserver");
    let update = update(call, &call.target.name, Subresource::Eviction, &options, call.requester());
    let (outcome, _) = write::update(&call.server, &call.resource, &update, &mut edit).await?;
    Ok(outcome.version())
}

fn update<'a>(
    call: &'a Call,
    name: &'a str,
    subresource: Subresource,
    options: &'a WriteOptions,
    by: Requester<'a>,
) -> Update<'a> {
    Update {
        namespace: &call.target.namespace,
        name,
        subresource,
        options,
        owns_fields: subresource == Subresource::Status,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by,
    }
}

fn budget_resource(call: &Call) -> Result<Arc<Resource>, Status> {
    let budgets = GroupVersion::new("policy", "v1").with_resource("poddisruptionbudgets");
    call.server.registry.find(&budgets).ok_or_else(|| Status::internal("budgets are not served"))
}

fn budgets(call: &Call) -> Result<Vec<Value>, Status> {
    let resource = budget_resource(call)?;
    let snapshot = call.server.store.snapshot(&resource.store_key);
    let here = snapshot.objects.values().filter(|entry| entry.header.namespace == call.target.namespace);
    here.map(|entry| resource.decode(entry)).collect()
}

/// Counts the eviction in the status of its budget, which is read again when it changed meanwhile.
async fn disrupt(call: &Call, budget: &str, dry_run: bool) -> Result<(), Status> {
    let resource = budget_resource(call)?;
    let mut edit = Edit(|existing: &Existing<'_>| {
        let gone = || Status::not_found(&resource.group_resource(), budget);
        pods::disrupt(existing.value.ok_or_else(gone)?, &call.target.name, existing.now)
    });
    let options = WriteOptions { dry_run, ..WriteOptions::of_manager("kube-apiserver") };
    let update = update(call, budget, Subresource::Status, &options, identity::server());
    write::update(&call.server, &resource, &update, &mut edit).await.map(drop)
}
