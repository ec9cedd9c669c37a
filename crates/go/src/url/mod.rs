//! Package net/url: URLs taken apart and put together. Parts are bytes, as in Go, where escapes may decode to anything.
//!
//! One check of Go 1.26 is absent: that the address in `[…]` is an IPv6 address.

mod escape;

use crate::strconv::{Printable, quote_bytes};
use escape::{Part, escape, unescape, valid_encoded};
use std::collections::BTreeMap;
use std::fmt;

/// A URL by its parts, decoded. It is written by its `Display`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case; empty for a relative URL.
    pub scheme: Vec<u8>,
    /// What follows a scheme without a slash, encoded: `mailto:opaque`.
    pub opaque: Vec<u8>,
    /// The part before `@` in the authority.
    pub user: Option<Userinfo>,
    /// The host, with its port.
    pub host: Vec<u8>,
    /// The path.
    pub path: Vec<u8>,
    /// The query, encoded, without its `?`.
    pub query: Vec<u8>,
    /// The fragment.
    pub fragment: Vec<u8>,
    /// The path as it was written, where that differs from how it would be encoded.
    raw_path: Vec<u8>,
    raw_fragment: Vec<u8>,
    /// There is a `?` although the query is empty.
    force_query: bool,
    /// There is no `//` although there is a scheme.
    omit_host: bool,
}

/// User name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Userinfo {
    /// The name.
    pub name: Vec<u8>,
    /// The password, if a colon announces one.
    pub password: Option<Vec<u8>>,
}

/// Why a text is not a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    url: String,
    reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "parse {}: {}", self.url, self.reason)
    }
}

impl std::error::Error for Error {}

/// Whether the host of an `http` or `https` URL may contain colons that do not introduce a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostColons {
    /// `GODEBUG=urlstrictcolons=0`, the default of programs written for Go before 1.26.
    Allowed,
    /// The default of programs written for Go 1.26.
    Refused,
}

/// What is read.
#[derive(Clone, Copy)]
struct Rules {
    /// The target of a request: an absolute URL or path, in which `#` means nothing.
    request: bool,
    colons: HostColons,
}

fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == at) {
        Some(index) => (&text[..index], Some(&text[index + 1..])),
        None => (text, None),
    }
}

fn quoted(text: &[u8]) -> String {
    quote_bytes(text, Printable::Unicode)
}

impl Url {
    /// `url.Parse`: absolute or relative, with or without a fragment.
    pub fn parse(raw: &[u8], colons: HostColons) -> Result<Url, Error> {
        let (before, fragment) = cut(raw, b'#');
        let failed = |text: &[u8], reason| Error { url: quoted(text), reason };
        let rules = Rules { request: false, colons };
        let mut url = Url::parse_before_fragment(before, rules).map_err(|reason| failed(before, reason))?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|reason| failed(raw, reason))?;
            if escape(&url.fragment, Part::Fragment) != fragment {
                url.raw_fragment = fragment.to_vec();
            }
        }
        Ok(url)
    }

    /// `url.ParseRequestURI`: an absolute URL or an absolute path. A `#` is part of the path or the query.
    pub fn parse_request(raw: &[u8], colons: HostColons) -> Result<Url, Error> {
        Url::parse_before_fragment(raw, Rules { request: true, colons })
            .map_err(|reason| Error { url: quoted(raw), reason })
    }

    fn parse_before_fragment(raw: &[u8], rules: Rules) -> Result<Url, String> {
        if raw.iter().any(|byte| *byte < 0x20 || *byte == 0x7F) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if raw.is_empty() && rules.request {
            return Err("empty url".to_owned());
        }
        let mut url = Url::default();
        if raw == b"*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, mut rest) = scheme(raw)?;
        url.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with(b"?") && rest.iter().filter(|byte| **byte == b'?').count() == 1 {
            url.force_query = true;
            rest = &rest[..rest.len() - 1];
        } else {
            let (path, query) = cut(rest, b'?');
            rest = path;
            url.query = query.unwrap_or_default().to_vec();
        }
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            if rules.request {
                return Err("invalid URI for request".to_owned());
            }
            if cut(rest, b'/').0.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let path = url.take_authority(rest, rules)?;
        url.set_path(path)?;
        Ok(url)
    }

    /// Reads what follows `//`, if it announces a host, up to the path, which is returned.
    fn take_authority<'a>(&mut self, rest: &'a [u8], rules: Rules) -> Result<&'a [u8], String> {
        let relative = !rules.request && !rest.starts_with(b"///");
        if let Some(after) = rest.strip_prefix(b"//")
            && (!self.scheme.is_empty() || relative)
        {
            let end = after.iter().position(|byte| *byte == b'/').unwrap_or(after.len());
            self.authority(&after[..end], rules.colons)?;
            return Ok(&after[end..]);
        }
        self.omit_host = !self.scheme.is_empty() && rest.starts_with(b"/");
        Ok(rest)
    }

    fn set_path(&mut self, encoded: &[u8]) -> Result<(), String> {
        self.path = unescape(encoded, Part::Path)?;
        if escape(&self.path, Part::Path) != encoded {
            self.raw_path = encoded.to_vec();
        }
        Ok(())
    }

    fn authority(&mut self, authority: &[u8], colons: HostColons) -> Result<(), String> {
        let strict = colons == HostColons::Refused && matches!(self.scheme.as_slice(), b"http" | b"https");
        let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
            self.host = host(authority, strict)?;
            return Ok(());
        };
        self.host = host(&authority[at + 1..], strict)?;
        let user = &authority[..at];
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
        if !user.iter().all(allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = cut(user, b':');
        self.user = Some(Userinfo {
            name: unescape(name, Part::User)?,
            password: password.map(|password| unescape(password, Part::User)).transpose()?,
        });
        Ok(())
    }

    /// `URL.Hostname`: the host without port and brackets.
    pub fn hostname(&self) -> &[u8] {
        match self.split_port().0 {
            [b'[', inner @ .., b']'] => inner,
            name => name,
        }
    }

    /// `URL.Port`; empty without a port.
    pub fn port(&self) -> &[u8] {
        self.split_port().1
    }

    fn split_port(&self) -> (&[u8], &[u8]) {
        match self.host.iter().rposition(|byte| *byte == b':') {
            Some(colon) if valid_port(&self.host[colon..]).is_ok() => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (&self.host, b""),
        }
    }

    /// `URL.EscapedPath`: the path as it was written, where that is valid.
    pub fn escaped_path(&self) -> Vec<u8> {
        if !self.raw_path.is_empty() && valid_encoded(&self.raw_path, Part::Path) {
            return self.raw_path.clone();
        }
        if self.path == b"*" { self.path.clone() } else { escape(&self.path, Part::Path) }
    }

    fn escaped_fragment(&self) -> Vec<u8> {
        if !self.raw_fragment.is_empty() && valid_encoded(&self.raw_fragment, Part::Fragment) {
            return self.raw_fragment.clone();
        }
        escape(&self.fragment, Part::Fragment)
    }

    /// `URL.Query`: the values of each key. Pairs that are malformed are left out.
    pub fn query_values(&self) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut values: BTreeMap<_, Vec<Vec<u8>>> = BTreeMap::new();
        for pair in self.query.split(|byte| *byte == b'&') {
            if pair.is_empty() || pair.contains(&b';') {
                continue;
            }
            let (key, value) = cut(pair, b'=');
            if let (Ok(key), Ok(value)) =
                (unescape(key, Part::Query), unescape(value.unwrap_or_default(), Part::Query))
            {
                values.entry(key).or_default().push(value);
            }
        }
        values
    }

    /// `URL.String`, which need not be UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            self.write_authority(&mut out);
            let path = self.escaped_path();
            if !path.is_empty() && path[0] != b'/' && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend(path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(self.escaped_fragment());
        }
        out
    }

    fn write_authority(&self, out: &mut Vec<u8>) {
        let named = !self.host.is_empty() || self.user.is_some();
        if !named && (self.scheme.is_empty() || self.omit_host) {
            return;
        }
        if named || !self.path.is_empty() {
            out.extend_from_slice(b"//");
        }
        if let Some(user) = &self.user {
            out.extend(user.to_bytes());
            out.push(b'@');
        }
        out.extend(escape(&self.host, Part::Host));
    }
}

/// `URL.String`; what is not UTF-8 is replaced.
impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl Userinfo {
    /// `Userinfo.String`: encoded, with a colon before the password.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend(escape(password, Part::User));
        }
        out
    }
}

/// The scheme, if there is one, and what follows it.
fn scheme(raw: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (index, byte) in raw.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&raw[..index], &raw[index + 1..])),
            _ => return Ok((b"", raw)),
        }
    }
    Ok((b"", raw))
}

/// `strict`: the first colon must introduce the port.
fn host(raw: &[u8], strict: bool) -> Result<Vec<u8>, String> {
    if raw.starts_with(b"[") {
        let Some(end) = raw.iter().rposition(|byte| *byte == b']') else {
            return Err("missing ']' in host".to_owned());
        };
        valid_port(&raw[end + 1..])?;
        if let Some(zone) = raw[..end].windows(3).position(|window| window == b"%25") {
            let address = unescape(&raw[..zone], Part::Host)?;
            let zone_name = unescape(&raw[zone..end], Part::Zone)?;
            let rest = unescape(&raw[end..], Part::Host)?;
            return Ok([address, zone_name, rest].concat());
        }
    } else {
        let is_colon = |byte: &u8| *byte == b':';
        let colon = if strict { raw.iter().position(is_colon) } else { raw.iter().rposition(is_colon) };
        if let Some(colon) = colon {
            valid_port(&raw[colon..])?;
        }
    }
    unescape(raw, Part::Host)
}

fn valid_port(port: &[u8]) -> Result<(), String> {
    match port {
        [] => Ok(()),
        [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(format!("invalid port {} after host", quoted(port))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Url::parse(text.as_bytes(), HostColons::Allowed).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn errors_are_worded_as_gos() {
        for (text, want) in [
            ("https://host/path", ""),
            ("https://host:80/", ""),
            ("https://[::1]:80/", ""),
            ("https:opaque%zz", ""),
            ("host/path", ""),
            ("", ""),
            ("https://a b/", r#"parse "https://a b/": invalid character " " in host name"#),
            ("https://host:port/", r#"parse "https://host:port/": invalid port ":port" after host"#),
            ("https://[::1", r#"parse "https://[::1": missing ']' in host"#),
            ("https://host/%zz", r#"parse "https://host/%zz": invalid URL escape "%zz""#),
            ("https://host/#%z", r#"parse "https://host/#%z": invalid URL escape "%z""#),
            (":80", r#"parse ":80": missing protocol scheme"#),
            ("1a:b", r#"parse "1a:b": first path segment in URL cannot contain colon"#),
            ("https://a\tb", r#"parse "https://a\tb": net/url: invalid control character in URL"#),
            ("https://u^@host", r#"parse "https://u^@host": net/url: invalid userinfo"#),
        ] {
            assert_eq!(problem(text), want, "{text}");
        }
    }

    #[test]
    fn colons_in_hosts() {
        let strict = |text: &str| Url::parse(text.as_bytes(), HostColons::Refused);
        assert_eq!(
            strict("http://a:80:80/").unwrap_err().to_string(),
            r#"parse "http://a:80:80/": invalid port ":80:80" after host"#
        );
        assert!(strict("mongodb://a:1,b:2/").is_ok() && problem("http://a:80:80/").is_empty());
    }

    #[test]
    fn targets_of_requests() {
        let request = |text: &str| Url::parse_request(text.as_bytes(), HostColons::Allowed);
        for good in [
            "http://foo.bar/#com",
            "http://foobar.中文网/",
            "http://user:pass@www.foobar.com/",
            "http://duckduckgo.com/?q=%2F",
            "http://foobar.com?foo=bar",
            "xyz://foobar.com",
            "http://foobar.com/t$-_.+!*\\'(),",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "*",
            "http://[::1]:80/",
            "a:b",
        ] {
            assert!(request(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "foobar.com",
            "./rel/test/dir",
            ":x",
            "http://a b/",
            "http://x:port/",
            "/a%2",
            "http://x%41/",
            "http://[::1/",
            "1http://x",
            "/a\nb",
        ] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn urls_are_written_as_they_were_read() {
        for text in [
            "https://u:p@example.com:8443/a%20b?q=1#f",
            "mailto:a@b",
            "/a/b?",
            "//host/x",
            "file:/etc",
            "http://h/a%2Fb",
            "./a:b",
        ] {
            let url = Url::parse(text.as_bytes(), HostColons::Allowed).unwrap();
            assert_eq!(url.to_string(), text);
        }
        let url = Url::parse(b"https://[::1]:80/a b?x=1&x=%20+&y", HostColons::Allowed).unwrap();
        assert_eq!((url.hostname(), url.port()), (b"::1".as_slice(), b"80".as_slice()));
        assert_eq!(url.escaped_path(), b"/a%20b");
        assert_eq!(url.query_values()[b"x".as_slice()], [b"1".to_vec(), b"  ".to_vec()]);
    }
}
