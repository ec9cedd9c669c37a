//! `url`: absolute URLs as Go's `net/url` reads them.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Key, Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Url {
    scheme: String,
    user: Option<String>,
    host: String,
    path: String,
    raw_path: String,
    query: Option<String>,
    fragment: Option<String>,
    opaque: String,
}

impl Url {
    /// An absolute URL or an absolute path, as requests carry them (Go's `ParseRequestURI`).
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fail = |why: String| format!("parse {text:?}: {why}");
        // The request form knows no fragments: what it would refuse with one, it refuses.
        Self::parse_parts(text, true).map_err(fail)?;
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment.to_owned())),
            None => (text, None),
        };
        let mut url = Self::parse_parts(rest, false).map_err(fail)?;
        url.fragment = fragment;
        Ok(url)
    }

    fn parse_parts(text: &str, request: bool) -> Result<Self, String> {
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = "*".to_owned();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        url.query = query;
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        if let Some(after) =
            rest.strip_prefix("//").filter(|a| !url.scheme.is_empty() || (!request && !a.starts_with('/')))
        {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, tail) = after.split_at(end);
            url.authority(authority)?;
            path = tail;
        }
        url.path = unescape(path, false)?;
        path.clone_into(&mut url.raw_path);
        Ok(url)
    }

    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let host = match authority.rsplit_once('@') {
            Some((user, host)) => {
                let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
                if !user.chars().all(valid) {
                    return Err("net/url: invalid userinfo".to_owned());
                }
                self.user = Some(user.to_owned());
                host
            }
            None => authority,
        };
        let port = if host.starts_with('[') {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            host.get(end + 1..).unwrap_or_default()
        } else {
            match host.rfind(':') {
                Some(i) => host.get(i..).unwrap_or_default(),
                None => "",
            }
        };
        if !valid_port(port) {
            return Err(format!("invalid port {port:?} after host"));
        }
        if !host.starts_with('[') && host.matches(':').count() > 1 {
            return Err(format!("invalid port {port:?} after host"));
        }
        if let Some(c) = host.chars().find(|c| " <>\"\\^`{|}".contains(*c)) {
            return Err(format!("invalid character {:?} in host name", c.to_string()));
        }
        self.host = unescape(host, false)?;
        Ok(())
    }

    fn host_name(&self) -> &str {
        let host = match self.host.rfind(':') {
            Some(i) if !self.host.ends_with(']') && valid_port(&self.host[i..]) => &self.host[..i],
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
    }

    fn port(&self) -> &str {
        match self.host.rfind(':') {
            Some(i) if !self.host.ends_with(']') && valid_port(&self.host[i..]) => &self.host[i + 1..],
            _ => "",
        }
    }

    fn escaped_path(&self) -> String {
        let keep = |c: char| c.is_ascii_alphanumeric() || "-_.~$&+,/:;=@!'()*%[]".contains(c);
        if self.raw_path.chars().all(keep) {
            return self.raw_path.clone();
        }
        let mut out = String::with_capacity(self.path.len());
        for byte in self.path.bytes() {
            let c = char::from(byte);
            if c.is_ascii_alphanumeric() || "-_.~$&+,/:;=@".contains(c) {
                out.push(c);
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    fn query_values(&self) -> BTreeMap<String, Vec<String>> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.iter().flat_map(|q| q.split('&')) {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (unescape(key, true), unescape(value, true)) {
                values.entry(key).or_default().push(value);
            }
        }
        values
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn valid_port(port: &str) -> bool {
    match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    }
}

fn unescape(text: &str, query: bool) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        match b {
            b'%' => {
                let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
                let byte = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
                let Some(byte) = byte else {
                    let shown: String = std::iter::once('%').chain(hex.unwrap_or_default().chars()).collect();
                    return Err(format!("invalid URL escape {shown:?}"));
                };
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            b'+' if query => bytes.push(b' '),
            b => bytes.push(b),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
        } else {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&self.host)?;
            f.write_str(&self.escaped_path())?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

fn part<'a>(args: Args<'_, 'a>, f: impl FnOnce(&Url) -> Value<'a>) -> Out<'a> {
    if let Value::Opaque(o) = args.get(0)?
        && let Opaque::Url(url) = &**o
    {
        return Ok(f(url));
    }
    Err(EvalError::overload())
}

fn query<'a>(url: &Url) -> Value<'a> {
    let entries = url.query_values().into_iter().map(|(key, values)| {
        (Key::String(Arc::from(key)), Value::list(values.into_iter().map(Value::text).collect()))
    });
    Value::Map(Map::Owned(Arc::new(entries.collect())))
}

pub(super) fn declare(t: &mut Table) {
    const U: &str = "kubernetes.URL";
    t.global("url", "string_to_url", "string", U, |_, a| match Url::parse(string(a.get(0)?)?) {
        Ok(url) => Ok(Value::opaque(Opaque::Url(url))),
        Err(why) => Err(EvalError::failed(format!("URL parse error during conversion from string: {why}"))),
    });
    t.global("isURL", "is_url_string", "string", "bool", |_, a| {
        Ok(Value::Bool(Url::parse(string(a.get(0)?)?).is_ok()))
    });
    t.member("getScheme", "url_get_scheme", U, "string", |_, a| part(a, |u| Value::text(u.scheme.as_str())));
    t.member("getHost", "url_get_host", U, "string", |_, a| part(a, |u| Value::text(u.host.as_str())));
    t.member("getHostname", "url_get_hostname", U, "string", |_, a| part(a, |u| Value::text(u.host_name())));
    t.member("getPort", "url_get_port", U, "string", |_, a| part(a, |u| Value::text(u.port())));
    t.member("getEscapedPath", "url_get_escaped_path", U, "string", |_, a| {
        part(a, |u| Value::text(u.escaped_path()))
    });
    t.member("getQuery", "url_get_query", U, "map(string, list(string))", |_, a| part(a, query));
}
