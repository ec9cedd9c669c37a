//! Digests of content: `sha256:` and 64 hexadecimal digits. Nothing else is accepted as one.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The SHA-256 digest of some content: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// A text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a digest: it must be sha256: followed by 64 hexadecimal digits in lower case")]
pub struct DigestError {
    /// The text.
    pub text: String,
}

impl Digest {
    /// Reads a digest.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if hex.len() == 64 && hex.bytes().all(is_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError { text: text.to_owned() })
        }
    }

    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// The digest of what was hashed.
    pub fn finish(hasher: Sha256) -> Self {
        Self(format!("sha256:{:x}", hasher.finalize()))
    }

    /// The digest as text, with its algorithm.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hexadecimal digits.
    pub fn hex(&self) -> &str {
        self.0.trim_start_matches("sha256:")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
