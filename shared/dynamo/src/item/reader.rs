//! Takes an item or a map apart.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::{Timestamp, Version};

/// Reads attributes by name; each failure names the item and the attribute.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    what: String,
    attributes: BTreeMap<&'a str, &'a AttributeValue>,
}

impl<'a> Reader<'a> {
    /// A reader of these attributes; `what` names them in a failure.
    pub(crate) fn new(
        what: String,
        attributes: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>,
    ) -> Self {
        let attributes = attributes.into_iter().map(|(name, v)| (name.as_str(), v));
        Self {
            what,
            attributes: attributes.collect(),
        }
    }

    /// What a failure calls the attributes.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// The failure of an attribute that is not `wanted`.
    pub(crate) fn corrupt(&self, name: &str, wanted: &str) -> StoreError {
        StoreError::Corrupt(format!("{}: attribute {name} is not {wanted}", self.what))
    }

    fn find<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a AttributeValue) -> Option<T>,
    ) -> StoreResult<Option<T>> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(read) => Ok(Some(read)),
                None => Err(self.corrupt(name, wanted)),
            },
        }
    }

    fn need<T>(&self, name: &str, wanted: &str, found: Option<T>) -> StoreResult<T> {
        found.ok_or_else(|| self.corrupt(name, wanted))
    }

    /// A text that `parse` takes, if the attribute is there.
    pub(crate) fn maybe_parsed<T>(
        &self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<Option<T>> {
        self.find(name, wanted, |value| parse(value.as_s().ok()?))
    }

    /// A text that `parse` takes.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<T> {
        let found = self.maybe_parsed(name, wanted, parse)?;
        self.need(name, wanted, found)
    }

    /// Any text.
    pub(crate) fn text(&self, name: &str) -> StoreResult<String> {
        self.parsed(name, "a text", |text| Some(text.to_owned()))
    }

    /// Any text, if the attribute is there.
    pub(crate) fn maybe_text(&self, name: &str) -> StoreResult<Option<String>> {
        self.maybe_parsed(name, "a text", |text| Some(text.to_owned()))
    }

    /// A list.
    pub(crate) fn list(&self, name: &str) -> StoreResult<&'a [AttributeValue]> {
        let found = self.find(name, "a list", |value| value.as_l().ok())?;
        Ok(self.need(name, "a list", found)?.as_slice())
    }

    /// An id.
    pub(crate) fn id<T: FromStr>(&self, name: &str) -> StoreResult<T> {
        self.parsed(name, "an id", |text| text.parse().ok())
    }

    /// An id, if the attribute is there.
    pub(crate) fn maybe_id<T: FromStr>(&self, name: &str) -> StoreResult<Option<T>> {
        self.maybe_parsed(name, "an id", |text| text.parse().ok())
    }

    /// An instant.
    pub(crate) fn time(&self, name: &str) -> StoreResult<Timestamp> {
        self.parsed(name, "an instant", parse_time)
    }

    /// An instant, if the attribute is there.
    pub(crate) fn maybe_time(&self, name: &str) -> StoreResult<Option<Timestamp>> {
        self.maybe_parsed(name, "an instant", parse_time)
    }

    /// A number.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> StoreResult<T> {
        let found = self.find(name, "a number", |value| value.as_n().ok()?.parse().ok())?;
        self.need(name, "a number", found)
    }

    /// A version.
    pub(crate) fn version(&self, name: &str) -> StoreResult<Version> {
        let found = self.maybe_version(name)?;
        self.need(name, "a version", found)
    }

    /// A version, if the attribute is there.
    pub(crate) fn maybe_version(&self, name: &str) -> StoreResult<Option<Version>> {
        self.find(name, "a version", |value| {
            Version::stored(value.as_n().ok()?.parse().ok()?)
        })
    }

    /// A flag; not set if the attribute is not there.
    pub(crate) fn flag(&self, name: &str) -> StoreResult<bool> {
        let found = self.find(name, "a flag", |value| value.as_bool().ok().copied())?;
        Ok(found.unwrap_or(false))
    }

    /// A set of texts that `parse` takes; empty if the attribute is not there.
    pub(crate) fn set<T: Ord>(
        &self,
        name: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> StoreResult<BTreeSet<T>> {
        let found = self.find(name, wanted, |value| {
            let members = value.as_ss().ok()?;
            members.iter().map(|member| parse(member)).collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// A set of ids; empty if the attribute is not there.
    pub(crate) fn ids<T: FromStr + Ord>(&self, name: &str) -> StoreResult<BTreeSet<T>> {
        self.set(name, "a set of ids", |text| text.parse().ok())
    }

    /// A map, if the attribute is there.
    pub(crate) fn maybe_map(&self, name: &str) -> StoreResult<Option<Reader<'a>>> {
        let found = self.find(name, "a map", |value| value.as_m().ok())?;
        Ok(found.map(|map| Reader::new(format!("{}.{name}", self.what), map)))
    }

    /// A map.
    pub(crate) fn map(&self, name: &str) -> StoreResult<Reader<'a>> {
        let found = self.maybe_map(name)?;
        self.need(name, "a map", found)
    }

    /// The names of the attributes, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.attributes.keys().copied()
    }
}

fn parse_time(text: &str) -> Option<Timestamp> {
    // Only the fixed width sorts as instants do, so nothing else is taken.
    let at = Timestamp::parse(text).ok()?;
    (at.to_string() == text).then_some(at)
}
