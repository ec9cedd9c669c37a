//! `derivePassword`: the Master Password algorithm.

use ring::hmac;

use super::ciphers::SLOW_FUNCTION_STEPS;
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::sprig::args::{int, text};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Native] =
    &[fixed("derivePassword", &[Type::Uint32, Type::Str, Type::Str, Type::Str, Type::Str], derive)];

const SEED: &[u8] = b"com.lyndir.masterpassword";

fn templates(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A length as the algorithm writes it.
fn prefixed(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), text].concat()
}

fn derive(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let counter = u32::try_from(int(args, 0)?).unwrap_or(0);
    let (kind, password, user, site) = (text(args, 1)?, text(args, 2)?, text(args, 3)?, text(args, 4)?);
    let Some(templates) = templates(kind) else {
        return env.string([b"cannot find password template ".as_slice(), kind].concat());
    };
    env.spend(SLOW_FUNCTION_STEPS * 3)?;
    let salt = [SEED, &prefixed(user)].concat();
    let mut key = [0; 64];
    let params = scrypt::Params::new(15, 8, 2, key.len()).map_err(|problem| problem.to_string())?;
    scrypt::scrypt(password, &salt, &params, &mut key).map_err(|problem| problem.to_string())?;
    let message = [SEED, &prefixed(site), &counter.to_be_bytes()].concat();
    let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
    let seed = seed.as_ref();
    let template = templates[usize::from(seed[0]) % templates.len()];
    let derived: Vec<u8> = template
        .bytes()
        .zip(&seed[1..])
        .map(|(class, byte)| {
            let choices = characters(class);
            choices[usize::from(*byte) % choices.len()]
        })
        .collect();
    env.string(derived)
}
