//! The subresources of an object, all in one place: their names, verbs and body types.
//!
//! A new subresource is a variant here, an arm in `verbs::dispatch` and in `strategy::builtin` (what it may change), and an
//! entry in the table of built-in kinds (or in `crd::build` for custom ones). Bodies of another kind need that kind in
//! `transom_kinds`. Discovery and OpenAPI follow. `write::update`, `verbs::patch` and `admission::dynamic::review` list
//! subresources that they treat differently.

use crate::resource::Resource;
use transom_object::GroupVersionKind;

/// The endpoint of an object that a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself, without a subresource in the path.
    Main,
    /// `status`: everything but the spec.
    Status,
    /// `scale`: the replica count, as an `autoscaling/v1` Scale.
    Scale,
    /// `finalize`: `spec.finalizers` of a namespace.
    Finalize,
    /// `token`: creates a token for a service account.
    Token,
    /// `approval`: the decision about a certificate signing request.
    Approval,
    /// `binding`: assigns a pod to a node.
    Binding,
    /// `eviction`: deletes a pod, unless a PodDisruptionBudget needs it.
    Eviction,
    /// `ephemeralcontainers`: containers that are added to a pod for debugging.
    EphemeralContainers,
    /// `resize`: processors and memory of the containers of a pod.
    Resize,
}

impl Subresource {
    const ALL: [Self; 10] = [
        Self::Main,
        Self::Status,
        Self::Scale,
        Self::Finalize,
        Self::Token,
        Self::Approval,
        Self::Binding,
        Self::Eviction,
        Self::EphemeralContainers,
        Self::Resize,
    ];

    /// The name in paths, rules and managedFields; empty for the object itself.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
            Self::Token => "token",
            Self::Approval => "approval",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
        }
    }

    /// The subresource that a path names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subresource| subresource.as_str() == name)
    }

    /// The verbs that discovery lists; those of the object itself depend on its resource.
    pub(crate) fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Main => &[],
            Self::Status | Self::Scale | Self::Approval | Self::EphemeralContainers | Self::Resize => {
                &["get", "patch", "update"]
            }
            Self::Finalize => &["update"],
            Self::Token | Self::Binding | Self::Eviction => &["create"],
        }
    }

    /// The kind of the bodies, where it differs from the kind of the object.
    pub(crate) fn own_kind(self) -> Option<GroupVersionKind> {
        match self {
            Self::Scale => Some(GroupVersionKind::new("autoscaling", "v1", "Scale")),
            Self::Token => Some(GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest")),
            Self::Binding => Some(GroupVersionKind::new("", "v1", "Binding")),
            Self::Eviction => Some(GroupVersionKind::new("policy", "v1", "Eviction")),
            Self::Main
            | Self::Status
            | Self::Finalize
            | Self::Approval
            | Self::EphemeralContainers
            | Self::Resize => None,
        }
    }

    /// The kind of the bodies.
    pub(crate) fn kind(self, resource: &Resource) -> GroupVersionKind {
        self.own_kind().unwrap_or_else(|| resource.gvk())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for subresource in Subresource::ALL {
            assert_eq!(Subresource::parse(subresource.as_str()), Some(subresource));
        }
        assert_eq!(Subresource::parse("exec"), None);
    }
}
