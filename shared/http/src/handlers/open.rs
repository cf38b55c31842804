//! Routes that are open to anyone. They have no caller and read nothing of the store, so they are
//! answered in the same way whatever function they belong to.

use std::borrow::Cow;

use app::Error;
use app::error::Internal;

use crate::routes::Operation;
use crate::view::HealthView;

/// The API document, as it is committed: a test makes it anew and compares.
static DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

/// The JSON that answers an open route.
///
/// # Errors
/// [`Error::Bug`] for a route that is not one.
pub(crate) fn open(operation: Operation) -> Result<Cow<'static, str>, Error> {
    let bug = |text: String| Error::Bug(Internal(text));
    match operation {
        Operation::GetHealth => serde_json::to_string(&HealthView { status: "ok" })
            .map(Cow::Owned)
            .map_err(|error| bug(error.to_string())),
        Operation::GetApiDocument => Ok(Cow::Borrowed(DOCUMENT)),
        _ => Err(bug(format!("{operation:?} is not open"))),
    }
}
