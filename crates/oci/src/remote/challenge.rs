//! `WWW-Authenticate`: the authentication that a registry requires.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// What a registry asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password.
    Basic,
    /// A token from a realm.
    Bearer { realm: String, service: Option<String> },
}

/// The challenge of a response. A token is preferred to a password.
pub(super) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let all: Vec<(String, Vec<(String, String)>)> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(challenges)
        .collect();
    let bearer = all.iter().find_map(|(scheme, parameters)| {
        let find =
            |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        (scheme == "bearer")
            .then(|| find("realm").map(|realm| Challenge::Bearer { realm, service: find("service") }))?
    });
    bearer.or_else(|| all.iter().any(|(scheme, _)| scheme == "basic").then_some(Challenge::Basic))
}

/// All challenges of one header: `Scheme key=value, key="value", Scheme …`, names in lower case.
fn challenges(header: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', ',', '\t']);
        let end = rest.find([' ', ',', '=', '\t']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() && after.is_empty() {
            return found;
        }
        match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = parameter(value);
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.push((word.to_ascii_lowercase(), value));
                }
                rest = after;
            }
            None => {
                found.push((word.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
        }
    }
}

/// A value, quoted or not, and what follows it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', ',', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        for (header, expected) in [
            (
                r#"Bearer realm="https://a/t",service="s",scope="repository:x:pull""#,
                bearer("https://a/t", Some("s")),
            ),
            (r#"bearer Realm=https://a/t"#, bearer("https://a/t", None)),
            (r#"Basic realm="x", Bearer realm="https://a/t""#, bearer("https://a/t", None)),
            (r#"Basic realm="a, Bearer realm=\"evil\"""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            ("Negotiate abc==", None),
            ("Bearer service=x", None),
            ("=,=\"", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(WWW_AUTHENTICATE, header.parse().unwrap());
            assert_eq!(challenge(&headers), expected, "{header}");
        }
    }
}
