//! What turns use cases into Lambda functions: the runtime's loop, configuration, logs, and the
//! drivers of stream and queue batches.

pub mod function;

pub use function::{Function, FunctionError};
