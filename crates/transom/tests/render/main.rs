//! Rendering: what a composition makes of a composite resource.

mod golden;
