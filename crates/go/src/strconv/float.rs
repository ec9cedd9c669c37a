//! Floats as text, from correctly rounded decimal digits.

/// Decimal digits `d₁d₂…` with the value `0.d₁d₂… × 10^point`.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i32,
}

/// `strconv.FormatFloat` in the forms `e E f g G b x X`; a precision of -1 means the fewest digits that read back.
pub fn format_float(value: f64, form: u8, precision: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match form {
        b'b' => binary(value),
        b'x' | b'X' => hexadecimal(value, form, precision),
        b'e' | b'E' => {
            let decimal = digits(value, precision.checked_add(1).filter(|_| precision >= 0));
            let precision =
                if precision < 0 { decimal.digits.len().saturating_sub(1) } else { precision as usize };
            exponent_form(&decimal, precision, form)
        }
        b'f' => fixed_form(value, precision),
        _ => {
            let wanted = (precision >= 0).then(|| precision.max(1));
            general_form(digits(value, wanted), form, precision)
        }
    }
}

/// What `%v` and `%g` print: the fewest digits that read back, with an exponent below 1e-4 and from 1e6 on.
pub fn shortest_float(value: f64) -> String {
    format_float(value, b'g', -1)
}

/// The same for a `float32`, whose fewest digits are fewer.
pub fn shortest_float32(value: f32) -> String {
    if !value.is_finite() {
        return shortest_float(f64::from(value));
    }
    general_form(from_scientific(&format!("{:e}", value.abs()), value.is_sign_negative()), b'g', -1)
}

/// No number has more digits than this, before or after its point; all beyond are zeros. Rust formats no more than 65,535.
const MAX_DIGITS: usize = 1_100;

fn digits(value: f64, count: Option<i32>) -> Decimal {
    let text = match count {
        Some(count) => {
            format!("{:.*e}", usize::try_from(count - 1).unwrap_or(0).min(MAX_DIGITS), value.abs())
        }
        None => shortest_scientific(value.abs()),
    };
    let mut decimal = from_scientific(&text, value.is_sign_negative());
    if value == 0.0 && count.is_none() {
        decimal.digits.clear();
    }
    decimal
}

/// The fewest digits that mean a positive number, as `d.ddde±n`. Where two texts are equally near, Rust writes the greater
/// and Go the one whose last digit is even.
fn shortest_scientific(value: f64) -> String {
    let greater = format!("{value:e}");
    let mantissa = greater.split_once('e').map_or("", |(mantissa, _)| mantissa);
    let decimals = mantissa.len().saturating_sub(2);
    // Numbers that are as far apart as the last digit counts have at least this many.
    if decimals < 14 {
        return greater;
    }
    let even = format!("{value:.decimals$e}");
    if even.parse() == Ok(value) { even } else { greater }
}

/// Digits that Rust wrote as `d.ddde±n`, without their sign.
fn from_scientific(text: &str, negative: bool) -> Decimal {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let zero = digits.iter().all(|digit| *digit == b'0');
    let exponent: i32 = exponent.parse().unwrap_or(0);
    Decimal { negative, digits, point: if zero { 0 } else { exponent + 1 } }
}

fn exponent_form(decimal: &Decimal, precision: usize, form: u8) -> String {
    let mut out = String::new();
    if decimal.negative {
        out.push('-');
    }
    let digit = |index: usize| char::from(decimal.digits.get(index).copied().unwrap_or(b'0'));
    out.push(digit(0));
    if precision > 0 {
        out.push('.');
        (1..=precision).for_each(|index| out.push(digit(index)));
    }
    let zero = decimal.digits.iter().all(|digit| *digit == b'0');
    let exponent = if zero { 0 } else { decimal.point - 1 };
    out.push(char::from(form));
    out.push(if exponent < 0 { '-' } else { '+' });
    out.push_str(&format!("{:02}", exponent.abs()));
    out
}

fn fixed_form(value: f64, precision: i32) -> String {
    match usize::try_from(precision) {
        Ok(precision) => {
            let written = precision.min(MAX_DIGITS);
            let mut text = format!("{value:.written$}");
            text.extend(std::iter::repeat_n('0', precision - written));
            text
        }
        Err(_) => format!("{value}"),
    }
}

fn general_form(mut decimal: Decimal, form: u8, precision: i32) -> String {
    let shortest = precision < 0;
    while decimal.digits.last() == Some(&b'0') {
        decimal.digits.pop();
    }
    let count = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX);
    let mut limit = precision.max(1);
    if limit > count && count >= decimal.point {
        limit = count;
    }
    if shortest {
        limit = 6;
    }
    let exponent = decimal.point - 1;
    if exponent < -4 || exponent >= limit {
        let precision = decimal.digits.len().saturating_sub(1);
        return exponent_form(&decimal, precision, form + b'e' - b'g');
    }
    plain_form(&decimal)
}

fn plain_form(decimal: &Decimal) -> String {
    let mut out = String::new();
    if decimal.negative {
        out.push('-');
    }
    let digit = |index: i32| {
        let found = usize::try_from(index).ok().and_then(|index| decimal.digits.get(index));
        char::from(found.copied().unwrap_or(b'0'))
    };
    if decimal.point > 0 {
        (0..decimal.point).for_each(|index| out.push(digit(index)));
    } else {
        out.push('0');
    }
    let count = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX);
    if count > decimal.point {
        out.push('.');
        (decimal.point..count).for_each(|index| out.push(digit(index)));
    }
    out
}

fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    match i32::try_from(bits >> 52 & 0x7FF).unwrap_or(0) {
        0 => (mantissa, -1074),
        exponent => (mantissa | 1 << 52, exponent - 1075),
    }
}

fn binary(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, form: u8, precision: i32) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One leading digit: the top bit moves to position 60, so 15 hexadecimal digits follow it.
        let shift = mantissa.leading_zeros() as i32 - 3;
        mantissa <<= shift;
        exponent = exponent - shift + 60;
    }
    if let Ok(precision) = u32::try_from(precision)
        && precision < 15
    {
        let drop = 60 - precision * 4;
        let rest = mantissa & ((1 << drop) - 1);
        mantissa >>= drop;
        if rest | (mantissa & 1) > 1 << (drop - 1) {
            mantissa += 1;
        }
        mantissa <<= drop;
        if mantissa & 1 << 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match usize::try_from(precision) {
        // Not by a width: formatting takes widths up to 65,535 only.
        Ok(precision) => digits.chars().chain(std::iter::repeat('0')).take(precision).collect(),
        Err(_) => digits.trim_end_matches('0').to_owned(),
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    let text =
        format!("{sign}0x{}{point}{fraction}p{exponent_sign}{:02}", mantissa >> 60 & 1, exponent.abs());
    if form == b'X' { text.to_uppercase() } else { text }
}

#[cfg(test)]
mod tests {
    use super::shortest_float;

    #[test]
    fn of_two_texts_that_are_equally_near_the_even_one_is_taken() {
        for (value, text) in [
            (1_391_597_552_730_735.0 + 0.25, "1.3915975527307352e+15"),
            (1_391_597_552_730_735.0 + 0.75, "1.3915975527307358e+15"),
            (2.5, "2.5"),
            (5e-324, "5e-324"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
        ] {
            assert_eq!(shortest_float(value), text);
        }
    }
}
