//! Go's semantics, each written once: what Kubernetes, Crossplane and templates inherit from Go's standard library and a
//! few of its packages. It knows nothing of Kubernetes or of templates. No I/O, no clock, no randomness.
//!
//! | module | what it is |
//! |---|---|
//! | [`encoding`] | base64, base32, hexadecimal |
//! | [`fmt`] | formatting by verbs, for any type that implements `Operand` |
//! | [`gzip`] | compress/gzip at its fastest level, byte for byte |
//! | [`json`] | how encoding/json writes numbers and strings |
//! | [`regexp`] | regular expressions (RE2's syntax), on the `regex` crate |
//! | [`semver`] | versions and constraints by Masterminds/semver |
//! | [`strconv`] | numbers and floats from and to text, quoted strings |
//! | [`time`] | instants, locations, durations, layouts |
//! | [`unicode`], [`utf8`] | categories and case of runes, bytes as runes |
//! | [`url`] | net/url |
//! | [`yaml`] | what plain scalars mean to go-yaml, and how strings are written |

#![warn(missing_docs)]

pub mod encoding;
pub mod fmt;
pub mod gzip;
pub mod json;
pub mod regexp;
pub mod semver;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;
pub mod utf8;
pub mod yaml;
