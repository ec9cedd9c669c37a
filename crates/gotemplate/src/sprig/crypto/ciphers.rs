//! sprig's functions for passwords (`bcrypt`, `htpasswd`) and for AES. Slow ones count as many steps, so that a template can use
//! only a few.

use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit, block_padding::NoPadding};

use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::sprig::args::text;
use crate::value::{Str, Value};
use transom_go::encoding::{base64_decode, base64_encode};

const STR: &[Type] = &[Type::Str];
const STR2: &[Type] = &[Type::Str, Type::Str];

/// What a deliberately slow function counts as, in steps: ten fit into one execution.
pub(super) const SLOW_FUNCTION_STEPS: usize = 390_000;

pub(super) const FUNCTIONS: &[Native] = &[
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
    fixed("encryptAES", STR2, encrypt_aes),
    fixed("decryptAES", STR2, decrypt_aes),
];

fn bcrypt(env: &mut Env<'_>, password: &[u8]) -> Result<String, CallError> {
    const COST: u32 = 10;
    const MAX_PASSWORD_BYTES: usize = 72;
    if password.len() > MAX_PASSWORD_BYTES {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned()
        );
    }
    env.spend(SLOW_FUNCTION_STEPS)?;
    let mut salt = [0; 16];
    env.random(&mut salt)?;
    match bcrypt::hash_with_salt(password, COST, salt) {
        Ok(parts) => Ok(parts.format_for_version(bcrypt::Version::TwoA)),
        Err(problem) => Ok(format!("failed to encrypt string with bcrypt: {problem}")),
    }
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
