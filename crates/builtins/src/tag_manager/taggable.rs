//! Which kinds have tags, at `spec.forProvider.tags`.

use std::collections::HashSet;
use std::sync::LazyLock;

static KINDS: LazyLock<HashSet<(&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("taggable.txt").lines().filter(|line| !line.starts_with('#'));
    let groups = lines.filter_map(|line| line.split_once(": "));
    groups.flat_map(|(group, kinds)| kinds.split(' ').map(move |kind| (group, kind))).collect()
});

/// Whether resources of a kind have tags.
pub(super) fn is_taggable(group: &str, kind: &str) -> bool {
    let Some(group) = group.strip_suffix(".upbound.io") else { return false };
    // Namespaced kinds have a group of their own, in which everything else is the same.
    let group = group.strip_suffix(".m").unwrap_or(group);
    KINDS.contains(&(group, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_with_tags_are_known() {
        for (group, kind, expected) in [
            ("s3.aws.upbound.io", "Bucket", true),
            ("s3.aws.m.upbound.io", "Bucket", true),
            ("s3.aws.m.m.upbound.io", "Bucket", false),
            ("s3.aws.upbound.io", "BucketPolicy", false),
            ("azure.upbound.io", "ResourceGroup", true),
            ("s3.aws", "Bucket", false),
            ("", "Bucket", false),
        ] {
            assert_eq!(is_taggable(group, kind), expected, "{group}/{kind}");
        }
        assert_eq!(KINDS.len(), 833);
    }
}
