//! Exact decimals, as shopspring/decimal keeps them while sprig adds, multiplies and divides floats.

use std::cmp::Ordering;

use num_bigint::BigUint;

/// `± coefficient × 10^exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    negative: bool,
    coefficient: BigUint,
    exponent: i64,
}

/// Digits after the point that a quotient keeps.
const DIVISION_DIGITS: i64 = 16;

pub(super) fn from_float(value: f64) -> Result<Decimal, String> {
    if !value.is_finite() {
        let shown = transom_go::strconv::shortest_float(value);
        return Err(format!("Cannot create a Decimal from {shown}"));
    }
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i64 = exponent.parse().unwrap_or(0);
    Ok(Decimal {
        negative: value < 0.0,
        coefficient: BigUint::parse_bytes(&digits, 10).unwrap_or_default(),
        exponent: exponent - i64::try_from(fraction).unwrap_or(0),
    })
}

fn power_of_ten(exponent: i64) -> BigUint {
    let mut digits = vec![b'0'; usize::try_from(exponent).unwrap_or(0) + 1];
    digits[0] = b'1';
    BigUint::parse_bytes(&digits, 10).unwrap_or_default()
}

impl Decimal {
    /// Machine words in the coefficient: what arithmetic on it costs.
    pub(super) fn size(&self) -> usize {
        usize::try_from(self.coefficient.bits() / 64).unwrap_or(usize::MAX)
    }

    fn is_zero(&self) -> bool {
        self.coefficient.bits() == 0
    }

    fn scaled(&self, exponent: i64) -> BigUint {
        &self.coefficient * power_of_ten(self.exponent - exponent)
    }

    fn negated(&self) -> Decimal {
        Decimal { negative: !self.negative, ..self.clone() }
    }

    pub(super) fn plus(&self, other: &Decimal) -> Result<Decimal, String> {
        let exponent = self.exponent.min(other.exponent);
        let (a, b) = (self.scaled(exponent), other.scaled(exponent));
        let (negative, coefficient) = if self.negative == other.negative {
            (self.negative, a + b)
        } else {
            match a.cmp(&b) {
                Ordering::Less => (other.negative, b - a),
                _ => (self.negative, a - b),
            }
        };
        Ok(Decimal { negative, coefficient, exponent })
    }

    pub(super) fn minus(&self, other: &Decimal) -> Result<Decimal, String> {
        self.plus(&other.negated())
    }

    pub(super) fn times(&self, other: &Decimal) -> Result<Decimal, String> {
        Ok(Decimal {
            negative: self.negative != other.negative,
            coefficient: &self.coefficient * &other.coefficient,
            exponent: self.exponent + other.exponent,
        })
    }

    /// To 16 digits after the point, halves away from zero.
    pub(super) fn divided_by(&self, other: &Decimal) -> Result<Decimal, String> {
        if other.is_zero() {
            return Err("decimal division by 0".to_owned());
        }
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let (numerator, denominator) = if shift >= 0 {
            (&self.coefficient * power_of_ten(shift), other.coefficient.clone())
        } else {
            (self.coefficient.clone(), &other.coefficient * power_of_ten(-shift))
        };
        let doubled = &numerator + &numerator + &denominator;
        let coefficient = doubled / (&denominator + &denominator);
        Ok(Decimal { negative: self.negative != other.negative, coefficient, exponent: -DIVISION_DIGITS })
    }

    pub(super) fn to_float(&self) -> f64 {
        let magnitude: f64 = format!("{}e{}", self.coefficient, self.exponent).parse().unwrap_or(0.0);
        if self.negative && magnitude != 0.0 { -magnitude } else { magnitude }
    }
}
