//! Versions of composite resources that are converted by rules in their definition (`conversion.strategy: Declarative`).
//!
//! The CRDs of such a definition have a conversion webhook, which leads back to this control plane. The definition is the
//! only place of the rules: what answers the API server reads it first, so that rules are in force with their write.
//!
//! | module | what it holds |
//! |---|---|
//! | `checks` | what is wrong with rules, and which versions cannot be removed; pure |
//! | `answer` | the response to a ConversionReview; pure |
//! | `endpoint` | where the API server is to send reviews |
//! | `migration` | objects are written again when the referenceable version changes |

mod answer;
mod checks;
mod endpoint;
pub(crate) mod migration;

pub use answer::Conversions;
pub(crate) use checks::{definition_problems, problems, removed_versions};
pub use endpoint::ConversionEndpoint;

/// The path of conversions, before the name of the definition.
pub const CONVERSION_PATH: &str = "/convert";
