//! Why a text is not a URL, with the wording of Go's `net/url`.

use transom_object::quote::quote;

/// What is wrong with a text as a URL; `None` for a URL.
pub(super) fn problem(text: &str) -> Option<String> {
    let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (shown, why) = match without_fragment(url) {
        Err(why) => (url, why),
        Ok(()) => (text, escapes(fragment).err()?),
    };
    Some(format!("parse {}: {why}", quote(shown)))
}

fn without_fragment(url: &str) -> Result<(), String> {
    if url.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(url)?;
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        let first = rest.split('/').next().unwrap_or_default();
        return match (scheme, first.contains(':')) {
            // What follows the scheme is opaque.
            (true, _) => Ok(()),
            (false, true) => Err("first path segment in URL cannot contain colon".to_owned()),
            (false, false) => escapes(rest),
        };
    }
    let Some(after) = rest.strip_prefix("//").filter(|after| scheme || !after.starts_with('/')) else {
        return escapes(rest);
    };
    let end = after.find('/').unwrap_or(after.len());
    authority(&after[..end])?;
    escapes(&after[end..])
}

/// Whether there is a scheme, and what follows it.
fn scheme(url: &str) -> Result<(bool, &str), String> {
    for (i, c) in url.bytes().enumerate() {
        match c {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((true, &url[i + 1..])),
            _ => break,
        }
    }
    Ok((false, url))
}

fn authority(authority: &str) -> Result<(), String> {
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let port = match (host.starts_with('['), host.rfind(']')) {
        (true, None) => return Err("missing ']' in host".to_owned()),
        (true, Some(i)) => &host[i + 1..],
        (false, _) => host.rfind(':').map_or("", |i| &host[i..]),
    };
    let digits = port.strip_prefix(':').map_or(port.is_empty(), |p| p.bytes().all(|b| b.is_ascii_digit()));
    if !digits {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let allowed =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    escapes(host)?;
    if let Some(c) = host.chars().find(|c| !allowed(*c)) {
        return Err(format!("invalid character {} in host name", quote(&c.to_string())));
    }
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escapes(user)
}

/// Every `%` is followed by two hexadecimal digits.
fn escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (i, _) in text.match_indices('%') {
        let code = &bytes[i..bytes.len().min(i + 3)];
        if code.len() < 3 || !code[1..].iter().all(u8::is_ascii_hexdigit) {
            return Err(format!("invalid URL escape {}", quote(&String::from_utf8_lossy(code))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn as_go_says() {
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
            assert_eq!(problem(text).unwrap_or_default(), want, "{text}");
        }
    }
}
