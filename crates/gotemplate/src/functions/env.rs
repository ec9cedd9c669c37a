//! What a running function has besides its arguments: the budget of the execution and its [`Context`].

use std::collections::HashMap;
use std::rc::Rc;

use crate::context::Context;
use crate::error::Error;
use crate::limits::{Exceeded, Limits};
use crate::value::{Map, Str, Value};
use transom_go::fmt::{self, FmtError};

/// Why a function has no result.
#[derive(Debug)]
pub enum CallError {
    /// The function's own error, or what Go would have panicked with.
    Message(String),
    /// The execution reached a limit.
    Limit(Exceeded),
    /// An error of a template the function executed.
    Nested(Error),
}

impl From<String> for CallError {
    fn from(message: String) -> CallError {
        CallError::Message(message)
    }
}

impl From<&str> for CallError {
    fn from(message: &str) -> CallError {
        CallError::Message(message.to_owned())
    }
}

/// Errors of Go's own packages are the messages of the functions that call them.
macro_rules! from_go {
    ($($error:ty),+) => {$(
        impl From<$error> for CallError {
            fn from(error: $error) -> CallError {
                CallError::Message(error.to_string())
            }
        }
    )+};
}

from_go!(transom_go::encoding::DecodeError, transom_go::semver::SemverError, transom_go::time::ParseError);

impl From<Exceeded> for CallError {
    fn from(exceeded: Exceeded) -> CallError {
        CallError::Limit(exceeded)
    }
}

/// The budget and the [`Context`] of one execution.
pub struct Env<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) context: &'a dyn Context,
    steps: u64,
    memory: usize,
    pub(crate) patterns: HashMap<Str, Rc<regex::bytes::Regex>>,
    /// Maps given a container after they were made: the only ones that can be part of a cycle.
    pub(crate) mutated: Vec<Map>,
}

/// Rough size of one element of a list or map beyond what it points to.
const ELEMENT_BYTES: usize = 48;
/// Sizes of an empty map, and of a node of its tree: that has room for eleven entries, and at least five are there.
const MAP_BYTES: usize = 96;
const MAP_NODE_BYTES: usize = 560;

impl<'a> Env<'a> {
    pub(crate) fn new(limits: &'a Limits, context: &'a dyn Context) -> Env<'a> {
        Env { limits, context, steps: 0, memory: 0, patterns: HashMap::new(), mutated: Vec::new() }
    }

    /// Counts work done; one step is about what evaluating one node costs.
    pub fn spend(&mut self, steps: usize) -> Result<(), Exceeded> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.limits.steps { Err(Exceeded::Steps(self.limits.steps)) } else { Ok(()) }
    }

    /// Counts bytes about to be allocated.
    pub fn allocate(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.limits.memory {
            return Err(Exceeded::Memory(self.limits.memory));
        }
        self.spend(bytes / 64)
    }

    /// Counts a collection of `count` elements about to be built.
    pub fn allocate_elements(&mut self, count: usize) -> Result<(), Exceeded> {
        self.allocate(count.saturating_mul(ELEMENT_BYTES))
    }

    /// Counts a map of `count` entries about to be built.
    pub fn allocate_map(&mut self, count: usize) -> Result<(), Exceeded> {
        self.allocate(count.div_ceil(5).saturating_mul(MAP_NODE_BYTES).saturating_add(MAP_BYTES))
    }

    /// A string as a result, counted.
    pub fn string(&mut self, text: impl Into<Str>) -> Result<Value, CallError> {
        let text = text.into();
        self.allocate(text.len())?;
        Ok(Value::Str(text))
    }

    /// A list as a result, counted.
    pub fn list(&mut self, items: Vec<Value>) -> Result<Value, CallError> {
        self.allocate_elements(items.len())?;
        Ok(Value::list(items))
    }

    /// What text may still be made before the memory limit.
    pub(crate) fn room(&self) -> usize {
        self.limits.memory.saturating_sub(self.memory)
    }

    pub(crate) fn text_result(&mut self, text: Result<Vec<u8>, FmtError>) -> Result<Vec<u8>, CallError> {
        match text {
            Ok(text) => {
                self.allocate(text.len())?;
                Ok(text)
            }
            Err(FmtError::TooLong) => Err(Exceeded::Memory(self.limits.memory).into()),
            Err(FmtError::TooDeep) => Err(FmtError::TooDeep.to_string().into()),
        }
    }

    /// `fmt.Sprint`, counted.
    pub fn sprint(&mut self, args: &[Value]) -> Result<Vec<u8>, CallError> {
        let text = fmt::try_sprint(args, self.room());
        self.text_result(text)
    }

    /// `fmt.Sprintf`, counted.
    pub fn sprintf(&mut self, format: &[u8], args: &[Value]) -> Result<Vec<u8>, CallError> {
        let text = fmt::try_sprintf(format, args, self.room());
        self.text_result(text)
    }

    pub(crate) fn random(&self, bytes: &mut [u8]) -> Result<(), CallError> {
        if self.context.random(bytes) { Ok(()) } else { Err("no randomness available".into()) }
    }

    /// A uniform number below `bound`.
    pub fn random_below(&self, bound: u64) -> Result<u64, CallError> {
        if bound == 0 {
            return Err("invalid argument to Intn".into());
        }
        let zone = u64::MAX - u64::MAX % bound;
        loop {
            let mut bytes = [0; 8];
            self.random(&mut bytes)?;
            let drawn = u64::from_le_bytes(bytes);
            if drawn < zone {
                return Ok(drawn % bound);
            }
        }
    }

    /// Remembers a map that may now contain itself, so that it can be freed at the end.
    pub(crate) fn note_mutation(&mut self, map: &Map, value: &Value) {
        let again = self.mutated.last().is_some_and(|last| last.same(map));
        if matches!(value, Value::Map(_) | Value::List(_)) && !again {
            self.mutated.push(map.clone());
        }
    }
}

impl Drop for Env<'_> {
    fn drop(&mut self) {
        // References are counted, so a map that contains itself would never be freed.
        for map in std::mem::take(&mut self.mutated) {
            if map.is_cyclic() {
                map.clear();
            }
        }
    }
}
