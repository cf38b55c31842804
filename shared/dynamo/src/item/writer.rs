//! Puts an item or a map together.

use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::Timestamp;

use super::Item;

/// A text.
pub(crate) fn text(text: impl Display) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

/// A number.
pub(crate) fn number(number: impl Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A set of texts; it must have a member.
pub(crate) fn set<T: Display>(members: impl IntoIterator<Item = T>) -> AttributeValue {
    AttributeValue::Ss(members.into_iter().map(|m| m.to_string()).collect())
}

/// A map.
pub(crate) fn map(entries: impl IntoIterator<Item = (String, AttributeValue)>) -> AttributeValue {
    AttributeValue::M(entries.into_iter().collect())
}

/// Collects attributes.
#[derive(Debug, Default)]
pub(crate) struct Writer(Item);

impl Writer {
    /// Any value.
    pub(crate) fn put(&mut self, name: &str, value: AttributeValue) {
        self.0.insert(name.to_owned(), value);
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str, value: impl Display) {
        self.put(name, text(value));
    }

    /// A text that may be absent.
    pub(crate) fn maybe_text(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A number.
    pub(crate) fn number(&mut self, name: &str, value: impl Display) {
        self.put(name, number(value));
    }

    /// A flag, there only if set.
    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, AttributeValue::Bool(true));
        }
    }

    /// An instant, as text of fixed width.
    pub(crate) fn time(&mut self, name: &str, value: Timestamp) {
        self.text(name, value);
    }

    /// A set of texts, there only if it has a member: the store knows no empty set.
    pub(crate) fn set<T: Display>(&mut self, name: &str, members: impl IntoIterator<Item = T>) {
        let mut members = members.into_iter().peekable();
        if members.peek().is_some() {
            self.put(name, set(members));
        }
    }

    /// The item.
    pub(crate) fn item(self) -> Item {
        self.0
    }

    /// The attributes as a map within an item.
    pub(crate) fn map(self) -> AttributeValue {
        map(self.0)
    }
}
