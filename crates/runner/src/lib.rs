//! Calls functions: in process, or over gRPC.
