//! References to packages in registries.

use crate::digest::Digest;
use crate::names::to_dns_label;
use std::fmt;

/// The most bytes of host and repository together, by the distribution specification.
const MAX_NAME_BYTES: usize = 255;
/// The most bytes of a tag, by the distribution specification.
const MAX_TAG_BYTES: usize = 128;

/// A reference to a package: registry, repository, and a tag, a digest or both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The registry's host, with its port if it has one, as written.
    pub registry: String,
    /// The path of the repository in the registry.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest, which wins over the tag.
    pub digest: Option<Digest>,
}

/// A text that is not a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a reference to a package: {problem}")]
pub struct ReferenceError {
    /// The text.
    pub text: String,
    /// What is wrong with it, and what is expected.
    pub problem: String,
}

impl Reference {
    /// Reads a reference with a host and a tag, a digest or both, such as `xpkg.example.org/acme/platform:v1.2.0`.
    ///
    /// Nothing is added or rewritten: there is no default registry, and `docker.io` stays `docker.io`. What is read is
    /// displayed as it was written.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let reference = Self::read(text)?;
        if reference.tag.is_none() && reference.digest.is_none() {
            return Err(problem(
                text,
                "it must end in a tag such as :v1.0.0, or in a digest such as @sha256:…",
            ));
        }
        Ok(reference)
    }

    /// Reads a source: a reference without tag and digest, as dependencies name packages.
    pub fn parse_source(text: &str) -> Result<Self, ReferenceError> {
        let reference = Self::read(text)?;
        if reference.tag.is_some() || reference.digest.is_some() {
            let expected = "it must have neither tag nor digest; the version is a field of its own";
            return Err(problem(text, expected));
        }
        Ok(reference)
    }

    fn read(text: &str) -> Result<Self, ReferenceError> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = Digest::parse(digest).map_err(|error| problem(text, &error.to_string()))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (registry, path) = rest
            .split_once('/')
            .ok_or_else(|| problem(text, "it must begin with the host of a registry, followed by a slash"))?;
        check_registry(registry).map_err(|expected| problem(text, expected))?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        check_repository(registry, repository).map_err(|expected| problem(text, expected))?;
        if let Some(tag) = tag {
            check_tag(tag).map_err(|expected| problem(text, expected))?;
        }
        let tag = tag.map(str::to_owned);
        Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), tag, digest })
    }

    /// The name of the package object that is made for a dependency on this source.
    pub fn package_name(&self) -> String {
        to_dns_label(&self.repository)
    }

    /// The same repository at a version: a tag or, when the text is one, a digest.
    pub fn at_version(&self, version: &str) -> Result<Self, ReferenceError> {
        if let Ok(digest) = Digest::parse(version) {
            return Ok(self.at(digest));
        }
        check_tag(version).map_err(|expected| problem(version, expected))?;
        Ok(Self { tag: Some(version.to_owned()), digest: None, ..self.clone() })
    }

    /// The reference without tag and digest: what the Lock and dependencies compare.
    pub fn source(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// What identifies the version: the digest, else the tag.
    pub fn identifier(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.as_str(),
            (None, Some(tag)) => tag,
            (None, None) => "latest",
        }
    }

    /// The same repository at a digest.
    #[must_use]
    pub fn at(&self, digest: Digest) -> Self {
        Self { tag: None, digest: Some(digest), ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

fn problem(text: &str, problem: &str) -> ReferenceError {
    ReferenceError { text: text.to_owned(), problem: problem.to_owned() }
}

/// The first segment is a host if it has a dot or a port, or is `localhost`. Any other could be part of a repository.
fn check_registry(registry: &str) -> Result<(), &'static str> {
    const EXPECTED: &str =
        "it must begin with the host of a registry, such as xpkg.example.org or localhost:5000";
    let (host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => return if is_ipv6(address) { Ok(()) } else { Err(EXPECTED) },
        Some((address, rest)) if is_ipv6(address) => return check_port(rest.strip_prefix(':')),
        Some(_) => return Err(EXPECTED),
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (registry, None),
        },
    };
    let is_label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if !host.split('.').all(is_label) || !(host.contains('.') || port.is_some() || host == "localhost") {
        return Err(EXPECTED);
    }
    if port.is_some() { check_port(port) } else { Ok(()) }
}

fn is_ipv6(address: &str) -> bool {
    address.parse::<std::net::Ipv6Addr>().is_ok()
}

fn check_port(port: Option<&str>) -> Result<(), &'static str> {
    let digits = port.filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
    match digits.map(str::parse::<u16>) {
        Some(Ok(1..)) => Ok(()),
        _ => Err("the port of its registry must be a number from 1 to 65535"),
    }
}

fn check_repository(registry: &str, repository: &str) -> Result<(), &'static str> {
    if registry.len() + 1 + repository.len() > MAX_NAME_BYTES {
        return Err("its host and repository must have at most 255 bytes");
    }
    if repository.split('/').all(is_component) {
        return Ok(());
    }
    Err(
        "its repository must consist of lower-case letters and digits, separated by single slashes, dots, dashes or \
         underscores",
    )
}

/// Letters and digits, with `.`, `_`, `__` or any number of `-` between them.
fn is_component(component: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = component.bytes().next().is_some_and(is_word) && component.bytes().last().is_some_and(is_word);
    let mut separators = component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends && separators.all(|s| matches!(s, "" | "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let first = tag.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    if first && tag.len() <= MAX_TAG_BYTES && tag.bytes().all(inner) {
        return Ok(());
    }
    Err(
        "its tag must have 1 to 128 letters, digits, dots, dashes or underscores, and begin with none of dot and dash",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex() -> String {
        "0123456789abcdef".repeat(4)
    }

    #[test]
    fn references_are_split_into_their_parts() {
        let at = format!("sha256:{}", hex());
        for (text, registry, repository, tag, digest) in [
            ("xpkg.example.org/a/b:v1".to_owned(), "xpkg.example.org", "a/b", Some("v1"), false),
            (format!("reg.example.org:5000/x@{at}"), "reg.example.org:5000", "x", None, true),
            (format!("docker.io/a/b__c:v1@{at}"), "docker.io", "a/b__c", Some("v1"), true),
            ("localhost:5000/x:v1".to_owned(), "localhost:5000", "x", Some("v1"), false),
            ("localhost/x:v1".to_owned(), "localhost", "x", Some("v1"), false),
            ("registry:5000/x:v1".to_owned(), "registry:5000", "x", Some("v1"), false),
            ("127.0.0.1:5000/x/y---z:V_1".to_owned(), "127.0.0.1:5000", "x/y---z", Some("V_1"), false),
            ("[::1]:5000/x:v1".to_owned(), "[::1]:5000", "x", Some("v1"), false),
        ] {
            let read = Reference::parse(&text).unwrap();
            assert_eq!((read.registry.as_str(), read.repository.as_str()), (registry, repository), "{text}");
            assert_eq!((read.tag.as_deref(), read.digest.is_some()), (tag, digest), "{text}");
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_reference_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "host"),
            ("x:v1", "host"),
            ("crossplane/x:v1", "host"),
            ("-a.b/x:v1", "host"),
            ("a..b/x:v1", "host"),
            ("[::1/x:v1", "host"),
            ("[nonsense]/x:v1", "host"),
            ("a.b:0/x:v1", "port"),
            ("a.b:/x:v1", "port"),
            ("a.b:65536/x:v1", "port"),
            ("[::1]5000/x:v1", "port"),
            ("a.b/:v1", "repository"),
            ("a.b/X:v1", "repository"),
            ("a.b/x//y:v1", "repository"),
            ("a.b/x..y:v1", "repository"),
            ("a.b/x___y:v1", "repository"),
            ("a.b/x-:v1", "repository"),
            ("a.b/../x:v1", "repository"),
            ("a.b/x", "tag"),
            ("a.b/x:", "tag"),
            ("a.b/x:-v1", "tag"),
            ("a.b/x:v1:v2", "tag"),
            ("a.b/x:v1/y", "tag"),
            ("a.b/x@sha256:12", "digest"),
            ("a.b/x@sha256:12@sha256:12", "digest"),
        ] {
            let error = Reference::parse(text).unwrap_err();
            assert!(error.problem.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn lengths_are_those_of_the_distribution_specification() {
        let tagged = |n: usize| Reference::parse(&format!("a.b/x:{}", "t".repeat(n))).is_ok();
        assert!(tagged(128) && !tagged(129));
        let named = |n: usize| Reference::parse(&format!("a.b/{}:t", "x".repeat(n))).is_ok();
        assert!(named(251) && !named(252));
    }

    #[test]
    fn sources_have_no_version() {
        let source = Reference::parse_source("xpkg.example.org/acme/provider.aws").unwrap();
        assert_eq!(source.source(), "xpkg.example.org/acme/provider.aws");
        assert_eq!(source.package_name(), "acme-provider-aws");
        assert!(Reference::parse_source("xpkg.example.org/acme/p:v1").is_err());
        assert_eq!(source.at_version("v1").unwrap().to_string(), "xpkg.example.org/acme/provider.aws:v1");
        let pinned = source.at_version(&format!("sha256:{}", hex())).unwrap();
        assert_eq!(pinned.to_string(), format!("xpkg.example.org/acme/provider.aws@sha256:{}", hex()));
        assert!(source.at_version("v 1").is_err());
    }

    #[test]
    fn a_digest_wins_over_a_tag() {
        let both = Reference::parse(&format!("a.b/x:v1@sha256:{}", hex())).unwrap();
        assert_eq!(both.identifier(), format!("sha256:{}", hex()));
        assert_eq!(Reference::parse("a.b/x:v1").unwrap().identifier(), "v1");
    }
}
