//! What the service accounts of providers may do.

use std::sync::PoisonError;
use transom_apiserver::{Attributes, Authorizer, Decision};
use transom_function::async_trait;
use transom_machine::Privileged;

/// The accounts of providers that run from their packages may do everything: the user who installs a provider decides that. The
/// rights of all others are those of roles and bindings.
pub(super) struct ProviderAccess(pub(super) Privileged);

#[async_trait]
impl Authorizer for ProviderAccess {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let is_privileged = {
            let privileged = self.0.read().unwrap_or_else(PoisonError::into_inner);
            privileged.contains(&attributes.user.user)
        };
        match is_privileged {
            true => Decision::Allowed,
            false => Decision::Denied { reason: String::new() },
        }
    }
}
