//! Reading quantities: number, suffix, and the choice between the two forms of an amount.

use super::{Amount, BINARY, DECIMAL, Format, MAX_DIGITS, NANO, ParseError, Quantity, round_away, shifted};
use num_bigint::{BigInt, Sign};

/// `-1.025Ti` taken apart.
struct Pieces<'a> {
    negative: bool,
    /// Digits before the point without leading zeros, but never empty.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    /// Some digit stands in the number.
    has_digits: bool,
    suffix: &'a str,
}

fn split_digits(s: &str) -> (&str, &str) {
    s.split_at(s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len()))
}

fn split(s: &str) -> Result<Pieces<'_>, ParseError> {
    let unsigned = s.strip_prefix(['+', '-']).unwrap_or(s);
    let (digits, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if exponent.bytes().any(|b| !b.is_ascii_digit()) {
        return Err(ParseError::Format);
    }
    let whole = digits.trim_start_matches('0');
    Ok(Pieces {
        negative: s.starts_with('-'),
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        has_digits: !digits.is_empty() || !fraction.is_empty(),
        suffix,
    })
}

/// Base (2 or 10), exponent and format of a suffix.
fn interpret(suffix: &str) -> Option<(u8, i32, Format)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Some((10, *exponent, Format::DecimalSi));
    }
    if let Some(power) = BINARY.iter().position(|s| *s == suffix) {
        return Some((2, i32::try_from(power).ok()? * 10, Format::BinarySi));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the low 32 bits")]
    Some((10, exponent as i32, Format::DecimalExponent))
}

pub(super) fn parse(s: &str) -> Result<Quantity, ParseError> {
    if s.is_empty() {
        return Err(ParseError::Format);
    }
    let pieces = split(s)?;
    let (base, exponent, format) = interpret(pieces.suffix).ok_or(ParseError::Suffix)?;
    if let Some(small) = parse_small(s, &pieces, exponent, format) {
        return Ok(small);
    }
    parse_big(&pieces, base, exponent, format)
}

/// Numbers that certainly fit an `int64`, which are nearly all.
fn parse_small(text: &str, pieces: &Pieces<'_>, exponent: i32, format: Format) -> Option<Quantity> {
    let digits = pieces.whole.len() + pieces.fraction.len();
    let (multiplier, scale) = if format == Format::BinarySi {
        // 2^10 is a little more than 10^3, so an exponent of ten costs at most four digits.
        let room = 14_usize.checked_sub(pieces.whole.len())?;
        if !pieces.fraction.is_empty() || usize::try_from(exponent * 3 / 10).ok()? > room {
            return None;
        }
        (1_i64 << exponent, 0)
    } else {
        if digits > 18 {
            return None;
        }
        (1, exponent.wrapping_sub(i32::try_from(pieces.fraction.len()).ok()?))
    };
    // The exponent of the canonical form is a multiple of three, so it may have two digits more. A number with more
    // than 18 digits is read as a large number, which has its limit.
    let shift = usize::try_from(scale.rem_euclid(3)).ok()?;
    let too_large = digits + shift > 18 && scale.unsigned_abs() > MAX_DIGITS;
    if scale < NANO || too_large {
        return None;
    }
    let number = format!("{}{}", pieces.whole, pieces.fraction);
    let unsigned: i64 = number.parse().ok()?;
    let value = unsigned.checked_mul(multiplier)?;
    let canonical_but_for_zeros = match format {
        Format::BinarySi => exponent % 10 == 0 && unsigned & 7 != 0,
        _ => scale % 3 == 0 && !number.ends_with("000") && !number.starts_with('0'),
    };
    Some(Quantity {
        amount: Amount::Small { value: if pieces.negative { -value } else { value }, exponent: scale },
        format,
        text: (canonical_but_for_zeros || text == "0").then(|| text.into()),
    })
}

fn parse_big(pieces: &Pieces<'_>, base: u8, exponent: i32, format: Format) -> Result<Quantity, ParseError> {
    if !pieces.has_digits || pieces.whole.len() + pieces.fraction.len() > MAX_DIGITS as usize {
        return Err(ParseError::Numeric);
    }
    let number = format!("{}{}", pieces.whole, pieces.fraction);
    let mut value: BigInt = number.parse().map_err(|_| ParseError::Numeric)?;
    let mut scale = i32::try_from(pieces.fraction.len()).map_err(|_| ParseError::Numeric)?.wrapping_neg();
    if base == 10 {
        scale = scale.wrapping_add(exponent);
    } else {
        value <<= exponent;
    }
    // Upstream writes all but zero down to the nano, which shows in later arithmetic.
    if value.sign() != Sign::NoSign {
        let power = scale.abs_diff(NANO);
        value = if scale < NANO {
            round_away(&value, power).0
        } else {
            shifted(value, power).ok_or(ParseError::Numeric)?
        };
        scale = NANO;
    }
    let mut quantity = Quantity::decimal(value, scale, format);
    if format == Format::BinarySi {
        if quantity > Quantity::new(i64::MAX, format) {
            quantity.amount = Amount::Big { value: i64::MAX.into(), exponent: 0 };
        }
        if !quantity.is_zero() && quantity < Quantity::new(1, format) {
            quantity.format = Format::DecimalSi;
        }
    }
    // The canonical form may have two digits more; what it could not be read back from is not read.
    let most = MAX_DIGITS as usize;
    if number.len() + 2 > most && quantity.canonical().len() > most {
        return Err(ParseError::Numeric);
    }
    Ok(if pieces.negative { quantity.negated() } else { quantity })
}
