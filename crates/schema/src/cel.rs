//! The Common Expression Language as Kubernetes uses it, and `x-kubernetes-validations`.

#[derive(Default)]
pub struct Rules;
impl Rules {
    pub fn compile(_s: &crate::Schema) -> Result<Self, Vec<String>> {
        Ok(Self)
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn validate(
        &self,
        _n: &serde_json::Value,
        _o: Option<&serde_json::Value>,
        _p: &transom_object::field::Path,
    ) -> Vec<transom_object::field::Error> {
        Vec::new()
    }
}
