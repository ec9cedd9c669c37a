//! `url`: absolute URLs as Go's `net/url` reads them.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Key, Map, Value};
use std::sync::Arc;
use transom_go::url::{Error, HostColons, Url};

/// An absolute URL or an absolute path. Requests carry no fragments, which is why what must be good as the target of a
/// request is read a second time.
pub(super) fn parse(text: &str) -> Result<Url, Error> {
    Url::parse_request(text.as_bytes(), HostColons::Refused)?;
    Url::parse(text.as_bytes(), HostColons::Refused)
}

fn text<'a>(bytes: &[u8]) -> Value<'a> {
    Value::text(String::from_utf8_lossy(bytes))
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
        let key = Key::String(Arc::from(String::from_utf8_lossy(&key)));
        (key, Value::list(values.iter().map(|value| text(value)).collect()))
    });
    Value::Map(Map::Owned(Arc::new(entries.collect())))
}

pub(super) fn declare(t: &mut Table) {
    const U: &str = "kubernetes.URL";
    t.global("url", "string_to_url", "string", U, |_, a| match parse(string(a.get(0)?)?) {
        Ok(url) => Ok(Value::opaque(Opaque::Url(url))),
        Err(why) => Err(EvalError::failed(format!("URL parse error during conversion from string: {why}"))),
    });
    t.global("isURL", "is_url_string", "string", "bool", |_, a| {
        Ok(Value::Bool(parse(string(a.get(0)?)?).is_ok()))
    });
    t.member("getScheme", "url_get_scheme", U, "string", |_, a| part(a, |u| text(&u.scheme)));
    t.member("getHost", "url_get_host", U, "string", |_, a| part(a, |u| text(&u.host)));
    t.member("getHostname", "url_get_hostname", U, "string", |_, a| part(a, |u| text(u.hostname())));
    t.member("getPort", "url_get_port", U, "string", |_, a| part(a, |u| text(u.port())));
    t.member("getEscapedPath", "url_get_escaped_path", U, "string", |_, a| {
        part(a, |u| text(&u.escaped_path()))
    });
    t.member("getQuery", "url_get_query", U, "map(string, list(string))", |_, a| part(a, query));
}
