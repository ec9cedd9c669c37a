//! `resource.Quantity`: `100m`, `1.5Gi`, `2e3`.
//!
//! A quantity is an exact decimal with a preferred way of writing it. Upstream keeps small amounts as an `int64` and
//! a scale and the rest as a big decimal, and lets the difference show (`as_i64` handles only the former, `as_f64` rounds
//! differently), so both forms exist here and are chosen as upstream chooses them. Where upstream grows without bound,
//! we report an overflow beyond [`MAX_DIGITS`].

mod parse;

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// How a quantity likes to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It does not have the form of one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its number cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Its suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The exponent of a billionth, the least unit.
pub const NANO: i32 = -9;
/// The exponent of a thousandth.
pub const MILLI: i32 = -3;

/// The most digits that an amount may have: `1e999999999` is short to write and long to add one to.
pub const MAX_DIGITS: u32 = 10_000;

/// `value × 10^exponent`.
#[derive(Clone, Debug)]
enum Amount {
    Small { value: i64, exponent: i32 },
    Big { value: BigInt, exponent: i32 },
}

/// An amount with the form it is written in: `100m`, `1.5Gi`.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text it was read from, if it equals the canonical one.
    text: Option<Box<str>>,
}

impl Quantity {
    /// A whole number.
    pub fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::Small { value, exponent: 0 }, format, text: None }
    }

    /// `value × 10^exponent`, written with decimal suffixes.
    pub fn scaled(value: i64, exponent: i32) -> Self {
        Self { amount: Amount::Small { value, exponent }, format: Format::DecimalSi, text: None }
    }

    /// `value × 10^exponent` of any size.
    pub fn decimal(value: impl Into<BigInt>, exponent: i32, format: Format) -> Self {
        Self { amount: Amount::Big { value: value.into(), exponent }, format, text: None }
    }

    /// Reads a quantity.
    pub fn parse(s: &str) -> Result<Self, ParseError> {
        parse::parse(s)
    }

    /// The form it is written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same amount written in another way.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, text: None, ..self }
    }

    fn parts(&self) -> (BigInt, i32) {
        match &self.amount {
            Amount::Small { value, exponent } => ((*value).into(), *exponent),
            Amount::Big { value, exponent } => (value.clone(), *exponent),
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i8 {
        let order = match &self.amount {
            Amount::Small { value, .. } => value.cmp(&0),
            Amount::Big { value, .. } => value.sign().cmp(&Sign::NoSign),
        };
        order as i8
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// The amount, if upstream holds it as a whole number, which it does not for `1.0` and `1.5Gi`.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, exponent } if exponent >= 0 => scale_up(value, exponent.unsigned_abs()),
            _ => None,
        }
    }

    /// The nearest whole number away from zero; nothing sensible when it is out of range.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// As [`value`](Self::value), in thousandths.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// How many `10^exponent` fit in, rounded up, with upstream's way of overflowing.
    pub fn scaled_value(&self, exponent: i32) -> i64 {
        match &self.amount {
            Amount::Small { value, exponent: e } if *e < exponent => {
                round_away_i64(*value, e.abs_diff(exponent)).0
            }
            Amount::Small { value, exponent: e } => scale_up_or_wrap(*value, e.abs_diff(exponent)),
            Amount::Big { value, exponent: e } => scaled_big(value, *e, exponent),
        }
    }

    /// Rounds away from zero to a multiple of `10^exponent`; returns whether that changed nothing.
    pub fn round_up(&mut self, exponent: i32) -> bool {
        let (amount, exact) = match &self.amount {
            Amount::Small { exponent: e, .. } | Amount::Big { exponent: e, .. } if *e >= exponent => {
                return true;
            }
            Amount::Small { value, exponent: e } => {
                let (value, exact) = round_away_i64(*value, e.abs_diff(exponent));
                (Amount::Small { value, exponent }, exact)
            }
            Amount::Big { value, exponent: e } => {
                let (value, exact) = round_away(value, e.abs_diff(exponent));
                (Amount::Big { value, exponent }, exact)
            }
        };
        (self.text, self.amount) = (None, amount);
        exact
    }

    /// `None` when the sum needs more than [`MAX_DIGITS`]. Zero takes over the format of what is added.
    #[must_use]
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        self.combined(other, |n| n, |a, b| a + b)
    }

    /// `None` when the difference needs more than [`MAX_DIGITS`].
    #[must_use]
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        // Upstream negates without looking: -2^63 stays as it is, and is added instead of subtracted.
        self.combined(other, i64::wrapping_neg, |a, b| a - b)
    }

    fn combined(
        &self,
        other: &Self,
        small: impl Fn(i64) -> i64,
        big: impl Fn(BigInt, BigInt) -> BigInt,
    ) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        let sum = match (&self.amount, &other.amount) {
            (Amount::Small { value: a, exponent: ea }, Amount::Small { value: b, exponent: eb }) => {
                add_small((*a, *ea), (small(*b), *eb))
            }
            _ => None,
        };
        let amount = match sum {
            Some(small) => small,
            None => {
                let ((a, ea), (b, eb)) = (self.parts(), other.parts());
                let exponent = ea.min(eb);
                let value = big(shifted(a, ea.abs_diff(exponent))?, shifted(b, eb.abs_diff(exponent))?);
                Amount::Big { value, exponent }
            }
        };
        Some(Self { amount, format, text: None })
    }

    /// As upstream, which leaves the least small amount as it is: it has no counterpart.
    #[must_use]
    pub fn negated(&self) -> Self {
        let amount = match &self.amount {
            Amount::Small { value, exponent } => {
                Amount::Small { value: value.wrapping_neg(), exponent: *exponent }
            }
            Amount::Big { value, exponent } => Amount::Big { value: -value.clone(), exponent: *exponent },
        };
        Self { amount, format: self.format, text: None }
    }

    /// The product, in the same form.
    #[must_use]
    pub fn times(&self, factor: i64) -> Self {
        let small = match self.amount {
            Amount::Small { value, exponent } => mul_small(value, exponent, factor),
            Amount::Big { .. } => None,
        };
        let amount = small.unwrap_or_else(|| {
            let (value, exponent) = self.parts();
            Amount::Big { value: value * factor, exponent }
        });
        Self { amount, format: self.format, text: None }
    }

    /// The amount as a double, as upstream computes it: `0.3` is 0.30000000000000004, three times a tenth.
    pub fn as_f64(&self) -> f64 {
        let (value, exponent) = match &self.amount {
            #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as Go does")]
            Amount::Small { value, exponent } => (*value as f64, *exponent),
            // The parser rounds numbers of any size correctly.
            Amount::Big { value, exponent } => (value.to_string().parse().unwrap_or(f64::NAN), *exponent),
        };
        if exponent == 0 { value } else { value * power_of_ten(exponent) }
    }

    /// The canonical number and suffix, which may differ from the text that the quantity was read from.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        if self.format == Format::BinarySi
            && let Some(text) = self.canonical_binary()
        {
            return text;
        }
        let (value, mut exponent) = self.parts();
        let digits = value.to_string();
        let significant = digits.trim_end_matches('0');
        let trailing = i32::try_from(digits.len() - significant.len()).unwrap_or(i32::MAX);
        exponent = exponent.wrapping_add(trailing);
        // The exponent of a suffix is a multiple of three.
        let mut zeros = "";
        if exponent % 3 != 0 {
            let rest = exponent.rem_euclid(3);
            zeros = if rest == 1 { "0" } else { "00" };
            exponent = exponent.wrapping_sub(rest);
        }
        let suffix = match self.format {
            Format::DecimalExponent if exponent == 0 => String::new(),
            Format::DecimalExponent => format!("e{exponent}"),
            // As upstream: beyond exa there is no suffix, and it is left out.
            _ => DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| s).to_owned(),
        };
        format!("{significant}{zeros}{suffix}")
    }

    /// `None` for what is better written in decimals: fractions and less than 1Ki.
    fn canonical_binary(&self) -> Option<String> {
        let (value, exponent) = self.parts();
        let mut whole = if exponent >= 0 {
            shifted(value, exponent.unsigned_abs())?
        } else {
            let (whole, exact) = round_away(&value, exponent.unsigned_abs());
            exact.then_some(whole)?
        };
        let factor = BigInt::from(1024);
        if *whole.magnitude() < *factor.magnitude() {
            return None;
        }
        let mut power = 0;
        // Upstream finds no factors in the least small amount, since it cannot make it positive.
        let least = matches!(self.amount, Amount::Small { value: i64::MIN, exponent: 0 });
        while !least && (&whole % &factor).sign() == Sign::NoSign {
            whole /= &factor;
            power += 1;
        }
        let suffix = BINARY.get(power).copied().unwrap_or_default();
        Some(format!("{whole}{suffix}"))
    }
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// `value × 10^power`, if it fits.
fn scale_up(value: i64, power: u32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    10_i64.checked_pow(power).and_then(|p| value.checked_mul(p))
}

/// `value × 10^power`. Upstream multiplies by the powers of its suffixes at once and forgets to look at the overflow;
/// other powers give zero.
fn scale_up_or_wrap(value: i64, power: u32) -> i64 {
    match scale_up(value, power) {
        Some(product) => product,
        None if value != i64::MIN && matches!(power, 1 | 2 | 3 | 6 | 9) => {
            value.wrapping_mul(10_i64.pow(power))
        }
        None => 0,
    }
}

/// `10^power`, unless it has too many digits.
fn ten_to_the(power: u32) -> Option<BigInt> {
    (power <= MAX_DIGITS).then(|| BigInt::from(10).pow(power))
}

/// `value × 10^power`, unless that has too many digits. Zero stays zero.
fn shifted(value: BigInt, power: u32) -> Option<BigInt> {
    if value.sign() == Sign::NoSign || power == 0 {
        return Some(value);
    }
    ten_to_the(power).map(|factor| value * factor)
}

/// `value ÷ 10^power`, rounded away from zero, and whether nothing was lost.
fn round_away(value: &BigInt, power: u32) -> (BigInt, bool) {
    let sign = match value.sign() {
        Sign::Minus => -1,
        Sign::NoSign => return (BigInt::ZERO, true),
        Sign::Plus => 1,
    };
    // A divisor longer than the number leaves nothing of it but the rest.
    if u64::from(power) > value.bits() {
        return (sign.into(), false);
    }
    let divisor = BigInt::from(10).pow(power);
    let exact = (value % &divisor).sign() == Sign::NoSign;
    let quotient = value / divisor;
    (if exact { quotient } else { quotient + sign }, exact)
}

fn round_away_i64(value: i64, power: u32) -> (i64, bool) {
    let Some(divisor) = 10_i64.checked_pow(power) else {
        return (value.signum(), value == 0);
    };
    let (quotient, rest) = (value / divisor, value % divisor);
    (quotient + rest.signum(), rest == 0)
}

fn add_small(a: (i64, i32), b: (i64, i32)) -> Option<Amount> {
    let small = |value, exponent| Some(Amount::Small { value, exponent });
    match (a, b) {
        (a, (0, _)) => small(a.0, a.1),
        ((0, _), b) => small(b.0, b.1),
        _ => {
            let (high, low) = if a.1 >= b.1 { (a, b) } else { (b, a) };
            let high_value = scale_up(high.0, high.1.abs_diff(low.1))?;
            small(high_value.checked_add(low.0)?, low.1)
        }
    }
}

/// `None` when the product does not fit, or when upstream would rather hold it as a big decimal: it keeps those small
/// that are whole numbers.
fn mul_small(value: i64, exponent: i32, factor: i64) -> Option<Amount> {
    if value == 0 {
        return Some(Amount::Small { value, exponent });
    }
    if factor == 0 {
        return Some(Amount::Small { value: 0, exponent: 0 });
    }
    let product = value.checked_mul(factor)?;
    let fits = match exponent {
        0.. => scale_up(product, exponent.unsigned_abs()).is_some(),
        _ => round_away_i64(product, exponent.unsigned_abs()).1,
    };
    fits.then_some(Amount::Small { value: product, exponent })
}

/// The low 64 bits, as upstream takes them from a big integer.
fn low_bits(value: &BigInt) -> i64 {
    let low = value.iter_u64_digits().next().unwrap_or_default().cast_signed();
    if value.sign() == Sign::Minus { low.wrapping_neg() } else { low }
}

fn scaled_big(value: &BigInt, exponent: i32, wanted: i32) -> i64 {
    let power = exponent.abs_diff(wanted);
    if power == 0 {
        return low_bits(value);
    }
    if exponent > wanted {
        return low_bits(value).wrapping_mul(10_i64.checked_pow(power).unwrap_or(i64::MIN));
    }
    // Small amounts go through truncating division and one more for any rest, which is upwards only when positive.
    if *value < i64::MAX.into() && power < 19 {
        let (value, divisor) = (low_bits(value), 10_i64.pow(power));
        return value / divisor + i64::from(value % divisor != 0);
    }
    let (rounded, exact) = round_away(value, power);
    // Upstream rounds down, then adds one.
    if value.sign() == Sign::Minus && !exact {
        return low_bits(&rounded).wrapping_add(1);
    }
    low_bits(&rounded)
}

/// Go's `math.Pow10`: the product or quotient of two powers that doubles hold well, which differs from the nearest
/// double in a few places.
fn power_of_ten(exponent: i32) -> f64 {
    let nearest = |power: i32| format!("1e{power}").parse().unwrap_or(f64::NAN);
    match exponent {
        309.. => f64::INFINITY,
        0..=308 => nearest(exponent / 32 * 32) * nearest(exponent % 32),
        -323..=-1 => nearest(exponent / 32 * 32) / nearest(-exponent % 32),
        _ => 0.0,
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.sign();
        if sign != other.sign() || sign == 0 {
            return sign.cmp(&other.sign());
        }
        let ((a, ea), (b, eb)) = (self.parts(), other.parts());
        let (da, db) = (a.magnitude().to_string(), b.magnitude().to_string());
        // First the position of the leading digit, then the digits from there on.
        let leading = |digits: &str, e: i32| digits.len() as i64 + i64::from(e);
        let significant = |digits: &str| digits.trim_end_matches('0').to_owned();
        let magnitude =
            leading(&da, ea).cmp(&leading(&db, eb)).then_with(|| significant(&da).cmp(&significant(&db)));
        if sign < 0 { magnitude.reverse() } else { magnitude }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Equal amounts are equal, however they are written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Self, ParseError> {
        Self::parse(s)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}
