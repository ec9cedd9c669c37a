//! Large random primes for keys: a sieve leaves few candidates for the slow tests.

use num_bigint_dig::BigUint;
use num_bigint_dig::prime::probably_prime;

use crate::functions::{CallError, Env};

/// Candidates per random start: odd numbers one after the other.
const CANDIDATES_PER_START: usize = 4096;
/// Candidates with a prime factor below this are dropped before the slow tests.
const SIEVE_LIMIT: usize = 20_000;
/// Rounds of Miller and Rabin's test, with a Lucas test after them: more than FIPS 186-5 requires at these lengths.
const MILLER_RABIN_ROUNDS: usize = 8;

/// A prime of `bits` bits, the upper two of which are set, so that the product of two has twice as many.
pub(super) fn prime(env: &Env<'_>, bits: usize) -> Result<BigUint, CallError> {
    let small = odd_primes();
    loop {
        let start = start(env, bits)?;
        for offset in survivors(&start, &small) {
            let candidate = &start + 2 * offset;
            if candidate.bits() != bits {
                break;
            }
            if probably_prime(&candidate, MILLER_RABIN_ROUNDS) {
                return Ok(candidate);
            }
        }
    }
}

fn start(env: &Env<'_>, bits: usize) -> Result<BigUint, CallError> {
    let mut bytes = vec![0; bits / 8];
    env.random(&mut bytes)?;
    if let Some(first) = bytes.first_mut() {
        *first |= 0b1100_0000;
    }
    if let Some(last) = bytes.last_mut() {
        *last |= 1;
    }
    Ok(BigUint::from_bytes_be(&bytes))
}

/// The odd primes that candidates are sieved by.
fn odd_primes() -> Vec<usize> {
    let mut composite = vec![false; SIEVE_LIMIT];
    let mut primes = Vec::new();
    for number in (3..SIEVE_LIMIT).step_by(2) {
        if !composite[number] {
            primes.push(number);
            (number * number..SIEVE_LIMIT)
                .step_by(2 * number)
                .for_each(|multiple| composite[multiple] = true);
        }
    }
    primes
}

/// The offsets from `start`, in steps of two, of the numbers that no small prime divides.
fn survivors(start: &BigUint, primes: &[usize]) -> impl Iterator<Item = usize> + use<> {
    let mut composite = vec![false; CANDIDATES_PER_START];
    for prime in primes {
        let rest =
            (start % *prime).to_bytes_le().iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        // start + 2 · offset is a multiple: offset = -rest / 2, and half of one is (prime + 1) / 2.
        let first = (prime - rest) * prime.div_ceil(2) % prime;
        (first..CANDIDATES_PER_START).step_by(*prime).for_each(|offset| composite[offset] = true);
    }
    composite.into_iter().enumerate().filter(|(_, composite)| !composite).map(|(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_survives_has_no_small_divisor_and_what_does_not_has() {
        let start = BigUint::from(1_000_000_007_u64 * 3);
        let primes = odd_primes();
        assert_eq!(primes[..4], [3, 5, 7, 11]);
        let survivors: Vec<usize> = survivors(&start, &primes).collect();
        for offset in 0..CANDIDATES_PER_START {
            let candidate = 1_000_000_007_u64 * 3 + 2 * offset as u64;
            let divisible = primes.iter().any(|prime| candidate.is_multiple_of(*prime as u64));
            assert_eq!(survivors.contains(&offset), !divisible, "{candidate}");
        }
    }
}
