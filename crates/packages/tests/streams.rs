//! Whatever bytes a registry returns, reading them ends in a package or an error.

use proptest::prelude::*;
use transom_packages::stream::{parse, render};

const META: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n";
const CRD: &str =
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: c\n";

proptest! {
    #[test]
    fn hostile_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn hostile_documents_are_read_or_refused(parts in proptest::collection::vec("(---|- |: |\\[|\\{|a|\n| |#|&x|\\*x|!!|'|\"){0,30}", 0..6)) {
        let text = format!("{META}---\n{}", parts.join("\n---\n"));
        if let Ok(package) = parse(text.as_bytes()) {
            prop_assert!(package.objects.is_empty());
        }
    }

    #[test]
    fn objects_keep_their_order_and_lines(blank in proptest::collection::vec(0usize..4, 1..6), crlf in any::<bool>()) {
        let mut text = META.to_owned();
        let mut expected = Vec::new();
        for lines in blank {
            text.push_str("---\n");
            text.push_str(&"# comment\n".repeat(lines));
            expected.push(text.lines().count() + 1);
            text.push_str(CRD);
        }
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let package = parse(text.as_bytes()).unwrap();
        let lines: Vec<usize> = package.objects.iter().map(|object| object.at.line).collect();
        prop_assert_eq!(lines, expected);
        let rendered = render(&package);
        let again = parse(rendered.as_bytes()).unwrap();
        prop_assert_eq!(again.objects.len(), package.objects.len());
        prop_assert_eq!(render(&again), rendered);
    }
}

/// The outputs were written by the serializer that `crossplane xpkg build` v2.3.4 encodes packages with, given the inputs.
#[test]
fn streams_are_rendered_byte_for_byte_as_crossplane_does() {
    for (input, output) in [
        (include_str!("render/configuration.in.yaml"), include_str!("render/configuration.out.yaml")),
        (include_str!("render/provider.in.yaml"), include_str!("render/provider.out.yaml")),
        (include_str!("render/function.in.yaml"), include_str!("render/function.out.yaml")),
        (include_str!("render/empty.in.yaml"), include_str!("render/empty.out.yaml")),
    ] {
        let rendered = render(&parse(input.as_bytes()).unwrap());
        assert_eq!(rendered, output);
        assert_eq!(render(&parse(rendered.as_bytes()).unwrap()), rendered);
    }
}
