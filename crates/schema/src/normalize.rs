//! Pruning, defaulting and coercion of values by their schema.
