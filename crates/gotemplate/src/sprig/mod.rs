//! The functions of sprig v3.3.0, as function-go-templating ships them: `env` and `expandenv` are absent, as there.
//!
//! Results and errors are those of the Go library. What functions build counts against the limits of the template.

mod case;
mod convert;
#[cfg(feature = "sprig-crypto")]
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod digests;
mod encoding;
mod json;
mod lists;
mod math;
mod merge;
mod paths;
mod reflect;
mod regexes;
mod strings;
mod urls;
mod versions;

pub(crate) use reflect::deep_equal;

use crate::functions::{CallError, Env, Native};
use crate::value::Value;

/// A deep copy, counted against the budget.
pub(crate) fn copy(env: &mut Env<'_>, value: &Value) -> Result<Value, CallError> {
    dicts::deep_copy(env, value, 0)
}

/// Functions that only a build with the feature `sprig-crypto` has.
const CRYPTO_FUNCTIONS: &[&str] = &[
    "bcrypt",
    "buildCustomCert",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "htpasswd",
];

/// Why sprig has no function of this name here.
pub(crate) fn why_undefined(name: &str) -> String {
    if CRYPTO_FUNCTIONS.contains(&name) {
        return format!("function {name} is not in this build: build with the feature sprig-crypto");
    }
    crate::functions::not_defined(name)
}

/// All functions of sprig that this build has.
pub(crate) fn functions() -> impl Iterator<Item = &'static Native> {
    #[cfg(feature = "sprig-crypto")]
    let crypto = crypto::TABLES;
    #[cfg(not(feature = "sprig-crypto"))]
    let crypto: &[&[Native]] = &[];
    TABLES.iter().chain(crypto).flat_map(|table| table.iter())
}

const TABLES: &[&[Native]] = &[
    case::FUNCTIONS,
    convert::FUNCTIONS,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    digests::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    lists::FUNCTIONS,
    lists::PAIRED,
    math::FUNCTIONS,
    paths::FUNCTIONS,
    reflect::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
    urls::FUNCTIONS,
    versions::FUNCTIONS,
];

mod args {
    //! Reading arguments whose kinds the signature has already checked.

    use crate::functions::CallError;
    use crate::value::{List, Map, Str, Value};

    pub(super) fn text(args: &[Value], index: usize) -> Result<&Str, CallError> {
        match args.get(index) {
            Some(Value::Str(text)) => Ok(text),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    pub(super) fn int(args: &[Value], index: usize) -> Result<i64, CallError> {
        match args.get(index) {
            Some(Value::Int(_, value)) => Ok(*value),
            Some(Value::Uint(_, value)) => Ok(i64::try_from(*value).unwrap_or(i64::MAX)),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    pub(super) fn map(args: &[Value], index: usize) -> Result<&Map, CallError> {
        match args.get(index) {
            Some(Value::Map(map)) => Ok(map),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    /// A list argument of a function that takes `interface {}` and reflects on it; `doing` begins the error message.
    pub(super) fn list<'a>(value: &'a Value, doing: &str) -> Result<&'a List, CallError> {
        match value {
            Value::List(list) => Ok(list),
            Value::Nil | Value::Missing => {
                Err("runtime error: invalid memory address or nil pointer dereference".into())
            }
            other => Err(format!("{doing} {}", other.kind().name()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "sprig-crypto")]
    #[test]
    fn the_list_of_crypto_functions_is_that_of_the_feature() {
        let mut names: Vec<&str> =
            crypto::TABLES.iter().flat_map(|table| table.iter()).map(|native| native.name).collect();
        names.sort_unstable();
        assert_eq!(names, CRYPTO_FUNCTIONS);
    }

    #[test]
    fn a_function_of_the_feature_is_not_reported_as_unknown() {
        assert_eq!(
            why_undefined("genCA"),
            "function genCA is not in this build: build with the feature sprig-crypto"
        );
        assert_eq!(why_undefined("genCa"), "function \"genCa\" not defined");
    }
}
