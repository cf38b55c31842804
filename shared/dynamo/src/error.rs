//! What the SDK's failures mean for the store's callers.

use app::StoreError;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::CancellationReason;

use crate::item::Item;
use crate::retry::Trouble;

const CONDITION_FAILED: &str = "ConditionalCheckFailed";

/// What a failed call of any kind means.
pub(crate) fn store_error<E>(error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let SdkError::ServiceError(service) = error else {
        return match error {
            SdkError::TimeoutError(_) => StoreError::Unavailable("timed out".to_owned()),
            _ => StoreError::Unavailable(DisplayErrorContext(error).to_string()),
        };
    };
    let code = service.err().code().unwrap_or_default();
    match code {
        "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "ThrottlingException"
        | "Throttling"
        | "LimitExceededException" => StoreError::Throttled,
        "TransactionConflictException" | "TransactionInProgressException" => StoreError::Conflict,
        "ValidationException"
        | "SerializationException"
        | "IdempotentParameterMismatchException" => {
            let message = service.err().message().unwrap_or_default();
            StoreError::Corrupt(format!("the store refused a request: {code}: {message}"))
        }
        _ => StoreError::Unavailable(DisplayErrorContext(error).to_string()),
    }
}

/// The same, with conflicts marked as worth another try. The SDK has tried the rest already.
pub(crate) fn trouble<E>(error: &SdkError<E>) -> Trouble
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match store_error(error) {
        StoreError::Conflict => Trouble::Again(StoreError::Conflict),
        error => Trouble::Final(error),
    }
}

/// The item as it stood, if an update was refused by its condition; `None` within if there is none.
pub(crate) fn refused_update(error: &SdkError<UpdateItemError>) -> Option<Option<Item>> {
    match error.as_service_error()? {
        UpdateItemError::ConditionalCheckFailedException(refused) => {
            Some(refused.item().map(copied))
        }
        _ => None,
    }
}

/// The item as it stood, if a put was refused by its condition; `None` within if there is none.
pub(crate) fn refused_put(error: &SdkError<PutItemError>) -> Option<Option<Item>> {
    match error.as_service_error()? {
        PutItemError::ConditionalCheckFailedException(refused) => Some(refused.item().map(copied)),
        _ => None,
    }
}

/// The items as they stood, one place for each part of a transaction that was refused by a
/// condition.
///
/// # Errors
/// Anything else that a transaction can fail of.
pub(crate) fn refused_parts(
    error: &SdkError<TransactWriteItemsError>,
) -> Result<Vec<Option<Item>>, Trouble> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        error.as_service_error()
    else {
        return Err(trouble(error));
    };
    let reasons = cancelled.cancellation_reasons();
    let codes = || reasons.iter().filter_map(CancellationReason::code);
    if codes().any(|code| code == CONDITION_FAILED) {
        let items = reasons.iter().map(|reason| reason.item().map(copied));
        return Ok(items.collect());
    }
    let conflict = codes().any(|code| code == "TransactionConflict");
    let throttled =
        codes().any(|code| code == "ThrottlingError" || code == "ProvisionedThroughputExceeded");
    if conflict {
        Err(Trouble::Again(StoreError::Conflict))
    } else if throttled {
        Err(Trouble::Again(StoreError::Throttled))
    } else {
        let codes: Vec<&str> = codes().collect();
        let text = format!("a transaction was cancelled: {}", codes.join(", "));
        Err(Trouble::Final(StoreError::Corrupt(text)))
    }
}

/// An item of the SDK's as one of ours.
pub(crate) fn copied<'a>(
    attributes: impl IntoIterator<Item = (&'a String, &'a aws_sdk_dynamodb::types::AttributeValue)>,
) -> Item {
    attributes
        .into_iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
