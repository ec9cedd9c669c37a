//! The functions that need crates for old or slow algorithms. A build without the feature `sprig-crypto` has none of
//! them, nor those crates: a template that uses one is refused, see [`super::CRYPTO_FUNCTIONS`].

mod certificates;
mod ciphers;
mod keys;
mod password;
mod primes;

use crate::functions::Native;

pub(super) const TABLES: &[&[Native]] = &[certificates::FUNCTIONS, ciphers::FUNCTIONS, password::FUNCTIONS];
