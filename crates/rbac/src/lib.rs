//! Role-based access control as Kubernetes evaluates it. Pure: no store, no HTTP, no clock.
//!
//! | module | what it holds |
//! |---|---|
//! | `rule` | one rule of a role, and whether it allows a request |
//! | `index` | roles and bindings by subject, so that a decision reads only what concerns its user |
//! | `escalation` | whether a user has all that a role would give |
//! | `aggregation` | the rules that an aggregated ClusterRole collects |
//! | `bootstrap` | the roles and bindings that every server has, and how stored ones are brought up to them |
//!
//! The owner of an [`Index`] feeds it with every change of the four kinds of `rbac.authorization.k8s.io` and asks it about
//! requests. The cost of a decision depends on the bindings of the user and its groups, not on how many there are.

#![warn(missing_docs)]

pub mod aggregation;
pub mod bootstrap;
mod escalation;
mod index;
mod rule;

pub use escalation::{Refusal, confirm, full_authority};
pub use index::{Decision, Index, RoleRef, Subject, User};
pub use rule::{Request, Rule};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Members of this group may do everything, regardless of bindings.
pub const MASTERS: &str = "system:masters";
