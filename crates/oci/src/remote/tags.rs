//! Lists the tags of a repository page by page. Pages stay with their registry, and their number and size are bounded.

use super::RemoteRegistry;
use super::http::{Call, join, same_origin};
use crate::failure::invalid;
use ::http::header::LINK;
use ::http::{HeaderMap, Method, StatusCode};
use std::collections::BTreeSet;
use transom_packages::{Credentials, Reference, RegistryError};

const PAGE_BYTES_MAX: u64 = 8 << 20;
const TAGS_MAX: usize = 200_000;

#[derive(serde::Deserialize)]
struct Page {
    tags: Option<Vec<String>>,
}

impl RemoteRegistry {
    /// All tags, each once, in the registry's order.
    pub(super) async fn list_tags(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<Vec<String>, RegistryError> {
        let subject = format!("{}: tags", reference.source());
        let first = self.address(reference, "tags/list?n=1000").await?;
        let (mut next, mut seen, mut tags) = (Some(first.clone()), BTreeSet::new(), Vec::new());
        let mut pages = 0;
        while let Some(uri) = next {
            pages += 1;
            if pages > self.options().tag_pages || tags.len() > TAGS_MAX {
                let problem = format!("more than {} pages, or {TAGS_MAX} tags, which is refused", pages - 1);
                return Err(invalid(subject, problem));
            }
            let answer = self.send(reference, false, Call::new(Method::GET, uri.clone()), with).await?;
            if answer.status != StatusCode::OK {
                return Err(answer.failure(&subject, "repository").await);
            }
            next = match next_page(&answer.headers) {
                None => None,
                Some(link) => {
                    let target = join(&uri, &link).filter(|target| same_origin(target, &first));
                    let problem = "the registry continues its list on another host, which is refused";
                    Some(target.ok_or_else(|| invalid(&subject, problem))?)
                }
            };
            let body = answer.bytes(&subject, PAGE_BYTES_MAX).await?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|error| invalid(&subject, format_args!("the list is malformed: {error}")))?;
            let new = page.tags.unwrap_or_default().into_iter().filter(|tag| seen.insert(tag.clone()));
            tags.extend(new);
        }
        Ok(tags)
    }
}

/// `Link: </v2/…?last=…>; rel="next"`.
fn next_page(headers: &HeaderMap) -> Option<String> {
    headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok()).find_map(|link| {
        let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let parameter = parameter.trim();
            parameter.eq_ignore_ascii_case("rel=\"next\"") || parameter.eq_ignore_ascii_case("rel=next")
        });
        is_next.then(|| address.to_owned())
    })
}
