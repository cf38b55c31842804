//! Routes that are open to anyone. They have no caller and read nothing of the store, so they are
//! answered in the same way whatever function they belong to.

use app::Error;
use app::error::Internal;
use serde_json::json;

use crate::endpoint::Reply;
use crate::routes::Operation;

/// Answers an open route.
///
/// # Errors
/// [`Error::Bug`] for a route that is not one.
pub(crate) fn open(operation: Operation) -> Result<Reply, Error> {
    match operation {
        Operation::GetHealth => Reply::new(json!({ "status": "ok" })),
        _ => Err(Error::Bug(Internal(format!("{operation:?} is not open")))),
    }
}
