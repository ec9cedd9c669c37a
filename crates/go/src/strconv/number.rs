//! Reads numbers and truth values from text as package strconv does, with its errors.

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// It is not written as one.
    Syntax,
    /// It does not fit into 64 bits.
    Range,
}

/// `strconv.ParseUint` for 64 bits. Base 0 reads the base from the prefix and allows underscores between digits.
pub fn parse_uint(text: &str, base: u32) -> Result<u64, NumberError> {
    if text.is_empty() {
        return Err(NumberError::Syntax);
    }
    let (radix, digits) = if base == 0 { split_prefix(text) } else { (base, text) };
    if digits.is_empty() {
        return Err(NumberError::Syntax);
    }
    let mut value: u64 = 0;
    let mut overflow = false;
    let mut underscores = false;
    for byte in digits.bytes() {
        if byte == b'_' && base == 0 {
            underscores = true;
            continue;
        }
        let digit = char::from(byte).to_digit(radix).ok_or(NumberError::Syntax)?;
        match value.checked_mul(u64::from(radix)).and_then(|value| value.checked_add(u64::from(digit))) {
            Some(next) => value = next,
            None => overflow = true,
        }
    }
    if underscores && !underscores_separate(text) {
        return Err(NumberError::Syntax);
    }
    if overflow { Err(NumberError::Range) } else { Ok(value) }
}

fn split_prefix(text: &str) -> (u32, &str) {
    let bytes = text.as_bytes();
    if bytes[0] != b'0' {
        return (10, text);
    }
    match bytes.get(1).map(u8::to_ascii_lowercase) {
        Some(b'b') if text.len() >= 3 => (2, &text[2..]),
        Some(b'o') if text.len() >= 3 => (8, &text[2..]),
        Some(b'x') if text.len() >= 3 => (16, &text[2..]),
        _ if text.len() == 1 => (10, text),
        _ => (8, &text[1..]),
    }
}

/// `strconv.ParseInt` for 64 bits, with a sign before what [`parse_uint`] reads.
pub fn parse_int(text: &str, base: u32) -> Result<i64, NumberError> {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = parse_uint(magnitude, base)?;
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.ok_or(NumberError::Range)
}

/// Underscores may only separate digits; a base prefix counts as a digit.
fn underscores_separate(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let prefixed = hex || lower.starts_with("0b") || lower.starts_with("0o");
    let mut saw = if prefixed { '0' } else { '^' };
    for byte in lower.bytes().skip(if prefixed { 2 } else { 0 }) {
        if byte.is_ascii_digit() || hex && (b'a'..=b'f').contains(&byte) {
            saw = '0';
        } else if byte == b'_' {
            if saw != '0' {
                return false;
            }
            saw = '_';
        } else {
            if saw == '_' {
                return false;
            }
            saw = '!';
        }
    }
    saw != '_'
}

/// `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `strconv.ParseFloat` for 64 bits: decimal and hexadecimal, infinities, and NaN without a sign.
pub fn parse_float(text: &str) -> Result<f64, NumberError> {
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    let lower = body.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" if body.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    if lower.contains('_') && !underscores_separate(text) {
        return Err(NumberError::Syntax);
    }
    let digits: String = lower.chars().filter(|rune| *rune != '_').collect();
    let value = match digits.strip_prefix("0x") {
        Some(hex) => parse_hex_float(hex)?,
        None => parse_decimal(&digits)?,
    };
    if value.is_infinite() { Err(NumberError::Range) } else { Ok(sign * value) }
}

fn parse_decimal(digits: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = match digits.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_ok = exponent.is_none_or(|exponent| {
        let bare = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !bare.is_empty() && plain(bare)
    });
    if !plain(whole) || !plain(fraction) || whole.len() + fraction.len() == 0 || !exponent_ok {
        return Err(NumberError::Syntax);
    }
    digits.parse::<f64>().map_err(|_| NumberError::Syntax)
}

fn parse_hex_float(text: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = text.split_once('p').ok_or(NumberError::Syntax)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 {
        return Err(NumberError::Syntax);
    }
    let bare = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if bare.is_empty() || !bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::Syntax);
    }
    let mut exponent: i64 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
    let mut value: u64 = 0;
    for (position, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = digit.to_digit(16).ok_or(NumberError::Syntax)?;
        let in_fraction = position >= whole.len();
        if value >> 59 == 0 {
            value = value << 4 | u64::from(digit);
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            // Digits beyond 60 bits only decide rounding: fold them into a sticky bit.
            value |= u64::from(digit != 0);
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    let clamped = exponent.clamp(-3000, 3000);
    let mut result = value as f64;
    let mut remaining = clamped;
    while remaining != 0 {
        let step = remaining.clamp(-500, 500);
        result *= 2f64.powi(i32::try_from(step).unwrap_or(0));
        remaining -= step;
    }
    Ok(result)
}
