//! The table against the Go encoders: fixtures written by `conformance/kinds`.

mod codec;
mod served;
mod shapes;
