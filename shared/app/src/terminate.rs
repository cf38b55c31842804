//! Terminations: tells the VM's machine to stop it and confirms the stop. Nothing is stopped that
//! the state did not condemn.

use domain::VmStatus;

use crate::error::Error;
use crate::ports::{
    Clock, ControlVm, ControllerError, CountAttempt, Ids, Stopped, TerminationOrder,
};
use crate::settle::{SettleStore, confirm_as_system};

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The VM is gone and its units are free.
    Confirmed,
    /// It was gone before, or there is no such VM.
    NothingToDo,
    /// The VM is not condemned: the order is not followed.
    NotCondemned,
    /// Its machine is still at it: the order is to come again.
    NotYet,
}

/// Why an order could not be carried out. It is to come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminateError {
    /// The store failed.
    Store(Error),
    /// The controller failed.
    Controller(ControllerError),
}

impl From<Error> for TerminateError {
    fn from(error: Error) -> Self {
        TerminateError::Store(error)
    }
}

/// Carries out one order. Doing it again changes nothing.
///
/// # Errors
/// [`TerminateError`]; the VM stays condemned and its slot closed.
pub async fn terminate(
    store: &(impl SettleStore + CountAttempt),
    controller: &impl ControlVm,
    clock: &impl Clock,
    ids: &impl Ids,
    order: &TerminationOrder,
) -> Result<Outcome, TerminateError> {
    let Some(vm) = store.load_vm(&order.vm).await.map_err(Error::from)? else {
        return Ok(Outcome::NothingToDo);
    };
    match vm.status {
        VmStatus::Terminated => return Ok(Outcome::NothingToDo),
        VmStatus::Running => return Ok(Outcome::NotCondemned),
        VmStatus::Terminating => {}
    }
    store.count_attempt(&order.vm).await.map_err(Error::from)?;
    match controller
        .terminate(order)
        .await
        .map_err(TerminateError::Controller)?
    {
        Stopped::NotYet => Ok(Outcome::NotYet),
        Stopped::Gone => {
            confirm_as_system(store, clock, ids, &order.vm).await?;
            Ok(Outcome::Confirmed)
        }
    }
}
