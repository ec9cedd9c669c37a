//! `resource.Quantity`: decimal numbers with SI, binary or exponent suffixes, and their canonical form.

/// Why a text is no quantity, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// The text as Go writes it after reading it. Texts that are nearly canonical stay as they are.
pub fn normalize(text: &str) -> Result<String, QuantityError> {
    let quantity = Quantity::parse(text)?;
    Ok(if quantity.keep { text.trim().to_owned() } else { quantity.canonical() })
}

/// The quantity rounded up to a milli, if it is finer than that.
pub fn round_up_to_milli(text: &str) -> Option<String> {
    let mut quantity = Quantity::parse(text).ok().filter(|q| q.amount.scale < -3)?;
    quantity.amount.round_up(-3);
    Some(quantity.canonical())
}

struct Quantity {
    negative: bool,
    amount: Amount,
    format: Format,
    /// The text counts as canonical.
    keep: bool,
}

impl Quantity {
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = split(text)?;
        let (format, exponent) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
        let whole = if parts.whole.is_empty() { "0" } else { parts.whole };
        let (amount, keep) = small(whole, parts.fraction, format, exponent);
        let (amount, format) = match amount {
            Some(amount) => (amount, format),
            None => large(whole, parts.fraction, format, exponent),
        };
        Ok(Self { negative: parts.negative, amount, format, keep })
    }

    fn canonical(&self) -> String {
        self.amount.canonical(self.negative, self.format)
    }
}

struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let stripped = unsigned.trim_start_matches('0');
    let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let (whole, mut rest) = stripped.split_at(digits(stripped));
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = after.split_at(digits(after));
    }
    let letters = rest.find(|c| !"eEinumkKMGTP".contains(c)).unwrap_or(rest.len());
    let tail = &rest[letters..];
    let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    if tail.bytes().any(|b| !b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix: rest })
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

fn suffix(s: &str) -> Option<(Format, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == s) {
        return Some((Format::Decimal, *exponent));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == s) {
        return Some((Format::Binary, *exponent));
    }
    let exponent = s.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some((Format::Exponent, exponent))
}

/// The value when it fits Go's fast path, and whether the text then counts as canonical already.
fn small(whole: &str, fraction: &str, format: Format, exponent: i32) -> (Option<Amount>, bool) {
    let len = |s: &str| i64::try_from(s.len()).unwrap_or(i64::MAX / 4);
    let (precision, mantissa, scale) = match format {
        Format::Binary if fraction.is_empty() => {
            (15 - len(whole) - i64::from(exponent) * 3 / 10 - 1, 1i64 << exponent, 0)
        }
        Format::Binary => return (None, false),
        _ => (18 - len(whole) - len(fraction), 1, i64::from(exponent)),
    };
    let scale = scale - len(fraction);
    if precision < 0 || scale < -9 {
        return (None, false);
    }
    let shifted = format!("{whole}{fraction}");
    let Some(value) = shifted.parse::<i64>().ok() else { return (None, false) };
    let Some(result) = value.checked_mul(mantissa) else { return (None, false) };
    let keep = match format {
        Format::Binary => value & 7 != 0,
        _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
    };
    let scale = i32::try_from(scale).unwrap_or(i32::MAX);
    (Some(Amount { digits: result.to_string().into_bytes(), scale }.trimmed()), keep)
}

/// The value at any size: rounded up to a nano, capped for binary suffixes.
fn large(whole: &str, fraction: &str, format: Format, exponent: i32) -> (Amount, Format) {
    let fraction_len = i32::try_from(fraction.len()).unwrap_or(i32::MAX / 4);
    let mut amount = Amount { digits: [whole, fraction].concat().into_bytes(), scale: -fraction_len };
    match format {
        Format::Binary => (0..exponent / 10).for_each(|_| amount.times(1024)),
        _ => amount.scale = amount.scale.saturating_add(exponent),
    }
    amount = amount.trimmed();
    amount.round_up(-9);
    if format != Format::Binary {
        return (amount, format);
    }
    let max = Amount { digits: i64::MAX.to_string().into_bytes(), scale: 0 };
    if amount.exceeds(&max) {
        return (max, format);
    }
    let below_one = amount.magnitude() <= 0 && !amount.is_zero();
    (amount, if below_one { Format::Decimal } else { format })
}

/// `digits × 10^scale`, digits in ASCII without leading or trailing zeros; zero has no digits.
struct Amount {
    digits: Vec<u8>,
    scale: i32,
}

impl Amount {
    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn trimmed(mut self) -> Self {
        let leading = self.digits.iter().take_while(|d| **d == b'0').count();
        self.digits.drain(..leading);
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
            self.scale = self.scale.saturating_add(1);
        }
        if self.digits.is_empty() {
            self.scale = 0;
        }
        self
    }

    /// The number of digits before the decimal point.
    fn magnitude(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX / 4) + i64::from(self.scale)
    }

    fn times(&mut self, factor: u32) {
        let mut carry = 0;
        for d in self.digits.iter_mut().rev() {
            let product = u32::from(*d - b'0') * factor + carry;
            *d = b'0' + u8::try_from(product % 10).unwrap_or_default();
            carry = product / 10;
        }
        self.digits.splice(0..0, carry.to_string().into_bytes());
    }

    fn round_up(&mut self, scale: i32) {
        if self.scale >= scale || self.is_zero() {
            return;
        }
        let drop = usize::try_from(i64::from(scale) - i64::from(self.scale)).unwrap_or_default();
        let keep = self.digits.len().saturating_sub(drop);
        self.digits.truncate(keep);
        // What was cut is not zero, since trailing zeros are gone: one more in the last place.
        let mut at = keep;
        while at > 0 && self.digits[at - 1] == b'9' {
            self.digits[at - 1] = b'0';
            at -= 1;
        }
        match at {
            0 => self.digits.insert(0, b'1'),
            _ => self.digits[at - 1] += 1,
        }
        self.scale = scale;
        let this = std::mem::replace(self, Amount { digits: Vec::new(), scale: 0 });
        *self = this.trimmed();
    }

    fn exceeds(&self, other: &Amount) -> bool {
        let order = self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits));
        order.is_gt()
    }

    fn canonical(&self, negative: bool, format: Format) -> String {
        if self.is_zero() {
            return "0".into();
        }
        let sign = if negative { "-" } else { "" };
        if format == Format::Binary
            && let Some(text) = self.binary()
        {
            return format!("{sign}{text}");
        }
        let exponent = self.scale.div_euclid(3) * 3;
        let zeros = usize::try_from(self.scale - exponent).unwrap_or_default();
        let digits = String::from_utf8_lossy(&self.digits).into_owned() + &"0".repeat(zeros);
        let suffix = match format {
            Format::Exponent if exponent == 0 => String::new(),
            Format::Exponent => format!("e{exponent}"),
            // Beyond exa there is no suffix and upstream prints none.
            _ => DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| s).to_owned(),
        };
        format!("{sign}{digits}{suffix}")
    }

    /// With a binary suffix, if it is an integer of at least 1024. Binary amounts never exceed an i64.
    fn binary(&self) -> Option<String> {
        if self.scale < 0 || self.magnitude() > 19 {
            return None;
        }
        let zeros = usize::try_from(self.scale).ok()?;
        let digits = String::from_utf8_lossy(&self.digits).into_owned() + &"0".repeat(zeros);
        let mut value: i64 = digits.parse().ok().filter(|v| *v >= 1024)?;
        let mut steps = 0;
        while value % 1024 == 0 {
            value /= 1024;
            steps += 1;
        }
        let suffix = BINARY.iter().find(|(_, e)| *e == steps * 10).map_or("", |(s, _)| s);
        Some(format!("{value}{suffix}"))
    }
}
