//! Walking a value: which form each kind takes under a verb.

use super::{Element, FmtError, MAX_DEPTH, Operand, Printer, View};

impl Printer {
    pub(super) fn arg<V: Operand>(&mut self, arg: &V, verb: char) {
        let view = arg.view();
        if view == View::Nil {
            match verb {
                'T' | 'v' => self.pad(b"<nil>"),
                _ => self.bad_verb(None::<&V>, verb),
            }
            return;
        }
        match verb {
            'T' => self.string_s(arg.type_name().as_bytes()),
            // Addresses mean nothing outside a Go process: all are written as the same one.
            'p' if matches!(view, View::List { .. } | View::Map { .. }) => {
                let address: &[u8] = if self.flags.sharp { b"c000000000" } else { b"0xc000000000" };
                self.pad(address);
            }
            'p' => self.bad_verb(Some(arg), verb),
            // Only Errorf accepts %w: it is refused before the value is formatted.
            'w' => self.bad_verb(Some(arg), verb),
            _ => self.value(arg, verb, 0),
        }
    }

    fn value<V: Operand>(&mut self, value: &V, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            self.failure.get_or_insert(FmtError::TooDeep);
        }
        if self.failure.is_some() || self.method(value, verb) {
            return;
        }
        let has_form = match value.view() {
            View::Nil => {
                self.write(if self.flags.sharp_v { b"interface {}(nil)" } else { b"<nil>" });
                true
            }
            View::Bool(flag) => {
                let has_form = matches!(verb, 't' | 'v');
                if has_form {
                    self.pad(if flag { b"true" } else { b"false" });
                }
                has_form
            }
            View::Int(number) => self.integer(number.unsigned_abs(), number < 0, true, verb),
            View::Uint(number) => self.integer(number, false, false, verb),
            View::Float(number) => self.float(number, verb),
            View::Complex(re, im) => self.complex(re, im, verb),
            View::Str(text) => self.string(text, verb),
            View::List { is_nil, is_bytes } => {
                self.list(value, (is_nil, is_bytes), verb, depth);
                true
            }
            View::Map { is_nil } => {
                self.map(value, is_nil, verb, depth);
                true
            }
            View::Struct => {
                self.fields(value, verb, depth);
                true
            }
            View::Opaque => {
                self.string_s(value.string_method().unwrap_or_default().as_bytes());
                true
            }
        };
        if !has_form {
            self.bad_verb(Some(value), verb);
        }
    }

    /// Uses the type's `String` method where Go's fmt would.
    fn method<V: Operand>(&mut self, value: &V, verb: char) -> bool {
        if self.erroring || self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return false;
        }
        value.string_method().is_some_and(|text| self.string(text.as_bytes(), verb))
    }

    fn bad_verb<V: Operand>(&mut self, value: Option<&V>, verb: char) {
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

    /// Writes a string; false if it has no form under the verb.
    fn string(&mut self, text: &[u8], verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.string_q(text),
            'v' | 's' => self.string_s(text),
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            'q' => self.string_q(text),
            _ => return false,
        }
        true
    }

    fn list<V: Operand>(&mut self, list: &V, (is_nil, is_bytes): (bool, bool), verb: char, depth: usize) {
        if is_bytes
            && matches!(verb, 's' | 'x' | 'X' | 'q')
            && let Some(bytes) = list.bytes()
        {
            self.string(&bytes, verb);
            return;
        }
        if self.flags.sharp_v {
            // fmt special-cases a bare []byte and spells it so.
            let name = if depth == 0 && is_bytes { "[]byte".into() } else { list.type_name() };
            self.write_str(&name);
            if is_nil {
                self.write(b"(nil)");
                return;
            }
        }
        let (open, between, close): (&[u8], &[u8], &[u8]) =
            if self.flags.sharp_v { (b"{", b", ", b"}") } else { (b"[", b" ", b"]") };
        self.write(open);
        self.parts(list, between, verb, depth);
        self.write(close);
    }

    fn map<V: Operand>(&mut self, map: &V, is_nil: bool, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.write_str(&map.type_name());
            if is_nil {
                self.write(b"(nil)");
                return;
            }
            self.write(b"{");
        } else {
            self.write(b"map[");
        }
        let between: &[u8] = if self.flags.sharp_v { b", " } else { b" " };
        self.parts(map, between, verb, depth);
        self.write(if self.flags.sharp_v { b"}" } else { b"]" });
    }

    fn fields<V: Operand>(&mut self, value: &V, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.write_str(&value.type_name());
        }
        self.write(b"{");
        let between: &[u8] = if self.flags.sharp_v { b", " } else { b" " };
        self.parts(value, between, verb, depth);
        self.write(b"}");
    }

    fn parts<V: Operand>(&mut self, value: &V, between: &[u8], verb: char, depth: usize) {
        let mut is_first = true;
        value.elements(&mut |element| {
            if !std::mem::take(&mut is_first) {
                self.write(between);
            }
            match element {
                Element::Item(item) => self.value(item, verb, depth + 1),
                Element::Entry(key, item) => {
                    self.value(key, verb, depth + 1);
                    self.write(b":");
                    self.value(item, verb, depth + 1);
                }
                Element::Field(name, item) => {
                    if self.flags.plus_v || self.flags.sharp_v {
                        self.write_str(name);
                        self.write(b":");
                    }
                    self.value(item, verb, depth + 1);
                }
            }
            self.failure.is_none()
        });
    }

    fn complex(&mut self, re: f64, im: f64, verb: char) -> bool {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return false;
        }
        let plus = self.flags.plus;
        self.write(b"(");
        self.float(re, verb);
        self.flags.plus = true;
        self.float(im, verb);
        self.write(b"i)");
        self.flags.plus = plus;
        true
    }
}
