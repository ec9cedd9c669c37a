//! What the variable `authorizer` of expressions answers: the decisions of the server's own authorizer.

use crate::auth::{Attributes, Authorizer, Identity};
use crate::server::Inner;
use futures_util::FutureExt;
use std::sync::Arc;
use transom_admission::{AccessDecider, AccessDecision, AccessQuestion};

/// Answers for a user.
struct Access {
    authorizer: Arc<dyn Authorizer>,
    user: Identity,
}

pub(super) fn of(server: &Inner, user: &Identity) -> Arc<dyn AccessDecider> {
    Arc::new(Access { authorizer: server.authorizer.clone(), user: user.clone() })
}

impl AccessDecider for Access {
    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        let account = question.service_account.as_ref();
        let account = account.map(|(namespace, name)| Identity::service_account(namespace, name));
        let user = account.as_ref().unwrap_or(&self.user);
        let attributes = match &question.path {
            Some(path) => Attributes::of_path(user, &question.verb, path),
            None => Attributes {
                group: &question.group,
                version: "*",
                resource: &question.resource,
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: &question.name,
                ..Attributes::of(user, &question.verb)
            },
        };
        match self.authorizer.explain(&attributes).now_or_never() {
            Some((allowed, reason)) => AccessDecision { allowed, reason, error: None },
            None => {
                let error = Some("the authorizer needs time, which expressions do not have".to_owned());
                AccessDecision { error, ..AccessDecision::default() }
            }
        }
    }
}
