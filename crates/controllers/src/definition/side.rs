//! The differences of the two controllers of definitions: names, texts, and the controllers they start.

use crate::claim::ClaimController;
use crate::composite::CompositeController;
use crate::plane::Plane;
use serde_json::Value;
use std::sync::Arc;
use transom_object::GroupVersionKind;
use transom_xapi::Condition;
use transom_xapi::constants::{condition, event, finalizer};
use transom_xapi::definition::Definition;
use transom_xapi::derive::{self, Extensions};

/// What a controller of definitions is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Composite resources.
    Defined,
    /// Claims.
    Offered,
}

/// A running controller of a kind that a definition defines.
pub(super) enum Live {
    Composite { _controller: CompositeController, generation: i64 },
    Claim(ClaimController),
}

impl Live {
    /// Whether the definition changed in a way that requires a restart.
    pub(super) fn is_stale(&self, definition: &Definition) -> bool {
        match self {
            Self::Composite { generation, .. } => *generation != definition.metadata.generation,
            Self::Claim(controller) => controller.is_stale(definition),
        }
    }
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Defined, Self::Offered];

    fn pick<T>(self, defined: T, offered: T) -> T {
        match self {
            Self::Defined => defined,
            Self::Offered => offered,
        }
    }

    pub(super) fn controller(self) -> &'static str {
        self.pick(
            "defined/compositeresourcedefinition.apiextensions.crossplane.io",
            "offered/compositeresourcedefinition.apiextensions.crossplane.io",
        )
    }

    /// Whether the definition has this side: not all definitions offer a claim.
    pub(super) fn concerns(self, definition: &Definition) -> bool {
        self == Self::Defined || definition.offers_claim()
    }

    pub(super) fn finalizer(self) -> &'static str {
        self.pick(finalizer::DEFINED, finalizer::OFFERED)
    }

    pub(super) fn what(self) -> &'static str {
        self.pick("composite resource", "composite resource claim")
    }

    pub(super) fn instances(self) -> &'static str {
        self.pick("defined composite resources", "composite resource claims")
    }

    /// The field of a definition that names the kind.
    pub(super) fn names(self) -> &'static str {
        self.pick("spec.names", "spec.claimNames")
    }

    /// The condition of a definition whose kind cannot be served as defined.
    pub(super) fn refused(self, reason: &str, message: &str) -> Condition {
        let kind = self.pick(condition::ESTABLISHED, condition::OFFERED);
        Condition::new(kind, "False", reason).with_message(message)
    }

    pub(super) fn cannot(self, verb: &str, thing: &str) -> String {
        format!("cannot {verb} {} {thing}", self.what())
    }

    pub(super) fn cannot_apply(self) -> String {
        format!("cannot apply rendered {} CustomResourceDefinition", self.what())
    }

    pub(super) fn render_reason(self) -> &'static str {
        event::definition::RENDER_CRD
    }

    pub(super) fn establish_reason(self) -> &'static str {
        self.pick(event::definition::ESTABLISH, event::definition::OFFER)
    }

    pub(super) fn terminate_reason(self) -> &'static str {
        self.pick(event::definition::TERMINATE, event::definition::REDACT)
    }

    pub(super) fn restart_event(self) -> Option<(&'static str, &'static str)> {
        let words = "XRD specification changed; restarting controller to apply updates";
        self.pick(Some((event::definition::RESTART, words)), None)
    }

    pub(super) fn watching(self) -> Condition {
        self.pick(Condition::watching_composite(), Condition::watching_claim())
    }

    pub(super) fn terminating(self) -> Condition {
        self.pick(Condition::terminating_composite(), Condition::terminating_claim())
    }

    pub(super) fn derive(self, definition: &Definition) -> Result<Value, derive::Error> {
        match self {
            Self::Defined => derive::composite_crd(definition, Extensions::ALL),
            Self::Offered => derive::claim_crd(definition),
        }
    }

    pub(super) fn crd_name(self, definition: &Definition) -> String {
        match self {
            Self::Defined => definition.metadata.name.clone(),
            Self::Offered => definition.claim_crd_name().unwrap_or_default(),
        }
    }

    pub(super) fn instance_type(self, definition: &Definition) -> Option<GroupVersionKind> {
        match self {
            Self::Defined => Some(definition.composite_type()),
            Self::Offered => definition.claim_type(),
        }
    }

    /// The field of the status that names the reconciled type, and the type.
    pub(super) fn reconciled_type(self, definition: &Definition) -> Option<(&'static str, GroupVersionKind)> {
        let field = self.pick("compositeResourceType", "compositeResourceClaimType");
        self.instance_type(definition).map(|gvk| (field, gvk))
    }

    pub(super) fn start(self, plane: &Arc<Plane>, definition: Definition) -> Live {
        let generation = definition.metadata.generation;
        match self {
            Self::Defined => {
                let controller = CompositeController::start(plane, Arc::new(definition));
                Live::Composite { _controller: controller, generation }
            }
            Self::Offered => Live::Claim(ClaimController::start(plane, &definition)),
        }
    }
}
