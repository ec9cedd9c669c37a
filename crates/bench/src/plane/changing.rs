//! What users and others change, and how soon the plane acts on it.

use super::platform::{CHILDREN, parts, stacks};
use super::{Run, name, skim, until};
use crate::failure::Failure;
use http::Method;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// A part that takes longer to be re-created counts as an outlier.
const OUTLIER_LATENCY: Duration = Duration::from_millis(20);

/// A ConfigMap of a composite resource.
struct Part {
    name: String,
    uid: String,
    stack: String,
    /// Which of the parts of its composite resource it is.
    number: Value,
    value: Value,
}

impl Part {
    /// Of an object; not every ConfigMap is composed.
    fn of(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &object["metadata"];
        Some(Self {
            name: text(&metadata["name"])?,
            uid: text(&metadata["uid"])?,
            stack: text(&metadata["labels"]["crossplane.io/composite"])?,
            number: object["data"]["part"].clone(),
            value: object["data"]["value"].clone(),
        })
    }

    fn path(&self) -> String {
        format!("{}/{}", parts(), self.name)
    }

    fn shows(&self, object: &Value, value: &Value) -> bool {
        object["metadata"]["uid"] == *self.uid && object["data"]["value"] == *value
    }

    fn is_replaced_by(&self, new: &Self) -> bool {
        new.stack == self.stack && new.number == self.number && new.uid != self.uid
    }
}

impl Run<'_> {
    /// A user edits a composite resource: until all its parts show it.
    pub(super) async fn edits(&mut self, count: usize) -> Result<(), Failure> {
        let mut client = self.plane.connect().await?;
        let mut watch = self.plane.connect().await?.watch(&parts()).await?;
        let mut each = Vec::new();
        for number in 0..count {
            skim(&mut watch, self.pause()).await?;
            let stack = name(number % self.made);
            let edit = json!({"spec": {"value": format!("{stack}-edited-{number}")}});
            let began = Instant::now();
            client.merge(&format!("{}/{stack}", stacks()), &edit).await?;
            let mut changed = HashSet::new();
            while changed.len() < CHILDREN {
                let shows = |_: &str, object: &Value| object["data"]["value"] == edit["spec"]["value"];
                let part = until(&mut watch, shows).await?;
                changed.insert(part["data"]["part"].to_string());
            }
            each.push(began.elapsed());
        }
        self.note_times("edit to four parts changed, median", "edit to four parts changed, 99 %", each);
        Ok(())
    }

    /// Another client changes a part: until the change is reverted.
    pub(super) async fn drifts(&mut self, count: usize) -> Result<(), Failure> {
        let mut client = self.plane.connect().await?;
        let mut watch = self.plane.connect().await?.watch(&parts()).await?;
        let existing = self.parts().await?;
        let mut each = Vec::new();
        for part in (0..count).filter_map(|number| existing.get(spread(number, existing.len()))) {
            skim(&mut watch, self.pause()).await?;
            let drift = json!({"data": {"value": "drifted"}});
            let began = Instant::now();
            client.merge(&part.path(), &drift).await?;
            until(&mut watch, |_, object| part.shows(object, &drift["data"]["value"])).await?;
            until(&mut watch, |_, object| part.shows(object, &part.value)).await?;
            each.push(began.elapsed());
        }
        self.note_times("drift to reverted, median", "drift to reverted, 99 %", each);
        Ok(())
    }

    /// Another client deletes a part: until there is a new one in its place.
    pub(super) async fn deletions(&mut self, count: usize) -> Result<(), Failure> {
        let mut client = self.plane.connect().await?;
        let mut watch = self.plane.connect().await?.watch(&parts()).await?;
        let mut existing = self.parts().await?;
        let mut each = Vec::new();
        for number in 0..count {
            skim(&mut watch, self.pause()).await?;
            let next = spread(number, existing.len());
            let Some(part) = existing.get_mut(next) else { break };
            let replaces = |object: &Value| Part::of(object).is_some_and(|new| part.is_replaced_by(&new));
            let began = Instant::now();
            client.must(Method::DELETE, &part.path(), "", Default::default()).await?;
            let object = until(&mut watch, |word, object| word == "ADDED" && replaces(object)).await?;
            each.push(began.elapsed());
            if let Some(new) = Part::of(&object) {
                *part = new;
            }
        }
        let outliers = each.iter().filter(|took| **took > OUTLIER_LATENCY).count();
        let timings =
            self.note_times("part deleted to re-created, median", "part deleted to re-created, 99 %", each);
        self.note("part deleted to re-created, longest", timings.percentile(1.0), "ms");
        self.note("parts re-created after more than 20 ms", outliers as f64, "");
        Ok(())
    }

    /// All parts that there are.
    async fn parts(&self) -> Result<Vec<Part>, Failure> {
        let list = self.plane.connect().await?.get(&parts()).await?;
        let list: Value = serde_json::from_slice(&list)
            .map_err(|e| Failure::new(format!("{} is not a list: {e}", parts())))?;
        let items = list["items"].as_array();
        Ok(items.into_iter().flatten().filter_map(Part::of).collect())
    }
}

/// Chooses parts so that consecutive ones belong to different composite resources; a list has them side by side.
fn spread(number: usize, count: usize) -> usize {
    const STEP: usize = 2 * CHILDREN + 5;
    (number * STEP) % count.max(1)
}
