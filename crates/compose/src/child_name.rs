//! Names of composed resources: the same composite resource gives the same composed resource the same name, so that a
//! reference that was lost is found again.

use sha2::{Digest, Sha256};
use transom_go::encoding::hex;
use transom_object::{GroupKind, names};
use transom_xapi::constants::owner;

/// Longer names do not fit a label's value.
const MAX_NAME_BYTES: usize = 63;
const HASH_CHARACTERS: usize = 12;

/// The kinds whose names may contain colons.
const COLONS_ALLOWED: &[&str] = &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/// The name of a composed resource: the prefix, cut where needed, and a hash of its owner and its name in the
/// composition.
pub fn child_name(prefix: &str, owner_uid: &str, name: &str) -> String {
    let hash = hex(&Sha256::new().chain_update(owner_uid).chain_update(name).finalize());
    let hash = &hash[..HASH_CHARACTERS];
    let mut prefix = prefix.to_owned();
    if !prefix.is_empty() && !prefix.ends_with('-') {
        prefix.push('-');
    }
    if prefix.len() + HASH_CHARACTERS > MAX_NAME_BYTES {
        truncate(&mut prefix, MAX_NAME_BYTES - HASH_CHARACTERS);
        if !prefix.ends_with('-') {
            truncate(&mut prefix, MAX_NAME_BYTES - HASH_CHARACTERS - 1);
            prefix.push('-');
        }
    }
    prefix + hash
}

fn truncate(text: &mut String, length: usize) {
    text.truncate((0..=length).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default());
}

/// Whether an object of a kind may have this name.
pub(crate) fn is_valid(name: &str, kind: &GroupKind) -> bool {
    if kind.group == "rbac.authorization.k8s.io" && COLONS_ALLOWED.contains(&kind.kind.as_str()) {
        return names::is_dns1123_subdomain(&name.replace(':', "")).is_empty();
    }
    names::is_dns1123_subdomain(name).is_empty()
}

/// The owner of the fields of a composite resource's composed resources.
pub(crate) fn field_owner(xr_name: &str, kind: &GroupKind) -> String {
    let hash = Sha256::new().chain_update(xr_name).chain_update(kind.to_string()).finalize();
    format!("{}/{}", owner::COMPOSED_PREFIX, hex(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_crossplane_makes_them() {
        let uid = "75e4a668-035f-4ce8-8c45-f4d3ac850155";
        let long = "very-long-parent-name-".repeat(3);
        let cases = [
            ("cool-resource-", uid, "cool-resource-38ce86992a27"),
            ("resource", uid, "resource-38ce86992a27"),
            ("", uid, "38ce86992a27"),
            ("parent-", "uid-123", "parent-5f968d238736"),
            (&long, uid, "very-long-parent-name-very-long-parent-name-very-l-38ce86992a27"),
        ];
        for (prefix, uid, expected) in cases {
            assert_eq!(child_name(prefix, uid, "database"), expected);
        }
        assert_eq!(child_name(&"ü".repeat(40), uid, "database").len(), 63);
    }

    #[test]
    fn names_are_validated_by_kind() {
        let kind = GroupKind::parse;
        assert!(is_valid(&"a".repeat(253), &kind("A")));
        for bad in ["", "A", "a_b", "-a", "a-", "a:b", &"a".repeat(254)] {
            assert!(!is_valid(bad, &kind("A")), "{bad}");
        }
        assert!(is_valid("system:admin", &kind("ClusterRole.rbac.authorization.k8s.io")));
        assert!(!is_valid("system:admin", &kind("ClusterRole.example.org")));
    }

    #[test]
    fn owners_are_named_by_hash() {
        let owner = field_owner("my-xr", &GroupKind::parse("XBucket.example.org"));
        let hash = "933ca6d6ce34246e8bf5cfc759f1f129a5c555cd9fcadef85c0e99e38e6538ef";
        assert_eq!(owner, format!("apiextensions.crossplane.io/composed/{hash}"));
    }
}
