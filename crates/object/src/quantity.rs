//! `resource.Quantity`: `100m`, `1.5Gi`, `2e3`.
//!
//! A quantity is an exact decimal with a preferred way of writing it. Upstream keeps small amounts as an `int64` and
//! a scale and the rest as a big decimal, and lets the difference show (`as_i64` knows only the former), so both
//! forms exist here. The big form holds 38 digits; where upstream grows without bound, we report an overflow.

mod parse;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

pub const NANO: i32 = -9;
pub const MILLI: i32 = -3;

/// `value × 10^exponent`.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Small { value: i64, exponent: i32 },
    Big { value: i128, exponent: i32 },
}

#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text it was read from, where that is as good as the canonical one.
    text: Option<Box<str>>,
}

impl Quantity {
    pub fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::Small { value, exponent: 0 }, format, text: None }
    }

    /// `value × 10^exponent`, written with decimal suffixes.
    pub fn scaled(value: i64, exponent: i32) -> Self {
        Self { amount: Amount::Small { value, exponent }, format: Format::DecimalSi, text: None }
    }

    pub fn decimal(value: i128, exponent: i32, format: Format) -> Self {
        Self { amount: Amount::Big { value, exponent }, format, text: None }
    }

    pub fn parse(s: &str) -> Result<Self, ParseError> {
        parse::parse(s)
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// The same amount written in another way.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, text: None, ..self }
    }

    fn parts(&self) -> (i128, i32) {
        match self.amount {
            Amount::Small { value, exponent } => (value.into(), exponent),
            Amount::Big { value, exponent } => (value, exponent),
        }
    }

    pub fn sign(&self) -> i8 {
        match self.parts().0.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.parts().0 == 0
    }

    /// The amount, if upstream holds it as a whole number: `1.0` and `1.5Gi` are none, for it.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, exponent } if exponent >= 0 => scale_up(value, exponent.unsigned_abs()),
            _ => None,
        }
    }

    /// The nearest whole number away from zero; 0 when it is out of range.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// How many `10^exponent` fit in, rounded up, with upstream's way of overflowing.
    pub fn scaled_value(&self, exponent: i32) -> i64 {
        match self.amount {
            Amount::Small { value, exponent: e } if e < exponent => {
                i64::try_from(round_away(value.into(), e.abs_diff(exponent)).0).unwrap_or_default()
            }
            Amount::Small { value, exponent: e } => scale_up(value, e.abs_diff(exponent)).unwrap_or_default(),
            Amount::Big { value, exponent: e } => scaled_big(value, e, exponent),
        }
    }

    /// Rounds away from zero to a multiple of `10^exponent`; says whether that changed nothing.
    pub fn round_up(&mut self, exponent: i32) -> bool {
        let (value, e) = self.parts();
        if e >= exponent {
            return true;
        }
        self.text = None;
        let (rounded, exact) = round_away(value, e.abs_diff(exponent));
        self.amount = match self.amount {
            Amount::Small { .. } => {
                Amount::Small { value: i64::try_from(rounded).unwrap_or_default(), exponent }
            }
            Amount::Big { .. } => Amount::Big { value: rounded, exponent },
        };
        exact
    }

    /// `None` when the sum needs more than 38 digits. Zero takes over the format of what is added.
    #[must_use]
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        let amount = match (self.amount, other.amount) {
            (Amount::Small { value: a, exponent: ea }, Amount::Small { value: b, exponent: eb }) => {
                add_small((a, ea), (b, eb))
            }
            _ => None,
        };
        let amount = match amount {
            Some(small) => small,
            None => add_big(self.parts(), other.parts())?,
        };
        Some(Self { amount, format, text: None })
    }

    #[must_use]
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        self.checked_add(&other.checked_neg()?)
    }

    #[must_use]
    pub fn checked_neg(&self) -> Option<Self> {
        let (value, exponent) = self.parts();
        let negated = value.checked_neg()?;
        let amount = match (self.amount, i64::try_from(negated)) {
            (Amount::Small { .. }, Ok(value)) => Amount::Small { value, exponent },
            _ => Amount::Big { value: negated, exponent },
        };
        Some(Self { amount, format: self.format, text: None })
    }

    #[must_use]
    pub fn checked_mul(&self, factor: i64) -> Option<Self> {
        let (value, exponent) = self.parts();
        let product = value.checked_mul(factor.into())?;
        let small = match self.amount {
            Amount::Small { .. } => i64::try_from(product)
                .ok()
                .filter(|p| exponent <= 0 || scale_up(*p, exponent.unsigned_abs()).is_some()),
            Amount::Big { .. } => None,
        };
        let amount = match small {
            Some(value) => Amount::Small { value, exponent },
            None => Amount::Big { value: product, exponent },
        };
        Some(Self { amount, format: self.format, text: None })
    }

    pub fn as_f64(&self) -> f64 {
        let (value, exponent) = self.parts();
        // The parser rounds correctly, whatever the size of the parts.
        format!("{value}e{exponent}").parse().unwrap_or(f64::NAN)
    }

    /// The canonical number and suffix, whatever text the quantity was read from.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        if self.format == Format::BinarySi
            && let Some(text) = self.canonical_binary()
        {
            return text;
        }
        let (mut value, exponent) = self.parts();
        let mut exponent = i64::from(exponent);
        while value % 10 == 0 {
            value /= 10;
            exponent += 1;
        }
        // The exponent of a suffix is a multiple of three.
        let zeros = exponent.rem_euclid(3);
        let zeros = if zeros == 0 { "" } else { &"00"[..usize::from(zeros == 2) + 1] };
        exponent -= exponent.rem_euclid(3);
        let suffix = match self.format {
            Format::DecimalExponent if exponent == 0 => String::new(),
            Format::DecimalExponent => format!("e{exponent}"),
            // As upstream: beyond exa there is no suffix, and it is left out.
            _ => DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| s).to_owned(),
        };
        format!("{value}{zeros}{suffix}")
    }

    /// `None` for what is better written in decimals: fractions and less than 1Ki.
    fn canonical_binary(&self) -> Option<String> {
        let (value, exponent) = self.parts();
        let mut whole = if exponent >= 0 {
            value.checked_mul(10_i128.checked_pow(exponent.unsigned_abs())?)?
        } else {
            let (whole, exact) = round_away(value, exponent.unsigned_abs());
            exact.then_some(whole)?
        };
        if whole.abs() < 1024 {
            return None;
        }
        let mut power = 0;
        while whole % 1024 == 0 {
            whole /= 1024;
            power += 1;
        }
        let suffix = BINARY.get(power).copied().unwrap_or_default();
        Some(format!("{whole}{suffix}"))
    }
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// `value × 10^power`, if it fits.
fn scale_up(value: i64, power: u32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    10_i64.checked_pow(power).and_then(|p| value.checked_mul(p))
}

/// `value ÷ 10^power`, rounded away from zero, and whether nothing was lost.
fn round_away(value: i128, power: u32) -> (i128, bool) {
    let Some(divisor) = 10_i128.checked_pow(power) else {
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

fn add_big(a: (i128, i32), b: (i128, i32)) -> Option<Amount> {
    let (high, low) = if a.1 >= b.1 { (a, b) } else { (b, a) };
    let high_value =
        if high.0 == 0 { 0 } else { high.0.checked_mul(10_i128.checked_pow(high.1.abs_diff(low.1))?)? };
    Some(Amount::Big { value: high_value.checked_add(low.0)?, exponent: low.1 })
}

#[expect(clippy::cast_possible_truncation, reason = "upstream takes the low 64 bits of a big integer")]
fn scaled_big(value: i128, exponent: i32, wanted: i32) -> i64 {
    let power = exponent.abs_diff(wanted);
    if exponent >= wanted {
        return (value as i64).wrapping_mul(10_i64.checked_pow(power).unwrap_or(i64::MIN));
    }
    // Small amounts go through truncating division and one more for any rest, which is upwards only when positive.
    if value < i64::MAX.into() && power < 19 {
        let (value, divisor) = (value as i64, 10_i64.pow(power));
        return value / divisor + i64::from(value % divisor != 0);
    }
    match 10_i128.checked_pow(power) {
        Some(divisor) => value.div_euclid(divisor) as i64 + i64::from(value.rem_euclid(divisor) != 0),
        None => i64::from(value > 0),
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((a, ea), (b, eb)) = (self.parts(), other.parts());
        if a.signum() != b.signum() || a == 0 {
            return a.signum().cmp(&b.signum());
        }
        let (da, db) = (a.unsigned_abs().to_string(), b.unsigned_abs().to_string());
        // First the position of the leading digit, then the digits from there on.
        let leading = |digits: &str, e: i32| digits.len() as i64 + i64::from(e);
        let significant = |digits: &str| digits.trim_end_matches('0').to_owned();
        let magnitude =
            leading(&da, ea).cmp(&leading(&db, eb)).then_with(|| significant(&da).cmp(&significant(&db)));
        if a < 0 { magnitude.reverse() } else { magnitude }
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
