//! The Common Expression Language as Kubernetes uses it, and `x-kubernetes-validations`.
