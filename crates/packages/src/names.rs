//! Names made of other names, and lists of names in messages. They are wire-visible and match Crossplane to the letter.

use crate::digest::Digest;
use transom_xapi::conditions::first_and_more;

/// The last byte that [`to_dns_label`] looks at.
const LAST_BYTE: usize = 62;
/// How much of a package's name is part of a [`friendly_id`].
const NAME_BYTES: usize = 50;
/// How much of a hash is part of a [`friendly_id`].
const HASH_BYTES: usize = 12;

/// A text as a DNS label: lower-case letters and digits stay, `.`, `/`, `:` and `-` become dashes, all else is dropped.
/// Empty when nothing stays.
pub fn to_dns_label(text: &str) -> String {
    let mut label = String::new();
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | '0'..='9' => label.push(c),
            '.' | '/' | ':' | '-' if i != 0 && i != LAST_BYTE && i + 1 != text.len() => label.push('-'),
            _ => {}
        }
        // As in the original, a text in which another character is across this byte is not cut.
        if i == LAST_BYTE {
            break;
        }
    }
    label.trim_matches('-').to_owned()
}

/// A DNS label made of the beginnings of a name and of a hash.
pub fn friendly_id(name: &str, hash: &str) -> String {
    let (name, hash) = (beginning(name, NAME_BYTES), beginning(hash, HASH_BYTES));
    to_dns_label(&format!("{name}-{hash}"))
}

/// At most so many bytes of a text. Bytes of a character that is cut in two never reach a label.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// The name of the revision of a package at a digest.
///
/// As in released versions of Crossplane it depends on nothing else: the same bytes under another tag are the same
/// revision, and a change of the package's other fields makes no new one.
pub fn revision_name(package: &str, digest: &Digest) -> String {
    friendly_id(package, digest.hex())
}

/// The first names in alphabetical order, and how many more there are: `a, b, c, and 2 more`.
pub fn first_n(limit: usize, names: &[String]) -> String {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    first_and_more(limit, &sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_crossplanes() {
        for (text, label) in [
            ("-hi/my.name/is-", "hi-my-name-is"),
            ("Hello:World", "ello-orld"),
            ("", ""),
            ("É-x", "x"),
            ("a.", "a"),
        ] {
            assert_eq!(to_dns_label(text), label, "{text}");
        }
        let long = format!("{}-b", "a".repeat(62));
        assert_eq!(to_dns_label(&long), "a".repeat(62));
        assert_eq!(to_dns_label(&"a".repeat(70)), "a".repeat(63));
        let across = format!("{}é{}", "a".repeat(61), "b".repeat(9));
        assert_eq!(to_dns_label(&across), format!("{}{}", "a".repeat(61), "b".repeat(9)));
    }

    #[test]
    fn friendly_ids_are_crossplanes() {
        let long = "aws-plusabunchofothernonsensethatisgoingtogetslicedoff";
        let cut = "provider-aws-plusabunchofothernonsensethatisgoingt";
        for (name, hash, id) in [
            ("provider-aws".to_owned(), "1234567", "provider-aws-1234567".to_owned()),
            (format!("provider-{long}"), "1234567891234567", format!("{cut}-123456789123")),
            (format!("provider.{long}"), "1234.567891234567", format!("{cut}-1234-5678912")),
            (
                "provider-in-cluster".to_owned(),
                "provider-in-cluster",
                "provider-in-cluster-provider-in".to_owned(),
            ),
            (
                "xpkg.crossplane.io/crossplane-contrib/function-auto-ready".to_owned(),
                "sha256:c88b938d",
                "xpkg-crossplane-io-crossplane-contrib-function-aut-sha256-c88b9".to_owned(),
            ),
        ] {
            assert_eq!(friendly_id(&name, hash), id);
        }
        assert_eq!(friendly_id(&"é".repeat(40), "é"), "");
    }

    #[test]
    fn revisions_are_named_by_digest() {
        let digest =
            Digest::parse("sha256:c88b938d6e7b2ed43d40b71e5a55df9c60fa653bea0c0961f3294fac46d5b56e").unwrap();
        assert_eq!(revision_name("function-x", &digest), "function-x-c88b938d6e7b");
    }

    #[test]
    fn lists_are_sorted_and_cut() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(first_n(3, &names("a")), "a");
        assert_eq!(first_n(3, &names("b a")), "a, b");
        assert_eq!(first_n(3, &names("c b a")), "a, b, and c");
        assert_eq!(first_n(3, &names("e d c b a")), "a, b, c, and 2 more");
    }
}
