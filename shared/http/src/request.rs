//! Requests, read strictly: what is unknown, twice, of the wrong type or past a limit is refused
//! and named, so that a mistyped field never changes what a call does.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use app::auth::hex;
use app::idempotency::{IdempotencyKey, KEY_CHARS_MAX, Repeatable};
use app::{Context, Error};
use domain::limits::{
    BODY_BYTES_MAX, ORGS_PER_LIST_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, REASON_CHARS_MAX,
    UNITS_PER_REQUEST_MAX,
};
use domain::{OrgId, Timestamp, UnitSet, Version};
use lambda_http::http::HeaderMap;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::cursor::CursorKey;
use crate::problem::Answer;
use crate::routes::{BodyRule, Operation, Route};

/// A request that has a route, a valid key and a permission.
#[derive(Debug)]
pub struct Call {
    /// Its route.
    pub route: &'static Route,
    /// Who calls, and by which request.
    pub context: Context,
    /// The path's parameters.
    pub path: Vec<(&'static str, String)>,
    /// The query's parameters.
    pub query: BTreeMap<String, String>,
    /// The body; empty where there is none.
    pub body: Vec<u8>,
    /// The version of `If-Match`.
    pub if_match: Option<Version>,
    /// The call as one that may come again, by its `Idempotency-Key`.
    pub repeatable: Option<Repeatable>,
}

/// Longest part of a parser's message that is passed on, in characters.
const PARSER_TEXT_CHARS_MAX: usize = 300;

/// A refusal of the request as it stands.
pub(crate) fn bad(text: impl Into<String>) -> Error {
    Error::BadRequest(text.into())
}

/// A body that has nothing to say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "EmptyRequest"))]
pub(crate) struct NoFields {}

impl Call {
    /// A parameter of the path as an id. What cannot be an id cannot exist either.
    ///
    /// # Errors
    /// Not found if it is no id.
    pub fn id<T: std::str::FromStr>(&self, name: &str) -> Result<T, Error> {
        let value = self.path.iter().find(|(there, _)| *there == name);
        value
            .and_then(|(_, text)| text.parse().ok())
            .ok_or_else(Error::not_found)
    }

    /// The body as `T`; the default where the route's body is optional and there is none.
    ///
    /// # Errors
    /// [`Error::BadRequest`] says what is wrong with it.
    pub fn json<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        if self.body.is_empty() && self.route.body == BodyRule::Optional {
            return Ok(T::default());
        }
        if self.body.is_empty() {
            return Err(bad("this call needs a JSON body"));
        }
        let text = str::from_utf8(&self.body).map_err(|_| bad("the body is not UTF-8"))?;
        let parsed: Result<Object<T>, _> = serde_json::from_str(text);
        let Object(body) = parsed.map_err(|error| {
            let problem = match misfit::<T>(text) {
                Some(field) if !error.to_string().contains(&format!("`{field}`")) => {
                    format!("{field}: {error}")
                }
                _ => error.to_string(),
            };
            let problem: String = problem.chars().take(PARSER_TEXT_CHARS_MAX).collect();
            bad(format!("the body does not fit this call: {problem}"))
        })?;
        match null_field(text) {
            Some(field) => Err(bad(format!("{field}: null is no value; leave it out"))),
            None => Ok(body),
        }
    }

    /// A query parameter that is `true` or `false`.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for anything else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        match self.query.get(name).map(String::as_str) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(bad(format!("{name} is true or false"))),
        }
    }

    /// How many items a page is to have.
    ///
    /// # Errors
    /// [`Error::BadRequest`] unless it is 1 to 100.
    pub fn limit(&self) -> Result<usize, Error> {
        let Some(text) = self.query.get("limit") else {
            return Ok(PAGE_ITEMS_DEFAULT);
        };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text
            .parse()
            .ok()
            .filter(|n| digits && (1..=PAGE_ITEMS_MAX).contains(n));
        number.ok_or_else(|| bad(format!("limit is a number from 1 to {PAGE_ITEMS_MAX}")))
    }

    /// The name of the list this call reads: its path and what it filters by. Nodes are listed to
    /// an org as far as they are its own, which is another list for each.
    #[must_use]
    pub fn list_name(&self) -> String {
        let path = self
            .path
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let filters = self
            .query
            .iter()
            .filter(|(name, _)| !matches!(&***name, "limit" | "cursor"));
        let filters = filters.map(|(name, value)| format!("{name}={value}"));
        let caller = self.context.caller();
        let own = self.route.operation == Operation::ListNodes && !caller.operator;
        let owner = own.then(|| format!("owner={}", caller.org));
        let parts: Vec<String> = path.chain(filters).chain(owner).collect();
        format!("{:?} {}", self.route.operation, parts.join(" "))
    }

    /// The key that the cursor continues after, as an id.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for a cursor of another list or one that was changed.
    pub fn cursor<T: std::str::FromStr>(&self, key: &CursorKey) -> Result<Option<T>, Error> {
        let Some(cursor) = self.query.get("cursor") else {
            return Ok(None);
        };
        let after = key.decode(&self.list_name(), cursor)?;
        let after = after
            .parse()
            .map_err(|_| bad("cursor is not one that this list handed out"));
        after.map(Some)
    }
}

/// The first field of an object that does not fit `T` whatever the other fields are: the parser
/// says what is wrong with a value, but not where it stands.
fn misfit<T: DeserializeOwned>(text: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let alone = fields.into_iter().find(|(name, value)| {
        let object = Map::from_iter([(name.clone(), value.clone())]);
        let parsed = serde_json::from_value::<T>(Value::Object(object));
        parsed.is_err_and(|error| !error.to_string().starts_with("missing field"))
    });
    alone.map(|(name, _)| name)
}

/// The first field of an object that is null or has a null in it. A flag that a program failed to
/// fill in must not count as one that was left out, so this holds for every field there is.
fn null_field(text: &str) -> Option<String> {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(has_null),
            Value::Object(fields) => fields.values().any(has_null),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    // Most bodies have none, and are not read a second time.
    if !text.contains("null") {
        return None;
    }
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut fields = fields.into_iter();
    fields
        .find(|(_, value)| has_null(value))
        .map(|(name, _)| name)
}

/// A value that is written as an object: the parser by itself would also take an array with the
/// fields in their order.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

/// Reads `unitIds` of a capacity verb.
///
/// # Errors
/// [`Error::BadRequest`] says what is wrong with the list.
pub(crate) fn unit_ids(ids: &[String]) -> Result<UnitSet, Error> {
    units("unitIds", ids, UNITS_PER_REQUEST_MAX)
}

/// Reads a list of units by the name of its field.
///
/// # Errors
/// [`Error::BadRequest`] says what is wrong with the list.
pub(crate) fn units(field: &str, ids: &[String], max: usize) -> Result<UnitSet, Error> {
    UnitSet::parse(ids, max).map_err(|error| bad(format!("{field} {error}")))
}

/// Reads a list of orgs by the name of its field.
///
/// # Errors
/// [`Error::BadRequest`] if it is too long, or names an org twice, or what is no id.
pub(crate) fn orgs(field: &str, ids: &[String]) -> Result<BTreeSet<OrgId>, Error> {
    if ids.len() > ORGS_PER_LIST_MAX {
        return Err(bad(format!(
            "{field} takes at most {ORGS_PER_LIST_MAX} orgs"
        )));
    }
    let mut out = BTreeSet::new();
    for text in ids {
        let org = OrgId::parse(text).map_err(|error| bad(format!("{field}: {error}")))?;
        if !out.insert(org) {
            return Err(bad(format!("{field} names an org twice; name each once")));
        }
    }
    Ok(out)
}

/// Reads an id by the name of its field.
///
/// # Errors
/// [`Error::BadRequest`] if it is no id.
pub(crate) fn id<T>(field: &str, text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    text.parse()
        .map_err(|error| bad(format!("{field}: {error}")))
}

/// Reads a time by the name of its field.
///
/// # Errors
/// [`Error::BadRequest`] if it is no time.
pub(crate) fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Error> {
    let parse = |text| Timestamp::parse(text).map_err(|e| bad(format!("{field}: {e}")));
    text.map(parse).transpose()
}

/// Checks a text in the caller's own words by the name of its field.
///
/// # Errors
/// [`Error::BadRequest`] if it is empty or too long.
pub(crate) fn words(field: &str, text: Option<String>) -> Result<Option<String>, Error> {
    match &text {
        Some(given) if given.is_empty() || given.chars().count() > REASON_CHARS_MAX => Err(bad(
            format!("{field} has 1 to {REASON_CHARS_MAX} characters, or leave it out"),
        )),
        _ => Ok(text),
    }
}

/// The one value of a header; `None` if it is absent or not text.
#[must_use]
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Checks the size and the declared type of a body against the route.
///
/// # Errors
/// 413, 415, or 400 for a body where there is to be none.
pub(crate) fn check_body(route: &Route, headers: &HeaderMap, body: &[u8]) -> Result<(), Answer> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Answer::too_large());
    }
    if body.is_empty() {
        return Ok(());
    }
    if route.body == BodyRule::None {
        return Err(Answer::new(400, "bad_request", "this call takes no body"));
    }
    let declared = header(headers, "content-type").unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Answer::not_json())
    }
}

/// Reads the key of a call that may come again.
///
/// # Errors
/// [`Error::BadRequest`] for what is no key, and for any key on a call that cannot honour it:
/// ignoring it would promise what is not kept.
pub(crate) fn idempotency_key(
    route: &Route,
    headers: &HeaderMap,
) -> Result<Option<IdempotencyKey>, Error> {
    if !headers.contains_key("idempotency-key") || route.method == "GET" {
        return Ok(None);
    }
    if !route.repeatable {
        return Err(bad(
            "Idempotency-Key is not supported on this call; leave it out",
        ));
    }
    let single = headers.get_all("idempotency-key").iter().count() == 1;
    let text = header(headers, "idempotency-key").filter(|_| single);
    let key = text.and_then(IdempotencyKey::parse);
    key.map(Some).ok_or_else(|| {
        bad(format!(
            "Idempotency-Key is sent once and has 1 to {KEY_CHARS_MAX} characters of \
             A-Z a-z 0-9 . _ : - + / ="
        ))
    })
}

/// A digest of all that a call asks, so that another call under the same key is seen to be another.
/// So is an operator's in the hands of a lesser key of the same org: its answer is not for it.
#[must_use]
pub(crate) fn fingerprint(
    operator: bool,
    route: &Route,
    path: &[(&'static str, String)],
    query: &BTreeMap<String, String>,
    if_match: Option<Version>,
    body: &[u8],
) -> String {
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        digest.update(bytes.len().to_be_bytes());
        digest.update(bytes);
    };
    part(&[u8::from(operator)]);
    part(route.method.as_bytes());
    part(route.path.as_bytes());
    for (_, value) in path {
        part(value.as_bytes());
    }
    for (name, value) in query {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(&if_match.map_or(0, Version::get).to_be_bytes());
    part(body);
    hex(&digest.finalize())
}

/// Checks the header that makes a call conditional.
///
/// # Errors
/// [`Error::BadRequest`] for what is no version, and on a route that cannot honour one.
pub(crate) fn check_conditions(
    route: &Route,
    headers: &HeaderMap,
) -> Result<Option<Version>, Error> {
    if !headers.contains_key("if-match") || route.method == "GET" {
        return Ok(None);
    }
    if !route.if_match {
        return Err(bad("If-Match is not supported on this call; leave it out"));
    }
    let text = header(headers, "if-match").unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let digits = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let digits = digits.filter(|d| !d.starts_with('0'));
    let number = digits.filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
    let version = number
        .and_then(|number| number.parse().ok())
        .and_then(Version::stored);
    version
        .map(Some)
        .ok_or_else(|| bad("If-Match is one ETag of this resource, such as \"7\", or *"))
}

/// Checks that every query parameter is one that the route knows.
///
/// # Errors
/// [`Error::BadRequest`] names the one that is not.
pub(crate) fn check_query(route: &Route, query: &BTreeMap<String, String>) -> Result<(), Error> {
    match query
        .keys()
        .find(|name| !route.query.contains(&name.as_str()))
    {
        None => Ok(()),
        Some(name) => {
            let name: String = name.chars().take(64).collect();
            let known = match route.query {
                [] => "none".to_owned(),
                known => known.join(", "),
            };
            Err(bad(format!(
                "unknown query parameter {name:?}; this call knows {known}"
            )))
        }
    }
}
