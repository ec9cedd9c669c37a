//! The function protocol and its SDK from outside, in one binary: functions that are served and called over gRPC, and recorded
//! messages.

mod recorded;
mod serving;
