//! What may be a name: DNS labels and subdomains, label keys and values, port names and their kin.
//!
//! A check returns one message per rule broken, with the text of Kubernetes; no message means valid. Names are
//! ASCII by rule, so everything here looks at bytes; lengths are in bytes, too, also where a message speaks of characters.

pub mod ip;

use crate::field;

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FMT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MSG: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const UNDERSCORE_FMT: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_MSG: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_KEY_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

const MAX_LABEL_BYTES: usize = 63;
const MAX_SUBDOMAIN_BYTES: usize = 253;

/// The rules that names of one kind of object follow. `prefix` is whether random characters will be appended,
/// so that a trailing dash is fine.
pub type NameRule = fn(name: &str, prefix: bool) -> Vec<String>;

/// The rules for the names of most objects; `prefix`: for a `generateName`.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_subdomain(&masked(name, prefix))
}

/// The rules for names that are DNS-1123 labels; `prefix`: for a `generateName`.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_label(&masked(name, prefix))
}

/// The rules for names that are DNS-1035 labels; `prefix`: for a `generateName`.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&masked(name, prefix))
}

/// The most liberal rule: whatever can be one segment of a URL path (RBAC objects, embedded resources).
pub fn name_is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_path_segment_prefix(name) } else { is_path_segment_name(name) }
}

fn masked(name: &str, prefix: bool) -> String {
    if prefix { mask_trailing_dash(name) } else { name.to_owned() }
}

/// Replaces a trailing dash, with the character before it, by a letter: `foo-` is checked as `foa`.
pub fn mask_trailing_dash(name: &str) -> String {
    let stem = name.strip_suffix('-').unwrap_or_default();
    match stem.split_at_checked(stem.len().saturating_sub(1)) {
        Some((kept, last)) if !last.is_empty() => format!("{kept}a"),
        // Nothing before the dash, or no ASCII: no rule accepts the latter with or without the dash.
        _ => name.to_owned(),
    }
}

fn has_label_shape(s: &[u8]) -> bool {
    let [first, .., last] = s else { return matches!(s, [only] if is_lower_alnum(*only)) };
    is_lower_alnum(*first) && is_lower_alnum(*last) && s.iter().all(|b| is_lower_alnum(*b) || *b == b'-')
}

fn has_subdomain_shape(s: &str) -> bool {
    s.as_bytes().split(|b| *b == b'.').all(has_label_shape)
}

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Up to 63 lower-case letters, digits and dashes.
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_LABEL_BYTES, "characters");
    if !has_label_shape(value.as_bytes()) {
        errors.push(if has_subdomain_shape(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL_FMT,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// Labels with dots between, up to 253 characters.
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    subdomain(value, "characters")
}

// Newer upstream packages say "bytes" where older ones say "characters", about the same limit.
fn subdomain(value: &str, unit: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_SUBDOMAIN_BYTES, unit);
    if !has_subdomain_shape(value) {
        errors.push(regex_error(SUBDOMAIN_MSG, SUBDOMAIN_FMT, &["example.com"]));
    }
    errors
}

/// A subdomain whose labels may begin with an underscore.
pub fn is_dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let part = |s: &[u8]| {
        let s = s.strip_prefix(b"_").unwrap_or(s);
        matches!((s.first(), s.last()), (Some(a), Some(b)) if is_lower_alnum(*a) && is_lower_alnum(*b))
            && s.iter().all(|b| is_lower_alnum(*b) || *b == b'-' || *b == b'_')
    };
    let mut errors = too_long(value, MAX_SUBDOMAIN_BYTES, "characters");
    if !value.as_bytes().split(|b| *b == b'.').all(part) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            UNDERSCORE_FMT,
            &["example.com"],
        ));
    }
    errors
}

/// `*.` and a subdomain.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_SUBDOMAIN_BYTES, "characters");
    if !value.strip_prefix("*.").is_some_and(has_subdomain_shape) {
        errors.push(regex_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN_FMT}"),
            &["*.example.com"],
        ));
    }
    errors
}

/// A label that begins with a letter.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_LABEL_BYTES, "characters");
    if !has_label_shape(value.as_bytes()) || value.starts_with(|c: char| c.is_ascii_digit()) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

fn has_label_key_shape(s: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let s = s.as_bytes();
    edge(s.first()) && edge(s.last()) && s.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// A label key (also called a qualified name): `name` or `dns.subdomain/name`.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex_error(LABEL_KEY_MSG, LABEL_KEY_FMT, &LABEL_KEY_EXAMPLES)
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(subdomain(prefix, "bytes").into_iter().map(|m| format!("prefix part {m}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL_BYTES {
        errors.push(format!("name part must be no more than {MAX_LABEL_BYTES} bytes"));
    }
    if !has_label_key_shape(name) {
        errors.push(format!("name part {}", regex_error(LABEL_KEY_MSG, LABEL_KEY_FMT, &LABEL_KEY_EXAMPLES)));
    }
    errors
}

/// What a label may have as its value.
pub fn is_label_value(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_LABEL_BYTES, "bytes");
    if !value.is_empty() && !has_label_key_shape(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({LABEL_KEY_FMT})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// What can be one segment of a URL's path.
pub fn is_path_segment_name(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => is_path_segment_prefix(name),
    }
}

/// What can begin a segment of a URL's path.
pub fn is_path_segment_prefix(name: &str) -> Vec<String> {
    ['/', '%'].into_iter().filter(|c| name.contains(*c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// An identifier of the language C.
pub fn is_c_identifier(value: &str) -> Vec<String> {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let good = !value.is_empty()
        && value.bytes().all(|b| word(&b))
        && !value.starts_with(|c: char| c.is_ascii_digit());
    unless(good, || {
        regex_error(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        )
    })
}

/// 1 to 65535.
pub fn is_port_num(port: i64) -> Vec<String> {
    is_in_range(port, 1, 65535)
}

/// 0 to 2147483647.
pub fn is_user_id(uid: i64) -> Vec<String> {
    is_in_range(uid, 0, i64::from(i32::MAX))
}

/// 0 to 2147483647.
pub fn is_group_id(gid: i64) -> Vec<String> {
    is_in_range(gid, 0, i64::from(i32::MAX))
}

/// `min` to `max`, both included.
pub fn is_in_range(value: i64, min: i64, max: i64) -> Vec<String> {
    unless((min..=max).contains(&value), || format!("must be between {min} and {max}, inclusive"))
}

/// An IANA service name: at most 15 lower-case letters, digits and single inner hyphens, with a letter among them.
pub fn is_port_name(port: &str) -> Vec<String> {
    let mut errors = too_long(port, 15, "characters");
    let mut rule = |broken: bool, message: &str| {
        if broken {
            errors.push(message.to_owned());
        }
    };
    rule(
        port.is_empty() || !port.bytes().all(|b| is_lower_alnum(b) || b == b'-'),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    rule(!port.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    rule(port.contains("--"), "must not contain consecutive hyphens");
    rule(port.starts_with('-') || port.ends_with('-'), "must not begin or end with a hyphen");
    errors
}

/// Digits and a percent sign.
pub fn is_percent(value: &str) -> Vec<String> {
    let good =
        value.strip_suffix('%').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    unless(good, || {
        regex_error(
            "a valid percent string must be a numeric string followed by an ending '%'",
            "[0-9]+%",
            &["1%", "93%"],
        )
    })
}

/// What can be the name of an HTTP header.
pub fn is_http_header_name(value: &str) -> Vec<String> {
    let good = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    unless(good, || {
        regex_error(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        )
    })
}

/// What can be the name of an environment variable.
pub fn is_env_var_name(value: &str) -> Vec<String> {
    let good = is_dotted_word(value) && !value.starts_with(|c: char| c.is_ascii_digit());
    let mut errors = unless(good, || {
        regex_error(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        )
    });
    errors.extend(leads_out_of_directory(value));
    errors
}

/// Any printable ASCII but `=`.
pub fn is_relaxed_env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    unless(value.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'='), || {
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned()
    })
}

/// A key of a ConfigMap or Secret: it may become a file name.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut errors = too_long(value, MAX_SUBDOMAIN_BYTES, "characters");
    if !is_dotted_word(value) {
        errors.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(leads_out_of_directory(value));
    errors
}

fn is_dotted_word(s: &str) -> bool {
    !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

fn leads_out_of_directory(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

/// A domain with at least three segments, without a trailing dot.
pub fn is_fully_qualified_name(path: &field::Path, name: &str) -> Vec<field::Error> {
    if name.is_empty() {
        return vec![field::Error::required(path, "")];
    }
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        return vec![field::Error::invalid(path, name, errors.join(","))];
    }
    if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        return vec![field::Error::invalid(path, name, why)];
    }
    Vec::new()
}

/// A domain with at least two segments, each a label; a trailing dot is allowed.
pub fn is_fully_qualified_domain_name(path: &field::Path, name: &str) -> Vec<field::Error> {
    if name.is_empty() {
        return vec![field::Error::required(path, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        return vec![field::Error::invalid(path, name, errors.join(","))];
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return vec![field::Error::invalid(path, name, why)];
    }
    name.split('.')
        .map(|label| (label, is_dns1123_label(label)))
        .find(|(_, errors)| !errors.is_empty())
        .map(|(label, errors)| field::Error::invalid(path, label, errors.join(",")))
        .into_iter()
        .collect()
}

/// `acme.io/foo/bar`: a subdomain, a slash and characters of an HTTP path.
pub fn is_domain_prefixed_path(path: &field::Path, value: &str) -> Vec<field::Error> {
    if value.is_empty() {
        return vec![field::Error::required(path, "")];
    }
    let Some((host, rest)) = value.split_once('/').filter(|(h, r)| !h.is_empty() && !r.is_empty()) else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![field::Error::invalid(path, value, why)];
    };
    let mut errors: Vec<_> =
        is_dns1123_subdomain(host).into_iter().map(|m| field::Error::invalid(path, host, m)).collect();
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let why = regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(field::Error::invalid(path, rest, why));
    }
    errors
}

/// A label key whose prefix is not optional.
pub fn is_domain_prefixed_key(path: &field::Path, key: &str) -> Vec<field::Error> {
    if key.is_empty() {
        return vec![field::Error::required(path, "")];
    }
    let errors = is_qualified_name(key);
    if errors.is_empty() && !key.contains('/') {
        let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
        return vec![field::Error::invalid(path, key, why)];
    }
    errors.into_iter().map(|m| field::Error::invalid(path, key, m)).collect()
}

fn too_long(value: &str, max: usize, unit: &str) -> Vec<String> {
    unless(value.len() <= max, || format!("must be no more than {max} {unit}"))
}

fn unless(good: bool, message: impl FnOnce() -> String) -> Vec<String> {
    if good { Vec::new() } else { vec![message()] }
}

/// `message (e.g. 'a',  or 'b', regex used for validation is '…')`, with upstream's stray comma and space.
pub fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}
