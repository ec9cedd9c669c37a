//! Digests, AES, bcrypt and randomness.

use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit, block_padding::NoPadding};
use ring::digest;

use super::args::{int, text};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{Str, Value};
use transom_go::encoding::{base64_decode, base64_encode, hex};

const STR: &[Type] = &[Type::Str];
const STR2: &[Type] = &[Type::Str, Type::Str];
const INT: &[Type] = &[Type::Int];

/// What a deliberately slow function counts as, in steps: ten fit into one execution.
pub const SLOW: usize = 390_000;

pub const FUNCTIONS: &[Native] = &[
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
    fixed("bcrypt", STR, |env, args| {
        let hash = bcrypt(env, text(args, 0)?)?;
        env.string(hash)
    }),
    fixed("htpasswd", STR2, |env, args| {
        let (user, password) = (text(args, 0)?, text(args, 1)?);
        if user.contains(&b':') {
            return env.string([b"invalid username: ".as_slice(), user].concat());
        }
        let hash = bcrypt(env, password)?;
        env.string([user, b":".as_slice(), hash.as_bytes()].concat())
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
    fixed("encryptAES", STR2, encrypt_aes),
    fixed("decryptAES", STR2, decrypt_aes),
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

fn bcrypt(env: &mut Env<'_>, password: &[u8]) -> Result<String, CallError> {
    const COST: u32 = 10;
    const LONGEST: usize = 72;
    if password.len() > LONGEST {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned()
        );
    }
    env.spend(SLOW)?;
    let mut salt = [0; 16];
    env.random(&mut salt)?;
    match bcrypt::hash_with_salt(password, COST, salt) {
        Ok(parts) => Ok(parts.format_for_version(bcrypt::Version::TwoA)),
        Err(problem) => Ok(format!("failed to encrypt string with bcrypt: {problem}")),
    }
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

fn aes_key(password: &Str) -> [u8; 32] {
    let mut key = [0; 32];
    let used = password.len().min(32);
    key[..used].copy_from_slice(&password[..used]);
    key
}

fn encrypt_aes(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let (password, plain) = (text(args, 0)?, text(args, 1)?);
    if plain.is_empty() {
        return Ok(Value::str(""));
    }
    env.spend(plain.len() / 16)?;
    let mut iv = [0; 16];
    env.random(&mut iv)?;
    let padding = 16 - plain.len() % 16;
    let mut content = plain.to_vec();
    content.resize(plain.len() + padding, u8::try_from(padding).unwrap_or(16));
    let cipher = cbc::Encryptor::<aes::Aes256>::new(&aes_key(password).into(), &iv.into());
    let sealed = cipher.encrypt_padded_vec_mut::<NoPadding>(&content);
    env.string(base64_encode(&[iv.as_slice(), &sealed].concat()))
}

fn decrypt_aes(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let (password, sealed) = (text(args, 0)?, text(args, 1)?);
    if sealed.is_empty() {
        return Ok(Value::str(""));
    }
    env.spend(sealed.len() / 16)?;
    let sealed = base64_decode(sealed)?;
    let Some((iv, content)) = sealed.split_first_chunk::<16>() else {
        return Err(
            format!("runtime error: slice bounds out of range [:16] with capacity {}", sealed.len()).into()
        );
    };
    let cipher = cbc::Decryptor::<aes::Aes256>::new(&aes_key(password).into(), iv.into());
    let plain = cipher
        .decrypt_padded_vec_mut::<NoPadding>(content)
        .map_err(|_| "crypto/cipher: input not full blocks".to_owned())?;
    let Some(padding) = plain.last().map(|byte| usize::from(*byte)) else {
        return Err("runtime error: index out of range [-1]".into());
    };
    match plain.len().checked_sub(padding) {
        Some(length) => env.string(&plain[..length]),
        None => Err("runtime error: slice bounds out of range".into()),
    }
}
