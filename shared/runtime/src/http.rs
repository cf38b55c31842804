//! HTTP functions as the Lambda service sees them.

use http_api::HttpFunction;

use crate::function::{Function, FunctionError};

/// Turns an HTTP function into one that takes API Gateway events.
#[must_use]
pub fn function(http: HttpFunction) -> Function {
    Function::new(http.name.as_str(), move |event| {
        let http = http.clone();
        async move {
            http.invoke(event).await.map_err(|error| FunctionError {
                kind: "BadEvent",
                message: error.to_string(),
            })
        }
    })
}
