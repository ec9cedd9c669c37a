//! Parsed templates by what was parsed, so that a template is parsed once and not at every reconciliation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transom_gotemplate::{Error, Functions, MissingKey, Options, Template};

/// What may be kept: templates, and bytes of their texts. Trees are several times as large as their text.
const MAX_TEMPLATES: usize = 512;
const MAX_TEXT_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    templates: HashMap<Arc<Wanted>, Entry>,
    bytes: usize,
    /// Counts uses, to know the latest.
    clock: u64,
}

/// All that decides what a text is parsed to; the functions never change.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Wanted {
    text: Box<str>,
    left: String,
    right: String,
    missing_key: u8,
}

#[derive(Debug)]
struct Entry {
    template: Arc<Template>,
    used: u64,
}

impl Cache {
    /// The template of a text: parsed before, or now.
    pub(super) fn parse(
        &self,
        text: &str,
        mut options: Options,
        functions: &Functions,
    ) -> Result<Arc<Template>, Error> {
        let missing_key = match options.missing_key {
            MissingKey::Invalid => 0,
            MissingKey::Zero => 1,
            MissingKey::Error => 2,
        };
        let wanted = Wanted {
            text: text.into(),
            left: options.left_delimiter.clone(),
            right: options.right_delimiter.clone(),
            missing_key,
        };
        if let Some(template) = self.kept().find(&wanted) {
            return Ok(template);
        }
        // Parsed without the lock: a long template does not hold up the others.
        options.functions = functions.names().map(str::to_owned).collect();
        let template = Arc::new(Template::parse("manifests", text, &options)?);
        self.kept().keep(wanted, template.clone());
        Ok(template)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whatever a panic left behind is still a map of whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, wanted: &Wanted) -> Option<Arc<Template>> {
        self.clock += 1;
        let entry = self.templates.get_mut(wanted)?;
        entry.used = self.clock;
        Some(entry.template.clone())
    }

    fn keep(&mut self, wanted: Wanted, template: Arc<Template>) {
        let size = wanted.text.len();
        if size > MAX_TEXT_BYTES {
            return;
        }
        while self.templates.len() >= MAX_TEMPLATES || self.bytes + size > MAX_TEXT_BYTES {
            let oldest = self.templates.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(wanted, _)| wanted.clone()) else { break };
            self.templates.remove(&oldest);
            self.bytes -= oldest.text.len();
        }
        let entry = Entry { template, used: self.clock };
        if self.templates.insert(Arc::new(wanted), entry).is_none() {
            self.bytes += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(cache: &Cache, text: &str) -> Arc<Template> {
        cache.parse(text, Options::default(), &Functions::default()).unwrap()
    }

    #[test]
    fn a_text_is_parsed_once() {
        let cache = Cache::default();
        let first = parse(&cache, "{{ 1 }}");
        assert!(Arc::ptr_eq(&first, &parse(&cache, "{{ 1 }}")));
        assert!(!Arc::ptr_eq(&first, &parse(&cache, "{{ 2 }}")));
        let other = Options { missing_key: MissingKey::Error, ..Options::default() };
        let other = cache.parse("{{ 1 }}", other, &Functions::default()).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let cache = Cache::default();
        let first = parse(&cache, "first");
        let second = parse(&cache, "second");
        for number in 2..MAX_TEMPLATES {
            parse(&cache, &number.to_string());
        }
        assert!(Arc::ptr_eq(&first, &parse(&cache, "first")));
        parse(&cache, "one more");
        assert_eq!(cache.kept().templates.len(), MAX_TEMPLATES);
        assert!(Arc::ptr_eq(&first, &parse(&cache, "first")));
        assert!(!Arc::ptr_eq(&second, &parse(&cache, "second")));
    }

    #[test]
    fn bytes_are_bounded() {
        let cache = Cache::default();
        for letter in ["a", "b", "c"] {
            parse(&cache, &letter.repeat(MAX_TEXT_BYTES / 2));
        }
        assert_eq!(cache.kept().templates.len(), 2);
        assert_eq!(cache.kept().bytes, MAX_TEXT_BYTES);
        parse(&cache, &"d".repeat(MAX_TEXT_BYTES + 1));
        assert_eq!(cache.kept().templates.len(), 2);
    }
}
