//! `*` in lists of names, as RBAC rules and admission rules have them.

/// The element of a list that stands for every name.
pub const ALL: &str = "*";

/// Whether a list names the item, or all of them.
pub fn names(list: &[String], item: &str) -> bool {
    list.iter().any(|each| is_or_all(each, item))
}

/// Whether an element of a list is the item, or stands for all of them.
pub fn is_or_all(each: &str, item: &str) -> bool {
    each == ALL || each == item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_all() {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        for (items, item, expected) in [
            (&["get", "*"][..], "list", true),
            (&["get", "list"], "list", true),
            (&["get"], "list", false),
            (&["li*"], "list", false),
            (&[], "", false),
            (&[""], "", true),
        ] {
            assert_eq!(names(&list(items), item), expected, "{items:?} {item}");
        }
    }
}
