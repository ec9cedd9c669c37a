//! Whether the author of a definition may use the service account that it names, as an admission check of the server in this
//! process.

use serde_json::json;
use std::sync::{Arc, OnceLock};
use transom_apiserver::{Admission, Endpoint, Operation, Phase, Review, Verdict, async_trait};
use transom_controllers::borrowed_account;
use transom_engine::Cluster;
use transom_object::{GroupResource, Status};
use transom_xapi::AccountReference;
use transom_xapi::constants::group;

const DEFINITIONS: &str = "compositeresourcedefinitions";

/// Refuses definitions that name a service account which their author may not use.
pub(super) struct AccountAdmission {
    /// The server that this is a part of: it is known once the server has started.
    pub(super) cluster: Arc<OnceLock<Cluster>>,
    /// The accounts of the controllers.
    pub(super) own: Vec<AccountReference>,
}

#[async_trait]
impl Admission for AccountAdmission {
    fn name(&self) -> &str {
        "service-accounts.transom.io"
    }

    fn wants(&self, phase: Phase, operation: Operation, endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate
            && matches!(operation, Operation::Create | Operation::Update)
            && endpoint.group == group::APIEXTENSIONS
            && endpoint.resource == DEFINITIONS
            && endpoint.subresource.is_empty()
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let Some(definition) = review.object else { return Verdict::allow() };
        let refused = |why: String| {
            Verdict::refuse(Status::forbidden(
                &GroupResource::new(group::APIEXTENSIONS, DEFINITIONS),
                review.name,
                why,
            ))
        };
        let Some(cluster) = self.cluster.get() else {
            return refused("the server has not started yet".to_owned());
        };
        let user = review.user;
        let user =
            json!({"username": user.user, "uid": user.uid, "groups": user.groups, "extra": user.extra});
        match borrowed_account(cluster, &self.own, &user, definition, review.old_object).await {
            None => Verdict::allow(),
            Some(why) => refused(why),
        }
    }
}
