//! Values of labels, which may contain any characters: they are escaped as Prometheus' text format wants it.

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use std::fmt::{self, Write};
use std::sync::Arc;

/// The value of a label that may contain any characters. They are escaped when it is encoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelValue(Arc<str>);

impl From<&str> for LabelValue {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for LabelValue {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl EncodeLabelValue for LabelValue {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        let mut rest = &*self.0;
        while let Some(at) = rest.find(['\\', '"', '\n']) {
            encoder.write_str(&rest[..at])?;
            encoder.write_str(match rest.as_bytes()[at] {
                b'\\' => "\\\\",
                b'"' => "\\\"",
                _ => "\\n",
            })?;
            rest = &rest[at + 1..];
        }
        encoder.write_str(rest)
    }
}
