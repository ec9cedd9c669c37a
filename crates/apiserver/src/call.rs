//! One authorized request to one resource, handed to its verb.

use crate::auth::Identity;
use crate::negotiate::{Accept, header_text};
use crate::request::{Query, Target, Verb};
use crate::resource::Resource;
use crate::server::Inner;
use http::{HeaderMap, header};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct Call {
    pub(crate) server: Arc<Inner>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) accept: Accept,
    pub(crate) who: Identity,
    pub(crate) headers: HeaderMap,
    /// Sent with the answer, whether the request succeeds or fails.
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Call {
    pub(crate) fn user_agent(&self) -> &str {
        header_text(&self.headers, header::USER_AGENT.as_str())
    }

    pub(crate) fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn content_type(&self) -> &str {
        let full = header_text(&self.headers, header::CONTENT_TYPE.as_str());
        full.split(';').next().unwrap_or_default().trim()
    }
}
