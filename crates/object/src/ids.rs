//! Group, version, kind and resource: the identities every API object and endpoint has.

use std::cmp::Ordering;
use std::fmt;

/// `apps/v1`, or `v1` for the core group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
}

/// A kind within a group, without a version: `Deployment.apps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: String,
    /// Such as `Deployment`.
    pub kind: String,
}

/// A resource (plural) within a group: `deployments.apps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: String,
    /// In lower case and plural, such as `deployments`.
    pub resource: String,
}

/// A kind in one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `Deployment`.
    pub kind: String,
}

/// A resource in one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// In lower case and plural, such as `deployments`.
    pub resource: String,
}

impl GroupVersion {
    /// From its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Parses an `apiVersion`; `None` when it has more than one slash.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None => Some(Self::new("", api_version)),
            Some((_, version)) if version.contains('/') => None,
            Some((group, version)) => Some(Self::new(group, version)),
        }
    }

    /// A kind in this version.
    pub fn with_kind(&self, kind: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: kind.into() }
    }

    /// A resource in this version.
    pub fn with_resource(&self, resource: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource {
            group: self.group.clone(),
            version: self.version.clone(),
            resource: resource.into(),
        }
    }
}

impl GroupKind {
    /// From its parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Reads what `Display` writes: `Kind` or `Kind.group`.
    pub fn parse(s: &str) -> Self {
        let (kind, group) = s.split_once('.').unwrap_or((s, ""));
        Self::new(group, kind)
    }
}

impl GroupResource {
    /// From its parts.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }

    /// Reads what `Display` writes: `resource` or `resource.group`.
    pub fn parse(s: &str) -> Self {
        let (resource, group) = s.split_once('.').unwrap_or((s, ""));
        Self::new(group, resource)
    }
}

impl GroupVersionKind {
    /// From its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Its group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&*self.group, &*self.version)
    }

    /// Reads `Kind.version.group` as a user types it; `None` when it is too short to name a version.
    /// The same text may mean a [`GroupKind`] whose group starts with the version: only discovery can tell.
    pub fn parse_arg(s: &str) -> Option<Self> {
        let (kind, rest) = s.split_once('.')?;
        let (version, group) = rest.split_once('.')?;
        Some(Self::new(group, version, kind))
    }

    /// The kind in any version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.group, &*self.kind)
    }

    /// `group/version` as objects carry it.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }
}

impl GroupVersionResource {
    /// Reads `resource.version.group` as a user types it; see [`GroupVersionKind::parse_arg`].
    pub fn parse_arg(s: &str) -> Option<Self> {
        let (resource, rest) = s.split_once('.')?;
        let (version, group) = rest.split_once('.')?;
        Some(GroupVersion::new(group, version).with_resource(resource))
    }

    /// Its group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&*self.group, &*self.version)
    }

    /// The resource in any version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.resource)
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.resource, &self.group)
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.group_version(), self.kind)
    }
}

fn qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    f.write_str(name)?;
    if !group.is_empty() {
        write!(f, ".{group}")?;
    }
    Ok(())
}

/// Kubernetes' version priority: GA before beta before alpha, higher first, then everything else by name.
/// `Ordering::Less` means "comes first" (is preferred).
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse_version(a), parse_version(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// `v2beta1` → (major 2, stability beta, minor 1), shaped so that a greater tuple is preferred.
fn parse_version(v: &str) -> Option<(Stability, u64, u64)> {
    let rest = v.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = decimal(&rest[..digits])?;
    let (stability, minor) = match &rest[digits..] {
        "" => (Stability::Ga, 0),
        tail => {
            if let Some(n) = tail.strip_prefix("alpha") {
                (Stability::Alpha, decimal(n)?)
            } else {
                (Stability::Beta, decimal(tail.strip_prefix("beta")?)?)
            }
        }
    };
    Some((stability, major, minor))
}

/// Digits only: `str::parse` would take a sign, too.
fn decimal(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Ga,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_stability_then_number() {
        let mut v = vec!["foo10", "v1", "v3beta1", "v10", "v11alpha2", "foo1", "v2", "v12alpha1", "v11beta2"];
        v.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(v, ["v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]);
    }

    #[test]
    fn api_version_parses() {
        assert_eq!(GroupVersion::parse("apps/v1"), Some(GroupVersion::new("apps", "v1")));
        assert_eq!(GroupVersion::parse("v1"), Some(GroupVersion::new("", "v1")));
        assert_eq!(GroupVersion::parse("/"), Some(GroupVersion::default()));
        assert_eq!(GroupVersion::parse("a/b/c"), None);
    }

    #[test]
    fn arguments_parse() {
        assert_eq!(GroupKind::parse("StatefulSet.apps"), GroupKind::new("apps", "StatefulSet"));
        assert_eq!(GroupResource::parse("pods"), GroupResource::new("", "pods"));
        assert_eq!(GroupResource::parse("a.b.c"), GroupResource::new("b.c", "a"));
        assert_eq!(GroupVersionKind::parse_arg("A.v1.g.io"), Some(GroupVersionKind::new("g.io", "v1", "A")));
        assert_eq!(GroupVersionKind::parse_arg("A.v1"), None);
        assert_eq!(
            GroupVersionResource::parse_arg("as.v1."),
            Some(GroupVersion::new("", "v1").with_resource("as"))
        );
    }

    #[test]
    fn a_sign_makes_no_version() {
        assert_eq!(compare_versions("v1alpha+1", "v1alpha1"), Ordering::Greater);
        assert_eq!(compare_versions("v+1", "v1alpha1"), Ordering::Greater);
    }
}
