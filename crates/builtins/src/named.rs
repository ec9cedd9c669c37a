//! Fields that should hold one of some names.
//!
//! Whatever a field holds is decoded, because functions differ in what they make of a name that means nothing: some
//! refuse it, some ignore it. The names are known to the decoder, so that a review of the input can list them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// The names that a field may hold.
pub(crate) trait Names {
    const ALL: &'static [&'static str];
}

/// A text that should be one of some names.
pub(crate) struct OneOf<N> {
    text: String,
    names: PhantomData<N>,
}

impl<N> OneOf<N> {
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl<N> Default for OneOf<N> {
    fn default() -> Self {
        Self { text: String::new(), names: PhantomData }
    }
}

impl<N> Deref for OneOf<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<N> fmt::Debug for OneOf<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl<'de, N: Names> Deserialize<'de> for OneOf<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_enum("", N::ALL, Text)?;
        Ok(Self { text, names: PhantomData })
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

/// Declares names that fields of type [`OneOf`] may hold.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $($text:literal),+;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::named::Names for $name {
            const ALL: &'static [&'static str] = &[$($text),+];
        }
    )+};
}
pub(crate) use names;
