//! Packages in the simulation: Configurations that depend on each other, from a registry that fails, hangs and moves tags.
//!
//! | module | what it holds |
//! |---|---|
//! | `catalogue` | the packages in the registry: versions, dependencies, objects |
//! | `registry` | the registry, with its faults |
//! | `acts` | what users do: install, upgrade, roll back, pause, delete, move tags, delete what a package brought, edit the Lock |
//! | `ledger` | what must never happen, checked at every write |
//! | `model` | what must be when nothing goes wrong any more |

mod acts;
pub(super) mod catalogue;
pub(super) mod ledger;
pub(super) mod model;
pub(super) mod registry;

/// What the objects are stored under.
pub(super) const PACKAGES: &str = "configurations.pkg.crossplane.io";
pub(super) const REVISIONS: &str = "configurationrevisions.pkg.crossplane.io";
pub(super) const LOCKS: &str = "locks.pkg.crossplane.io";
pub(super) const COMPOSITIONS: &str = "compositions.apiextensions.crossplane.io";
pub(super) const DEFINITIONS: &str = "compositeresourcedefinitions.apiextensions.crossplane.io";
