//! The table of built-in kinds, compared with what Kubernetes' own Go code does with the same objects: the fixtures in `testdata`
//! are written by `conformance/kinds`.

mod codec;
mod served;
mod shapes;
