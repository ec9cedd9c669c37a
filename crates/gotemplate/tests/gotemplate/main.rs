//! The template engine through its public interface: upstream's tables, recorded answers of Go, and templates that try to exhaust
//! time or memory.

mod conformance;
mod hostile;
mod recorded;
