//! Base64 and base32. What cannot be decoded gives the decoder's error as text.

use super::args::text;
use crate::functions::{Native, Type, fixed};
use transom_go::encoding::{base32_decode, base32_encode, base64_decode, base64_encode};

const STR: &[Type] = &[Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("b64enc", STR, |env, args| env.string(base64_encode(text(args, 0)?))),
    fixed("b64dec", STR, |env, args| match base64_decode(text(args, 0)?) {
        Ok(bytes) => env.string(bytes),
        Err(problem) => env.string(problem.to_string()),
    }),
    fixed("b32enc", STR, |env, args| env.string(base32_encode(text(args, 0)?))),
    fixed("b32dec", STR, |env, args| match base32_decode(text(args, 0)?) {
        Ok(bytes) => env.string(bytes),
        Err(problem) => env.string(problem.to_string()),
    }),
];
