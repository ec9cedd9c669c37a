//! Slash-separated paths; the `os` forms are the same, since functions run on Linux.

use super::args::text;
use crate::functions::{Native, Type, fixed};
use crate::value::Value;

const STR: &[Type] = &[Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("base", STR, |env, args| env.string(base(text(args, 0)?))),
    fixed("osBase", STR, |env, args| env.string(base(text(args, 0)?))),
    fixed("dir", STR, |env, args| env.string(dir(text(args, 0)?))),
    fixed("osDir", STR, |env, args| env.string(dir(text(args, 0)?))),
    fixed("clean", STR, |env, args| env.string(clean(text(args, 0)?))),
    fixed("osClean", STR, |env, args| env.string(clean(text(args, 0)?))),
    fixed("ext", STR, |env, args| env.string(ext(text(args, 0)?))),
    fixed("osExt", STR, |env, args| env.string(ext(text(args, 0)?))),
    fixed("isAbs", STR, |_, args| Ok(Value::Bool(text(args, 0)?.first() == Some(&b'/')))),
    fixed("osIsAbs", STR, |_, args| Ok(Value::Bool(text(args, 0)?.first() == Some(&b'/')))),
];

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let Some(end) = path.iter().rposition(|byte| *byte != b'/') else { return b"/" };
    let start = path[..=end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    &path[start..=end]
}

fn dir(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

fn ext(path: &[u8]) -> &[u8] {
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    match path[name..].iter().rposition(|byte| *byte == b'.') {
        Some(at) => &path[name + at..],
        None => b"",
    }
}

fn clean(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let rooted = path[0] == b'/';
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/".as_slice(), &joined].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
