//! References are displayed as they were read; names are labels.

use proptest::prelude::*;
use transom_packages::Reference;
use transom_packages::names::{first_n, friendly_id, to_dns_label};

fn is_label(text: &str) -> bool {
    let inner = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    text.len() <= 63 && inner && !text.starts_with('-') && !text.ends_with('-')
}

prop_compose! {
    fn reference()(
        host in "(localhost|[a-z0-9]{1,8}(\\.[A-Za-z0-9]([a-z0-9-]{0,6}[a-z0-9])?){1,3})",
        port in proptest::option::of(1u16..),
        path in "[a-z0-9]{1,6}((\\.|_|__|-{1,3}|/)[a-z0-9]{1,6}){0,4}",
        tag in proptest::option::of("[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}"),
        digest in proptest::option::of("sha256:[0-9a-f]{64}"),
    ) -> String {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
        format!("{host}{port}/{path}{tag}{digest}")
    }
}

proptest! {
    #[test]
    fn what_is_read_is_displayed_again(text in reference()) {
        let has_version = text.contains('@') || text.rsplit('/').next().is_some_and(|last| last.contains(':'));
        let read = if has_version { Reference::parse(&text) } else { Reference::parse_source(&text) };
        let read = read.unwrap();
        prop_assert_eq!(&read.to_string(), &text);
        prop_assert!(text.starts_with(&read.source()));
        prop_assert!(is_label(&read.package_name()));
        let other = if has_version { Reference::parse_source(&text) } else { Reference::parse(&text) };
        prop_assert!(other.is_err());
    }

    #[test]
    fn any_text_is_read_as_it_is_or_refused(text in "[a-z.:/@A-Z_-]{0,40}|\\PC{0,40}") {
        if let Ok(read) = Reference::parse(&text) {
            prop_assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn labels_are_labels_of_themselves(text in "\\PC{0,90}|[a-z0-9./:-]{0,90}", hash in "[0-9a-f.:]{0,70}") {
        let label = to_dns_label(&text);
        prop_assert!(is_label(&label), "{}", label);
        prop_assert_eq!(to_dns_label(&label), label);
        prop_assert!(is_label(&friendly_id(&text, &hash)));
    }

    #[test]
    fn revisions_keep_as_much_of_names_as_fits(name in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?", hash in "[0-9a-f]{64}") {
        let id = friendly_id(&name, &hash);
        prop_assert_eq!(id, format!("{}-{}", &name[..name.len().min(50)], &hash[..12]));
    }

    #[test]
    fn lists_do_not_depend_on_order(names in proptest::collection::vec("[a-z]{1,4}", 0..8)) {
        let backwards: Vec<String> = names.iter().rev().cloned().collect();
        prop_assert_eq!(first_n(3, &names), first_n(3, &backwards));
    }
}
