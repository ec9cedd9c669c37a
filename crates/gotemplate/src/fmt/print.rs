//! Walking a value: which form each kind takes under a verb.

use super::{FmtError, Printer};
use crate::value::{Kind, List, ListType, MAX_DEPTH, Map, Value};

impl Printer {
    pub(super) fn arg(&mut self, arg: &Value, verb: char) {
        if arg.is_nil() {
            match verb {
                'T' | 'v' => self.pad(b"<nil>"),
                _ => self.bad_verb(None, verb),
            }
            return;
        }
        match verb {
            'T' => self.string_s(arg.type_name().as_bytes()),
            // Addresses mean nothing outside a Go process: all are written as the same one.
            'p' if matches!(arg, Value::List(_) | Value::Map(_)) => {
                let address: &[u8] = if self.flags.sharp { b"c000000000" } else { b"0xc000000000" };
                self.pad(address);
            }
            'p' => self.bad_verb(Some(arg), verb),
            // Only Errorf accepts %w: it is refused before the value is formatted.
            'w' => self.bad_verb(Some(arg), verb),
            _ => self.value(arg, verb, 0),
        }
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            self.failure.get_or_insert(FmtError::TooDeep);
        }
        if self.failure.is_some() || self.method(value, verb) {
            return;
        }
        match value {
            Value::Missing | Value::Nil if self.flags.sharp_v => self.write(b"interface {}(nil)"),
            Value::Missing | Value::Nil => self.write(b"<nil>"),
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }),
                _ => self.bad_verb(Some(value), verb),
            },
            Value::Int(_, number) | Value::Named(_, number) => {
                self.integer(value, number.unsigned_abs(), *number < 0, true, verb);
            }
            Value::Uint(_, number) => self.integer(value, *number, false, false, verb),
            Value::Float(number) => self.float(value, *number, verb),
            Value::Complex(re, im) => self.complex(value, *re, *im, verb),
            Value::Str(text) => self.string(value, text, verb),
            Value::List(list) => self.list(list, verb, depth),
            Value::Map(map) => self.map(map, verb, depth),
            Value::Struct(shape) => {
                let fields = shape.fields.iter().map(|(name, value)| (*name, value));
                self.fields(&shape.type_name, fields, verb, depth);
            }
            Value::Time(time) => self.string_s(time.to_string().as_bytes()),
            Value::Version(version) => self.string_s(version.to_string().as_bytes()),
        }
    }

    /// Uses the type's `String` method where Go's fmt would.
    fn method(&mut self, value: &Value, verb: char) -> bool {
        if self.erroring || self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return false;
        }
        let text = match value {
            Value::Time(time) => time.to_string(),
            Value::Struct(shape) => match shape.instant() {
                Some(time) => time.to_string(),
                None => return false,
            },
            Value::Named(named, number) => named.text(*number),
            Value::Version(version) => version.to_string(),
            _ => return false,
        };
        self.string(value, text.as_bytes(), verb);
        true
    }

    pub(super) fn bad_verb(&mut self, value: Option<&Value>, verb: char) {
        self.erroring = true;
        self.write(b"%!");
        self.write_rune(verb);
        self.write(b"(");
        match value {
            Some(value) => {
                self.write_str(&value.type_name());
                self.write(b"=");
                self.value(value, 'v', 0);
            }
            None => self.write(b"<nil>"),
        }
        self.write(b")");
        self.erroring = false;
    }

    fn string(&mut self, value: &Value, text: &[u8], verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.string_q(text),
            'v' | 's' => self.string_s(text),
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            'q' => self.string_q(text),
            _ => self.bad_verb(Some(value), verb),
        }
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) {
        if list.ty() == ListType::Uint8
            && let Some(bytes) = list.to_bytes()
        {
            match verb {
                's' => return self.string_s(&bytes),
                'x' => return self.hex(&bytes, false),
                'X' => return self.hex(&bytes, true),
                'q' => return self.string_q(&bytes),
                _ => {}
            }
        }
        if self.flags.sharp_v {
            // fmt special-cases a bare []byte and spells it so.
            let name = if depth == 0 && list.ty() == ListType::Uint8 { "[]byte" } else { list.ty().name() };
            self.write_str(name);
            if list.is_nil() {
                self.write(b"(nil)");
                return;
            }
        }
        let (open, between, close): (&[u8], &[u8], &[u8]) =
            if self.flags.sharp_v { (b"{", b", ", b"}") } else { (b"[", b" ", b"]") };
        self.write(open);
        for (position, item) in list.items().iter().enumerate() {
            if position > 0 {
                self.write(between);
            }
            self.value(item, verb, depth + 1);
            if self.failure.is_some() {
                return;
            }
        }
        self.write(close);
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.write_str(map.ty().name());
            if map.is_nil() {
                self.write(b"(nil)");
                return;
            }
            self.write(b"{");
        } else {
            self.write(b"map[");
        }
        for (position, (key, item)) in map.entries().iter().enumerate() {
            if position > 0 {
                self.write(if self.flags.sharp_v { b", " } else { b" " });
            }
            self.value(&key.to_value(), verb, depth + 1);
            self.write(b":");
            self.value(item, verb, depth + 1);
            if self.failure.is_some() {
                return;
            }
        }
        self.write(if self.flags.sharp_v { b"}" } else { b"]" });
    }

    fn fields<'a>(
        &mut self,
        name: &str,
        fields: impl Iterator<Item = (&'a str, &'a Value)>,
        verb: char,
        depth: usize,
    ) {
        if self.flags.sharp_v {
            self.write_str(name);
        }
        self.write(b"{");
        for (position, (name, value)) in fields.enumerate() {
            if position > 0 {
                self.write(if self.flags.sharp_v { b", " } else { b" " });
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.write_str(name);
                self.write(b":");
            }
            self.value(value, verb, depth + 1);
        }
        self.write(b"}");
    }

    fn complex(&mut self, value: &Value, re: f64, im: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(Some(value), verb);
        }
        debug_assert_eq!(value.kind(), Kind::Complex128);
        let plus = self.flags.plus;
        self.write(b"(");
        self.float(&Value::Float(re), re, verb);
        self.flags.plus = true;
        self.float(&Value::Float(im), im, verb);
        self.write(b"i)");
        self.flags.plus = plus;
    }
}
