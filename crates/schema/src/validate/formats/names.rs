//! Host names, Kubernetes names and mail addresses.

use regex::Regex;
use std::sync::LazyLock;

/// One label, or labels with a top-level domain of letters. Symbols and letters of any script are allowed.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let inner = r"[a-zA-Z0-9\p{S}\p{L}]";
    let single = format!(r"{inner}((-?{inner}{{0,62}})?)");
    let label = format!(r"{inner}(([a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{inner})?)");
    Regex::new(&format!(r"^({single}|({label}\.)+([a-zA-Z\p{{L}}]){{2,63}})$")).ok()
});

pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|re| re.is_match(text))
}

/// Lower-case letters, digits and inner dashes.
fn is_name_segment(segment: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = segment.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

pub(super) fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_name_segment(text)
}

pub(super) fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_name_segment)
}

/// RFC 5322's `name-addr` or `addr-spec`. A comment may stand at the end; groups are refused.
pub(super) fn is_email(text: &str) -> bool {
    let text = without_comment(text.trim_matches([' ', '\t']));
    if let Some(open) = find_unquoted(text, '<') {
        let Some(address) = text[open + 1..].strip_suffix('>') else { return false };
        is_phrase(text[..open].trim_matches([' ', '\t'])) && is_addr_spec(address.trim_matches([' ', '\t']))
    } else {
        is_addr_spec(text)
    }
}

/// The text without a comment in parentheses at its end.
fn without_comment(text: &str) -> &str {
    let Some(body) = text.strip_suffix(')') else { return text };
    match body.rfind('(') {
        Some(open) if !body[open + 1..].contains([')', '\\', '"']) => {
            body[..open].trim_end_matches([' ', '\t'])
        }
        _ => text,
    }
}

fn find_unquoted(text: &str, wanted: char) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == wanted && !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_phrase(phrase: &str) -> bool {
    let mut rest = phrase;
    while !rest.is_empty() {
        let len = match quoted_len(rest) {
            Some(len) => len,
            None => rest.find(|c: char| !is_atom_char(c) && c != '.').unwrap_or(rest.len()),
        };
        if len == 0 {
            return false;
        }
        rest = rest[len..].trim_start_matches([' ', '\t']);
    }
    true
}

/// The length of a quoted string at the start of `text`.
fn quoted_len(text: &str) -> Option<usize> {
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            c if c.is_control() && c != '\t' => return None,
            _ => {}
        }
    }
    None
}

fn is_addr_spec(address: &str) -> bool {
    let local_len = match quoted_len(address) {
        Some(2) => return false,
        Some(len) => len,
        None => {
            let len = address.find('@').unwrap_or_default();
            if !is_dot_atom(&address[..len]) {
                return false;
            }
            len
        }
    };
    let Some(domain) = address[local_len..].trim_start_matches([' ', '\t']).strip_prefix('@') else {
        return false;
    };
    let domain = domain.trim_start_matches([' ', '\t']);
    match domain.strip_prefix('[') {
        Some(literal) => literal
            .strip_suffix(']')
            .is_some_and(|ip| ip.strip_prefix("IPv6:").unwrap_or(ip).parse::<std::net::IpAddr>().is_ok()),
        None => is_dot_atom(domain),
    }
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostnames() {
        for good in [
            "somewhere.com",
            "888.com",
            "a.com",
            "a.b.com",
            "x",
            "www.xn--froschgrn-x9a.net",
            "räksmörgås.josefsson.org",
            "a-b",
        ] {
            assert!(is_hostname(good), "{good}");
        }
        let long = format!("{}.com", "a".repeat(64));
        for bad in [
            "",
            "somewhere.com!",
            "-a.com",
            "a-.com",
            ".com",
            "a..com",
            "www.example-.com",
            "hostname_.com",
            &long,
        ] {
            assert!(!is_hostname(bad), "{bad}");
        }
    }

    #[test]
    fn kubernetes_names() {
        assert!(
            is_short_name("a-1")
                && !is_short_name("A")
                && !is_short_name("-a")
                && !is_short_name("a.b")
                && !is_short_name("")
        );
        assert!(
            is_long_name("a.b-c.1")
                && !is_long_name("a..b")
                && !is_long_name("a.b-")
                && !is_long_name(&"a".repeat(254))
        );
    }

    #[test]
    fn mail_addresses() {
        for good in [
            "somebody@somewhere.com",
            "Gogh Fir <gf@example.com>",
            "\"a b\"@x.org",
            "<a@b>",
            "test@[127.0.0.1]",
            "ñ@x.org",
            "a@b (c)",
        ] {
            assert!(is_email(good), "{good}");
        }
        for bad in
            ["", "somebody@", "@x", "a b@x", "a@x@y", "a.@x", "a@x..y", "Name a@x", "a@x>", "test@[bad]"]
        {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
