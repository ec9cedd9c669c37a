//! Go's text/template with sprig and fmt, exact and bounded. Knows nothing of Kubernetes.
