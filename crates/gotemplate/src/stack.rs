//! Room on the stack. Templates and data may nest deeper than a thread's default stack allows, so every recursive
//! step reserves room first; depth itself is limited by the caller.

const RED_ZONE_BYTES: usize = 96 << 10;
const SEGMENT_BYTES: usize = 1 << 20;

pub(crate) fn with_room<T>(body: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, SEGMENT_BYTES, body)
}

/// Runs `body`, which recurses about `depth` levels in code we do not write ourselves (dropping, printing a tree).
pub(crate) fn with_depth<T>(depth: usize, body: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(depth.saturating_mul(2 << 10), depth.saturating_mul(4 << 10) + SEGMENT_BYTES, body)
}
