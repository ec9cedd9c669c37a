//! Tests of the function protocol and its SDK from outside, in one binary.

mod recorded;
mod serving;
