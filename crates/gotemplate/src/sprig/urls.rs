//! sprig's `urlParse` and `urlJoin`: between a URL and a dictionary of its parts, as net/url splits them.

use super::args::{map, text};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{Key, Map, Str, Value};
use transom_go::url::{HostColons, Url, Userinfo};

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("urlParse", &[Type::Str], |env, args| {
        let url = Url::parse(text(args, 0)?, HostColons::Allowed)
            .map_err(|problem| format!("unable to parse url: {problem}"))?;
        let hostname = url.hostname().to_vec();
        let userinfo = url.user.as_ref().map(Userinfo::to_bytes).unwrap_or_default();
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
    let mut url = Url::default();
    url.scheme = entry(dict, "scheme")?.to_vec();
    url.host = entry(dict, "host")?.to_vec();
    url.path = entry(dict, "path")?.to_vec();
    url.query = entry(dict, "query")?.to_vec();
    url.opaque = entry(dict, "opaque")?.to_vec();
    url.fragment = entry(dict, "fragment")?.to_vec();
    let userinfo = entry(dict, "userinfo")?;
    if !userinfo.is_empty() {
        let proxy = [b"proto://", &*userinfo, b"@host"].concat();
        let parsed = Url::parse(&proxy, HostColons::Allowed)
            .map_err(|problem| format!("unable to parse userinfo in dict: {problem}"))?;
        url.user = parsed.user;
    }
    env.string(url.to_bytes())
}
