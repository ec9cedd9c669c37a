//! Usages: resources that keep another from being deleted while something uses it.

use serde_json::json;
use sha2::{Digest, Sha256};
use transom_function::{Ready, Resource, Struct};

/// The longest name of a usage.
const MAX_NAME_BYTES: usize = 63;

/// The API of the usages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// `apiextensions.crossplane.io`, for resources of the whole cluster.
    V1,
    /// `protection.crossplane.io`.
    V2,
}

impl Version {
    /// The version an input names; every other one is the current one.
    pub(super) fn of(text: &str) -> Self {
        if text == "v1" { Self::V1 } else { Self::V2 }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.crossplane.io/v1beta1",
            Self::V2 => "protection.crossplane.io/v1beta1",
        }
    }

    /// Whether a resource is a usage itself.
    pub(super) fn is_usage(self, resource: &Resource) -> bool {
        let kind = field(resource, "kind");
        let is_kind = kind == "Usage" || (self == Self::V2 && kind == "ClusterUsage");
        is_kind && field(resource, "apiVersion") == self.api_version()
    }

    /// The usage of one resource by another. It has nothing to wait for, so it is ready.
    pub(super) fn compose(self, of: &Resource, by: &Resource, replay_deletion: bool) -> Resource {
        let names = [field(by, "kind"), by.name(), field(of, "kind"), of.name()];
        let mut metadata = json!({"name": name(&names.join("-"))});
        let kind = match (self, of.namespace()) {
            (Self::V1, _) => "Usage",
            (Self::V2, "") => "ClusterUsage",
            (Self::V2, namespace) => {
                metadata["namespace"] = namespace.into();
                "Usage"
            }
        };
        let reference = |resource: &Resource| {
            json!({
                "apiVersion": field(resource, "apiVersion"),
                "kind": field(resource, "kind"),
                "resourceRef": {"name": resource.name()},
            })
        };
        let usage = json!({
            "apiVersion": self.api_version(),
            "kind": kind,
            "metadata": metadata,
            "spec": {
                "by": reference(by),
                "of": reference(of),
                "reason": "dependency",
                "replayDeletion": replay_deletion,
            },
        });
        let resource = Struct::try_from(usage).ok();
        Resource { resource, ..Resource::default() }.with_ready(Ready::True)
    }
}

fn field<'a>(resource: &'a Resource, name: &str) -> &'a str {
    resource.get_str(name).unwrap_or_default()
}

/// A valid name that is unique for what it is made of.
fn name(of: &str) -> String {
    let of: String = of.chars().flat_map(char::to_lowercase).collect();
    let digest = Sha256::digest(of.as_bytes());
    let suffix = format!("{}-dependency", transom_go::encoding::hex(&digest[..3]));
    let full = format!("{of}-{suffix}");
    if full.len() <= MAX_NAME_BYTES {
        return full;
    }
    let room = MAX_NAME_BYTES - suffix.len() - 1;
    let start: String =
        of.char_indices().take_while(|(i, c)| i + c.len_utf8() <= room).map(|(_, c)| c).collect();
    let hyphen = if start.ends_with('-') { "" } else { "-" };
    format!("{start}{hyphen}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_short() {
        let long = "x".repeat(100);
        let names: BTreeSet<String> = ["a-b-c-d", "A-B-C-d", &long, &format!("{long}y")].map(name).into();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME_BYTES && name.ends_with("-dependency")));
        let hyphen = format!("{}-{}", "x".repeat(44), "y".repeat(60));
        assert_eq!(name(&hyphen).len(), 62);
        // Not a character boundary where the name is cut.
        assert!(name(&"é".repeat(60)).len() <= MAX_NAME_BYTES);
    }
}
