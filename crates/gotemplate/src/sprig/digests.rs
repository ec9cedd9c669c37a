//! Digests, and functions whose result is random.

use ring::digest;

use super::args::{int, text};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::Value;
use transom_go::encoding::{base64_encode, hex};

const STR: &[Type] = &[Type::Str];
const INT: &[Type] = &[Type::Int];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("sha1sum", STR, |env, args| hex_digest(env, &digest::SHA1_FOR_LEGACY_USE_ONLY, text(args, 0)?)),
    fixed("sha256sum", STR, |env, args| hex_digest(env, &digest::SHA256, text(args, 0)?)),
    fixed("sha512sum", STR, |env, args| hex_digest(env, &digest::SHA512, text(args, 0)?)),
    fixed("adler32sum", STR, |env, args| {
        const MODULUS: u32 = 65_521;
        let (mut low, mut high) = (1u32, 0u32);
        for byte in text(args, 0)?.iter() {
            low = (low + u32::from(*byte)) % MODULUS;
            high = (high + low) % MODULUS;
        }
        env.string((high << 16 | low).to_string())
    }),
    fixed("randBytes", INT, |env, args| {
        let count =
            usize::try_from(int(args, 0)?).map_err(|_| "runtime error: makeslice: len out of range")?;
        env.allocate(count.saturating_mul(3))?;
        let mut bytes = vec![0; count];
        env.random(&mut bytes)?;
        Ok(Value::str(base64_encode(&bytes)))
    }),
    fixed("randAlphaNum", INT, |env, args| {
        random_text(env, int(args, 0)?, |byte| byte.is_ascii_alphanumeric())
    }),
    fixed("randAlpha", INT, |env, args| random_text(env, int(args, 0)?, |byte| byte.is_ascii_alphabetic())),
    fixed("randNumeric", INT, |env, args| random_text(env, int(args, 0)?, |byte| byte.is_ascii_digit())),
    fixed("randAscii", INT, |env, args| random_text(env, int(args, 0)?, |byte| (32..127).contains(&byte))),
    fixed("uuidv4", &[], |env, _| {
        let mut bytes = [0; 16];
        env.random(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let hex = hex(&bytes);
        env.string(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
    }),
    fixed("getHostByName", STR, |env, args| {
        let addresses = env.context.lookup_host(&text(args, 0)?.lossy());
        let chosen = env.random_below(addresses.len() as u64)?;
        let chosen = usize::try_from(chosen).ok().and_then(|index| addresses.get(index));
        env.string(chosen.map_or("", String::as_str))
    }),
];

fn hex_digest(
    env: &mut Env<'_>,
    algorithm: &'static digest::Algorithm,
    text: &[u8],
) -> Result<Value, CallError> {
    env.spend(text.len() / 32)?;
    env.string(hex(digest::digest(algorithm, text).as_ref()))
}

fn random_text(env: &mut Env<'_>, count: i64, accepted: fn(u8) -> bool) -> Result<Value, CallError> {
    let Ok(count) = usize::try_from(count) else { return Ok(Value::str("")) };
    env.allocate(count)?;
    env.spend(count)?;
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        let mut drawn = [0; 64];
        env.random(&mut drawn)?;
        // Seven bits per byte, rejecting what is outside the set, keeps every character equally likely.
        out.extend(
            drawn.iter().map(|byte| byte & 0x7F).filter(|byte| accepted(*byte)).take(count - out.len()),
        );
    }
    Ok(Value::str(out))
}
