//! Builds condition and update expressions. Every name and value goes in by an alias, so no id ever
//! stands in the text; the store's bounds on an expression are checked before it is sent.

use std::collections::BTreeMap;

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;

/// Most bytes of one expression.
pub(crate) const BYTES_MAX: usize = 4_096;
/// Most operators and functions in one expression.
pub(crate) const OPERATORS_MAX: usize = 300;

/// A part of a condition.
#[derive(Debug, Clone)]
pub(crate) struct Clause {
    text: String,
    operators: usize,
}

impl Clause {
    fn new(text: String) -> Self {
        Self { text, operators: 1 }
    }
}

/// `a = b`
pub(crate) fn eq(a: &str, b: &str) -> Clause {
    Clause::new(format!("{a}={b}"))
}

/// `a <> b`
pub(crate) fn ne(a: &str, b: &str) -> Clause {
    Clause::new(format!("{a}<>{b}"))
}

/// `a <= b`
pub(crate) fn at_most(a: &str, b: &str) -> Clause {
    Clause::new(format!("{a}<={b}"))
}

/// `a > b`
pub(crate) fn above(a: &str, b: &str) -> Clause {
    Clause::new(format!("{a}>{b}"))
}

/// `a < b`
pub(crate) fn below(a: &str, b: &str) -> Clause {
    Clause::new(format!("{a}<{b}"))
}

/// `a` lies from `low` to `high`, both included.
pub(crate) fn between(a: &str, low: &str, high: &str) -> Clause {
    Clause::new(format!("{a} BETWEEN {low} AND {high}"))
}

/// The attribute is there.
pub(crate) fn present(path: &str) -> Clause {
    Clause::new(format!("attribute_exists({path})"))
}

/// The attribute is not there.
pub(crate) fn absent(path: &str) -> Clause {
    Clause::new(format!("attribute_not_exists({path})"))
}

/// The set has the member.
pub(crate) fn contains(path: &str, member: &str) -> Clause {
    Clause::new(format!("contains({path},{member})"))
}

/// The clause does not hold.
pub(crate) fn not(clause: Clause) -> Clause {
    Clause {
        text: format!("NOT {}", clause.text),
        operators: clause.operators + 1,
    }
}

/// All of them hold.
pub(crate) fn all(clauses: Vec<Clause>) -> Clause {
    join(clauses, " AND ")
}

/// One of them holds.
pub(crate) fn any(clauses: Vec<Clause>) -> Clause {
    let joined = join(clauses, " OR ");
    Clause {
        text: format!("({})", joined.text),
        ..joined
    }
}

fn join(clauses: Vec<Clause>, between: &str) -> Clause {
    let operators = clauses.iter().map(|c| c.operators + 1).sum::<usize>();
    let texts: Vec<String> = clauses.into_iter().map(|c| c.text).collect();
    Clause {
        text: texts.join(between),
        operators: operators.saturating_sub(1),
    }
}

/// An expression as the store takes it.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    /// When the write is to happen.
    pub(crate) condition: Option<String>,
    /// What the write does.
    pub(crate) update: Option<String>,
    /// Alias to name.
    pub(crate) names: BTreeMap<String, String>,
    /// Alias to value.
    pub(crate) values: BTreeMap<String, AttributeValue>,
}

/// Collects the parts of an expression.
#[derive(Debug, Default)]
pub(crate) struct Expression {
    names: BTreeMap<String, String>,
    values: BTreeMap<String, AttributeValue>,
    conditions: Vec<Clause>,
    sets: Vec<String>,
    removes: Vec<String>,
    adds: Vec<String>,
    deletes: Vec<String>,
    update_operators: usize,
}

impl Expression {
    /// The path of an attribute within maps, by aliases.
    pub(crate) fn path(&mut self, segments: &[&str]) -> String {
        let aliases: Vec<String> = segments.iter().map(|s| self.name(s)).collect();
        aliases.join(".")
    }

    fn name(&mut self, name: &str) -> String {
        let fresh = format!("#{}", short(self.names.len()));
        self.names.entry(name.to_owned()).or_insert(fresh).clone()
    }

    /// A value, by an alias.
    pub(crate) fn value(&mut self, value: AttributeValue) -> String {
        let alias = format!(":{}", short(self.values.len()));
        self.values.insert(alias.clone(), value);
        alias
    }

    /// A text, by an alias.
    pub(crate) fn text(&mut self, text: impl Into<String>) -> String {
        self.value(AttributeValue::S(text.into()))
    }

    /// A number, by an alias.
    pub(crate) fn number(&mut self, number: u64) -> String {
        self.value(AttributeValue::N(number.to_string()))
    }

    /// Adds to what must hold.
    pub(crate) fn require(&mut self, clause: Clause) {
        self.conditions.push(clause);
    }

    /// `path = to`, where `to` may be a path, a value, a sum or a function of those.
    pub(crate) fn set(&mut self, path: &str, to: &str) {
        self.sets.push(format!("{path}={to}"));
        let functions = to.matches(['+', '(']).count();
        self.update_operators += 1 + functions;
    }

    /// Takes the attribute away.
    pub(crate) fn remove(&mut self, path: &str) {
        self.removes.push(path.to_owned());
        self.update_operators += 1;
    }

    /// Adds the members to the set, or the number to the number.
    pub(crate) fn add(&mut self, path: &str, value: &str) {
        self.adds.push(format!("{path} {value}"));
        self.update_operators += 1;
    }

    /// Takes the members out of the set.
    pub(crate) fn delete(&mut self, path: &str, value: &str) {
        self.deletes.push(format!("{path} {value}"));
        self.update_operators += 1;
    }

    /// The finished expression.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the store would refuse it for its size: a bound of the product is
    /// too high then.
    pub(crate) fn finish(self) -> StoreResult<Finished> {
        let condition = (!self.conditions.is_empty()).then(|| all(self.conditions));
        if let Some(condition) = &condition {
            bounded("condition", &condition.text, condition.operators)?;
        }
        let parts = [
            ("SET", self.sets),
            ("REMOVE", self.removes),
            ("ADD", self.adds),
            ("DELETE", self.deletes),
        ];
        let update: Vec<String> = parts
            .into_iter()
            .filter(|(_, parts)| !parts.is_empty())
            .map(|(verb, parts)| format!("{verb} {}", parts.join(",")))
            .collect();
        let update = (!update.is_empty()).then(|| update.join(" "));
        if let Some(update) = &update {
            bounded("update", update, self.update_operators)?;
        }
        let names = self.names.into_iter().map(|(name, alias)| (alias, name));
        Ok(Finished {
            condition: condition.map(|condition| condition.text),
            update,
            names: names.collect(),
            values: self.values,
        })
    }
}

fn bounded(what: &str, text: &str, operators: usize) -> StoreResult<()> {
    let bytes = text.len();
    if bytes <= BYTES_MAX && operators <= OPERATORS_MAX {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!(
        "{what} expression of {bytes} bytes and {operators} operators is over the store's bounds"
    )))
}

/// A number in base 36.
fn short(number: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = number;
    let mut out = Vec::new();
    loop {
        out.push(char::from(DIGITS[rest % 36]));
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
    out.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_stand_in_the_text_by_alias_alone() {
        let mut e = Expression::default();
        let path = e.path(&["slots", "unit:1", "v"]);
        let again = e.path(&["slots", "unit:2"]);
        let value = e.text("secret-id");
        e.require(all(vec![
            absent(&path),
            any(vec![eq(&again, &value), not(contains(&again, &value))]),
        ]));
        e.set(&path, &value);
        e.remove(&again);
        let done = e.finish().unwrap();
        assert_eq!(
            done.condition.as_deref(),
            Some("attribute_not_exists(#0.#1.#2) AND (#0.#3=:0 OR NOT contains(#0.#3,:0))")
        );
        assert_eq!(done.update.as_deref(), Some("SET #0.#1.#2=:0 REMOVE #0.#3"));
        let names: Vec<&str> = done.names.values().map(String::as_str).collect();
        assert_eq!(names, ["slots", "unit:1", "v", "unit:2"]);
    }

    #[test]
    fn operators_are_counted_and_bounds_hold() {
        let clause = |count: usize| any(vec![eq("#0", ":0"); count]);
        assert_eq!(clause(3).operators, 5);
        assert_eq!(all(vec![clause(2), not(eq("#0", ":0"))]).operators, 6);
        let finish = |count| {
            let mut e = Expression::default();
            e.require(clause(count));
            e.finish()
        };
        assert!(finish(150).is_ok());
        assert!(matches!(finish(151), Err(StoreError::Corrupt(_))));
        let mut e = Expression::default();
        e.set("#0", &"x".repeat(BYTES_MAX));
        assert!(matches!(e.finish(), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn aliases_never_repeat() {
        let mut seen: Vec<String> = (0..2_000).map(short).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 2_000);
    }
}
