//! The kinds of packages.

use std::fmt;

/// A kind of package. Its revisions, and the meta object inside, are named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageKind {
    /// Brings managed resources and runs their controllers.
    Provider,
    /// Brings definitions, Compositions and operations.
    Configuration,
    /// Runs a function.
    Function,
}

impl PackageKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Provider, Self::Configuration, Self::Function];

    /// The kind that has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// `Provider`, `Configuration` or `Function`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "Provider",
            Self::Configuration => "Configuration",
            Self::Function => "Function",
        }
    }

    /// The kind of its revisions.
    pub fn revision_kind(self) -> &'static str {
        match self {
            Self::Provider => "ProviderRevision",
            Self::Configuration => "ConfigurationRevision",
            Self::Function => "FunctionRevision",
        }
    }

    /// Whether something runs while the package is active.
    pub fn has_runtime(self) -> bool {
        self != Self::Configuration
    }
}

impl fmt::Display for PackageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_name() {
        for kind in PackageKind::ALL {
            assert_eq!(PackageKind::named(kind.as_str()), Some(kind));
            assert_eq!(kind.revision_kind(), format!("{kind}Revision"));
        }
        assert_eq!(PackageKind::named("Lock"), None);
        assert!(PackageKind::Function.has_runtime() && !PackageKind::Configuration.has_runtime());
    }
}
