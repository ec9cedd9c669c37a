//! `urlParse` and `urlJoin`, with the accept rules of package net/url.

use super::args::{map, text};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::strconv::quote::quote;
use crate::value::{Key, Map, Str, Value};

pub const FUNCTIONS: &[Native] = &[
    fixed("urlParse", &[Type::Str], |env, args| {
        let url = Url::parse(text(args, 0)?).map_err(|problem| format!("unable to parse url: {problem}"))?;
        let hostname = hostname(&url.host).to_vec();
        let userinfo = url.user.as_ref().map(Userinfo::text).unwrap_or_default();
        env.allocate_map(8)?;
        Ok(Value::map([
            ("scheme", Value::str(url.scheme)),
            ("host", Value::str(url.host)),
            ("hostname", Value::str(hostname)),
            ("path", Value::str(url.path)),
            ("query", Value::str(url.query)),
            ("opaque", Value::str(url.opaque)),
            ("fragment", Value::str(url.fragment)),
            ("userinfo", Value::str(userinfo)),
        ]))
    }),
    fixed("urlJoin", &[Type::Map], join),
];

#[derive(Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    user: Option<Userinfo>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: Vec<u8>,
    query: Vec<u8>,
    force_query: bool,
    fragment: Vec<u8>,
    raw_fragment: Vec<u8>,
}

struct Userinfo {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl Userinfo {
    fn text(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend(escape(password, Part::User));
        }
        out
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

fn quoted(text: &[u8]) -> String {
    String::from_utf8_lossy(&quote(text, false)).into_owned()
}

fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == at) {
        Some(index) => (&text[..index], Some(&text[index + 1..])),
        None => (text, None),
    }
}

impl Url {
    fn parse(raw: &[u8]) -> Result<Url, String> {
        let (before, fragment) = cut(raw, b'#');
        let mut url = Url::parse_before_fragment(before)
            .map_err(|problem| format!("parse {}: {problem}", quoted(before)))?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment)
                .map_err(|problem| format!("parse {}: {problem}", quoted(raw)))?;
            url.raw_fragment = if escape(&url.fragment, Part::Fragment) == fragment {
                Vec::new()
            } else {
                fragment.to_vec()
            };
        }
        Ok(url)
    }

    fn parse_before_fragment(raw: &[u8]) -> Result<Url, String> {
        if raw.iter().any(|byte| *byte < 0x20 || *byte == 0x7F) {
            return Err("net/url: invalid control character in URL".to_owned());
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
            let (segment, _) = cut(rest, b'/');
            if segment.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if (!url.scheme.is_empty() || !rest.starts_with(b"///")) && rest.starts_with(b"//") {
            let end = rest[2..].iter().position(|byte| *byte == b'/').map_or(rest.len(), |at| at + 2);
            let authority = &rest[2..end];
            rest = &rest[end..];
            url.authority(authority)?;
        }
        url.path = unescape(rest, Part::Path)?;
        if escape(&url.path, Part::Path) != rest {
            url.raw_path = rest.to_vec();
        }
        Ok(url)
    }

    fn authority(&mut self, authority: &[u8]) -> Result<(), String> {
        let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
            self.host = host(authority)?;
            return Ok(());
        };
        self.host = host(&authority[at + 1..])?;
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

    fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.extend_from_slice(b"//");
                }
                if let Some(user) = &self.user {
                    out.extend(user.text());
                    out.push(b'@');
                }
                out.extend(escape(&self.host, Part::Host));
            }
            let path = if self.raw_path.is_empty() { escape_path(&self.path) } else { self.raw_path.clone() };
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
            out.extend(escape(&self.fragment, Part::Fragment));
        }
        out
    }
}

fn escape_path(path: &[u8]) -> Vec<u8> {
    if path == b"*" { path.to_vec() } else { escape(path, Part::Path) }
}

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

fn host(raw: &[u8]) -> Result<Vec<u8>, String> {
    if raw.starts_with(b"[") {
        let Some(end) = raw.iter().rposition(|byte| *byte == b']') else {
            return Err("missing ']' in host".to_owned());
        };
        valid_port(&raw[end + 1..])?;
        if let Some(zone) = super::strings::find(&raw[..end], b"%25") {
            let address = unescape(&raw[..zone], Part::Host)?;
            let zone_name = unescape(&raw[zone..end], Part::Zone)?;
            let rest = unescape(&raw[end..], Part::Host)?;
            return Ok([address, zone_name, rest].concat());
        }
    } else if let Some(colon) = raw.iter().rposition(|byte| *byte == b':') {
        valid_port(&raw[colon..])?;
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

fn hostname(host: &[u8]) -> &[u8] {
    let mut name = host;
    if let Some(colon) = host.iter().rposition(|byte| *byte == b':')
        && valid_port(&host[colon..]).is_ok()
    {
        name = &host[..colon];
    }
    match name {
        [b'[', inner @ .., b']'] => inner,
        _ => name,
    }
}

fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'%' => {
                let digits =
                    text.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let Some(digits) = digits else {
                    let shown = &text[at..text.len().min(at + 3)];
                    return Err(format!("invalid URL escape {}", quoted(shown)));
                };
                let hex = std::str::from_utf8(digits).unwrap_or("0");
                let byte = u8::from_str_radix(hex, 16).unwrap_or(0);
                if part == Part::Host && byte < 0x80 && digits != b"25" {
                    return Err(format!("invalid URL escape {}", quoted(&text[at..at + 3])));
                }
                out.push(byte);
                at += 3;
            }
            byte => {
                if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && should_escape(byte, part) {
                    return Err(format!("invalid character {} in host name", quoted(&[byte])));
                }
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(out)
}

fn should_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    if matches!(part, Part::Host | Part::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&byte) {
        return false;
    }
    match byte {
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Host | Part::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' if part == Part::Fragment => false,
        _ => true,
    }
}

fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if should_escape(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

fn entry(dict: &Map, key: &str) -> Result<Str, CallError> {
    match dict.get(&Key::str(key)) {
        None => Ok(Str::from("")),
        Some(Value::Str(text)) => Ok(text),
        Some(value) if value.is_nil() => {
            Err("runtime error: invalid memory address or nil pointer dereference".into())
        }
        Some(other) => {
            let kind = other.kind().name();
            Err(format!("unable to parse {key} key, must be of type string, but {kind} found").into())
        }
    }
}

fn join(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let dict = map(args, 0)?;
    let mut url = Url {
        scheme: entry(dict, "scheme")?.to_vec(),
        host: entry(dict, "host")?.to_vec(),
        path: entry(dict, "path")?.to_vec(),
        query: entry(dict, "query")?.to_vec(),
        opaque: entry(dict, "opaque")?.to_vec(),
        fragment: entry(dict, "fragment")?.to_vec(),
        ..Url::default()
    };
    let userinfo = entry(dict, "userinfo")?;
    if !userinfo.is_empty() {
        let proxy = [b"proto://", &*userinfo, b"@host"].concat();
        let parsed =
            Url::parse(&proxy).map_err(|problem| format!("unable to parse userinfo in dict: {problem}"))?;
        url.user = parsed.user;
    }
    env.string(url.text())
}
