//! Limits on one execution, so that no template can exhaust memory or processor time.

use std::fmt;

/// How much one execution may do. The defaults let a legitimate template of hundreds of resources pass with a wide
/// margin, and stop a hostile one within a second and 256 MB.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Nodes evaluated, plus work inside functions in proportion to what they touch.
    pub steps: u64,
    /// Bytes of output.
    pub output: usize,
    /// Bytes of strings, lists and maps made along the way, counted when made and never given back.
    pub memory: usize,
    /// How deep templates may call templates.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 4_000_000, output: 32 << 20, memory: 96 << 20, depth: 1100 }
    }
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// [`Limits::steps`].
    Steps(u64),
    /// [`Limits::output`], in bytes.
    Output(usize),
    /// [`Limits::memory`], in bytes.
    Memory(usize),
    /// [`Limits::depth`].
    Depth(usize),
    /// How deep expressions of a template may nest while they are evaluated.
    Nesting(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Steps(limit) => write!(out, "exceeded the limit of {limit} steps"),
            Exceeded::Output(limit) => write!(out, "exceeded the limit of {limit} bytes of output"),
            Exceeded::Memory(limit) => write!(out, "exceeded the limit of {limit} bytes of memory"),
            Exceeded::Depth(limit) => write!(out, "exceeded maximum template depth ({limit})"),
            Exceeded::Nesting(limit) => write!(out, "exceeded maximum nesting of evaluation ({limit})"),
        }
    }
}
