//! Which packages are to be installed or changed so that dependencies are satisfied.
//!
//! In two steps, because the tags of a repository are listed in between: [`next_step`] lists every need that can be met
//! now, [`choose`] meets one of them. After the choices are written, new packages join the Lock with dependencies of their
//! own, and the next step follows.
//!
//! The original meets the first need only, by the constraint of one parent; here all needs are listed, and all parents
//! count. A parent whose constraint no version satisfies is reported, and the others are served without it.

mod choice;
mod need;

pub use choice::{Action, Choice, NoVersion, choose};
pub use need::{Need, Parent, next_step};

use crate::reference::Reference;

/// What may be done to packages that are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: only what is missing is installed.
    #[default]
    Default,
    /// They are changed to the lowest version from the installed one on that satisfies all.
    Upgrade,
    /// As before; if there is none, they are changed to the highest version below.
    Downgrade,
}

/// A package object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `spec.package`.
    pub package: String,
    /// `status.resolvedPackage`: where it is pulled from after rewriting.
    pub resolved: Option<String>,
}

impl InstalledPackage {
    /// The source that its author wrote.
    fn source(&self) -> Option<String> {
        Reference::parse(&self.package).ok().map(|reference| reference.source())
    }

    /// The installed version. A rewrite may have changed it.
    fn version(&self) -> Option<String> {
        let resolved = self.resolved.as_deref().and_then(|text| Reference::parse(text).ok());
        let reference = resolved.or_else(|| Reference::parse(&self.package).ok())?;
        Some(reference.identifier().to_owned())
    }
}

#[cfg(test)]
mod tests;
