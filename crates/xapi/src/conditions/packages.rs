//! Conditions of packages, their revisions, the Lock, and of what providers bring.

use super::Condition;
use crate::constants::{condition, message, reason};

impl Condition {
    /// `Installed` of a package: its current revision is active.
    pub fn package_active() -> Self {
        Self::new(condition::INSTALLED, "True", reason::ACTIVE_PACKAGE_REVISION)
    }

    /// `Installed` of a package: none of its revisions is active.
    pub fn package_inactive() -> Self {
        Self::new(condition::INSTALLED, "False", reason::INACTIVE_PACKAGE_REVISION)
    }

    /// `Installed` of a package: it is being fetched.
    pub fn package_unpacking() -> Self {
        Self::new(condition::INSTALLED, "False", reason::UNPACKING_PACKAGE)
    }

    /// `Healthy` of a package: its current revision is.
    pub fn package_healthy() -> Self {
        Self::new(condition::HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION)
    }

    /// `Healthy` of a package: its current revision is, and does not run until it is needed.
    pub fn package_awaiting_activation(message: impl Into<String>) -> Self {
        Self::new(condition::HEALTHY, "True", reason::AWAITING_ACTIVATION).with_message(message)
    }

    /// `Healthy` of a package: its current revision is not, or there is none.
    pub fn package_unhealthy(message: impl Into<String>) -> Self {
        Self::new(condition::HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION).with_message(message)
    }

    /// `Healthy` of a package: its current revision does not say.
    pub fn package_health_unknown() -> Self {
        Self::new(condition::HEALTHY, "Unknown", reason::UNKNOWN_PACKAGE_REVISION_HEALTH)
    }

    /// `RevisionHealthy` of a revision: its content was installed.
    pub fn revision_healthy() -> Self {
        Self::new(condition::REVISION_HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION)
    }

    /// `RevisionHealthy` of a revision: its content was not installed, for the reason in the message.
    pub fn revision_unhealthy(message: impl Into<String>) -> Self {
        let condition = Self::new(condition::REVISION_HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION);
        condition.with_message(message)
    }

    /// `RevisionHealthy` of a revision: nothing is known yet.
    pub fn revision_health_unknown() -> Self {
        Self::new(condition::REVISION_HEALTHY, "Unknown", reason::UNKNOWN_PACKAGE_REVISION_HEALTH)
    }

    /// `RuntimeHealthy` of a revision: it runs.
    pub fn runtime_healthy() -> Self {
        Self::new(condition::RUNTIME_HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION)
    }

    /// `RuntimeHealthy` of a revision: it does not run, for the reason in the message.
    pub fn runtime_unhealthy(message: impl Into<String>) -> Self {
        let condition = Self::new(condition::RUNTIME_HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION);
        condition.with_message(message)
    }

    /// `RuntimeHealthy` of a revision: nothing is known yet.
    pub fn runtime_health_unknown() -> Self {
        Self::new(condition::RUNTIME_HEALTHY, "Unknown", reason::UNKNOWN_PACKAGE_REVISION_HEALTH)
    }

    /// `RuntimeActive` of a revision: it is meant to run.
    pub fn runtime_active() -> Self {
        Self::new(condition::RUNTIME_ACTIVE, "True", reason::ACTIVE_RUNTIME)
    }

    /// `RuntimeActive` of a provider's revision: none of its managed resources is active.
    pub fn runtime_awaiting_activation() -> Self {
        let condition = Self::new(condition::RUNTIME_ACTIVE, "False", reason::AWAITING_ACTIVATION);
        condition.with_message(message::AWAITING_ACTIVATION)
    }

    /// `Resolved` of the Lock: all dependencies are installed.
    pub fn resolution_succeeded() -> Self {
        Self::new(condition::RESOLVED, "True", reason::RESOLUTION_SUCCEEDED)
    }

    /// `Resolved` of the Lock: a dependency is not installed.
    pub fn resolution_failed(error: &str) -> Self {
        Self::new(condition::RESOLVED, "False", reason::RESOLUTION_FAILED)
            .with_message(format!("Error occurred during dependency resolution {error}"))
    }

    /// `Established` of the definition of a managed resource: its CRD is served.
    pub fn managed_established() -> Self {
        Self::new(condition::ESTABLISHED, "True", reason::ESTABLISHED_MANAGED)
    }

    /// `Established` of the definition of a managed resource: it is inactive.
    pub fn managed_inactive() -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::INACTIVE_MANAGED)
    }

    /// `Established` of the definition of a managed resource: its CRD is not served yet.
    pub fn managed_pending() -> Self {
        Self::new(condition::ESTABLISHED, "Unknown", reason::PENDING_MANAGED)
    }

    /// `Established` of the definition of a managed resource: its CRD cannot be made. The reason is Crossplane's.
    pub fn managed_blocked(message: impl Into<String>) -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::PENDING_MANAGED).with_message(message)
    }

    /// `Established` of the definition of a managed resource: it is being deleted.
    pub fn managed_terminating() -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::TERMINATING_MANAGED)
    }

    /// `Healthy` of an activation policy.
    pub fn policy_healthy() -> Self {
        Self::new(condition::HEALTHY, "True", reason::RUNNING)
    }

    /// `Healthy` of an activation policy that could not activate every definition.
    pub fn policy_unhealthy(message: impl Into<String>) -> Self {
        Self::new(condition::HEALTHY, "Unknown", reason::ENCOUNTERED_ERRORS).with_message(message)
    }

    /// `Established` of an activation policy that cannot be acted on.
    pub fn policy_blocked(message: impl Into<String>) -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::BLOCKED_ACTIVATION_POLICY).with_message(message)
    }

    /// `Established` of an activation policy that is being deleted.
    pub fn policy_terminating() -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::TERMINATING_ACTIVATION_POLICY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type, status and reason as clients of Crossplane know them.
    #[test]
    fn conditions_say_what_crossplane_says() {
        let awaiting =
            "Package runtime is scaled to zero; awaiting the first ManagedResourceDefinition to be activated";
        let failed = "Error occurred during dependency resolution e";
        for (condition, expected, message) in [
            (Condition::package_active(), "Installed True ActivePackageRevision", ""),
            (Condition::package_inactive(), "Installed False InactivePackageRevision", ""),
            (Condition::package_unpacking(), "Installed False UnpackingPackage", ""),
            (Condition::package_healthy(), "Healthy True HealthyPackageRevision", ""),
            (Condition::package_awaiting_activation("m"), "Healthy True AwaitingActivation", "m"),
            (Condition::package_unhealthy("m"), "Healthy False UnhealthyPackageRevision", "m"),
            (Condition::package_health_unknown(), "Healthy Unknown UnknownPackageRevisionHealth", ""),
            (Condition::revision_healthy(), "RevisionHealthy True HealthyPackageRevision", ""),
            (Condition::revision_unhealthy("m"), "RevisionHealthy False UnhealthyPackageRevision", "m"),
            (
                Condition::revision_health_unknown(),
                "RevisionHealthy Unknown UnknownPackageRevisionHealth",
                "",
            ),
            (Condition::runtime_healthy(), "RuntimeHealthy True HealthyPackageRevision", ""),
            (Condition::runtime_unhealthy("m"), "RuntimeHealthy False UnhealthyPackageRevision", "m"),
            (Condition::runtime_health_unknown(), "RuntimeHealthy Unknown UnknownPackageRevisionHealth", ""),
            (Condition::runtime_active(), "RuntimeActive True ActiveRuntime", ""),
            (Condition::runtime_awaiting_activation(), "RuntimeActive False AwaitingActivation", awaiting),
            (Condition::resolution_succeeded(), "Resolved True DependencyResolutionSucceeded", ""),
            (Condition::resolution_failed("e"), "Resolved False DependencyResolutionFailed", failed),
            (Condition::managed_established(), "Established True EstablishedManagedResource", ""),
            (Condition::managed_inactive(), "Established False InactiveManagedResource", ""),
            (Condition::managed_pending(), "Established Unknown PendingManagedResource", ""),
            (Condition::managed_blocked("m"), "Established False PendingManagedResource", "m"),
            (Condition::managed_terminating(), "Established False TerminatingManagedResource", ""),
            (Condition::policy_healthy(), "Healthy True Running", ""),
            (Condition::policy_unhealthy("m"), "Healthy Unknown EncounteredErrors", "m"),
            (Condition::policy_blocked("m"), "Established False BlockedManagedResourceActivationPolicy", "m"),
            (
                Condition::policy_terminating(),
                "Established False TerminatingManagedResourceActivationPolicy",
                "",
            ),
        ] {
            let said = format!("{} {} {}", condition.kind, condition.status, condition.reason);
            assert_eq!((said.as_str(), condition.message.as_str()), (expected, message));
        }
    }
}
