//! The ways out of the platform: termination orders that are kept, and a VM controller by script.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use app::ports::{ControlVm, ControllerError, SendError, SendOrders, Stopped, TerminationOrder};
use domain::VmId;

use crate::halt::Halt;

/// A test that panicked elsewhere does not make the state unreadable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Sent {
    orders: Vec<TerminationOrder>,
    failures_left: u32,
    calls: u32,
}

/// Keeps the orders that were sent. Its clones keep the same ones.
#[derive(Debug, Clone, Default)]
pub struct RecordingOrders {
    sent: Arc<Mutex<Sent>>,
    halt: Halt,
}

impl RecordingOrders {
    /// One whose calls stop where those that share `halt` do.
    #[must_use]
    pub fn halting(halt: &Halt) -> Self {
        Self {
            halt: halt.clone(),
            ..Self::default()
        }
    }

    /// Takes the orders off, in order.
    #[must_use]
    pub fn take(&self) -> Vec<TerminationOrder> {
        std::mem::take(&mut lock(&self.sent).orders)
    }

    /// Makes the next `times` calls fail; a failed call keeps none of its orders.
    pub fn fail_next(&self, times: u32) {
        lock(&self.sent).failures_left = times;
    }

    /// The orders that were taken, in order.
    #[must_use]
    pub fn sent(&self) -> Vec<TerminationOrder> {
        lock(&self.sent).orders.clone()
    }

    /// The VMs of the orders that were taken, in order.
    #[must_use]
    pub fn vms(&self) -> Vec<VmId> {
        let sent = lock(&self.sent);
        sent.orders.iter().map(|order| order.vm.clone()).collect()
    }

    /// Puts orders back, behind the others.
    pub fn put_back(&self, orders: Vec<TerminationOrder>) {
        lock(&self.sent).orders.extend(orders);
    }

    fn take_in(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        let mut sent = lock(&self.sent);
        sent.calls += 1;
        if sent.failures_left > 0 {
            sent.failures_left -= 1;
            return Err(SendError("told to fail".to_owned()));
        }
        sent.orders.extend_from_slice(orders);
        Ok(())
    }

    /// How many calls there were, failed ones among them.
    #[must_use]
    pub fn calls(&self) -> u32 {
        lock(&self.sent).calls
    }
}

impl SendOrders for RecordingOrders {
    async fn send_orders(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        self.halt.point().await;
        let taken = self.take_in(orders);
        self.halt.point().await;
        taken
    }
}

/// One answer of the scripted controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The VM is gone.
    Gone,
    /// It is on its way.
    NotYet,
    /// The controller fails.
    Fail,
}

#[derive(Debug, Default)]
struct Script {
    steps: BTreeMap<VmId, VecDeque<Step>>,
    orders: Vec<TerminationOrder>,
}

/// A VM controller that answers by script: for each VM its steps in order, the last of them for
/// good; [`Step::Gone`] for a VM without a script. Its clones share script and calls.
#[derive(Debug, Clone, Default)]
pub struct ScriptedController {
    script: Arc<Mutex<Script>>,
}

impl ScriptedController {
    /// Sets the answers for a VM.
    pub fn script(&self, vm: &VmId, steps: &[Step]) {
        let steps = steps.iter().copied().collect();
        lock(&self.script).steps.insert(vm.clone(), steps);
    }

    /// The orders it was given, in order.
    #[must_use]
    pub fn orders(&self) -> Vec<TerminationOrder> {
        lock(&self.script).orders.clone()
    }

    /// How often it was told to stop this VM.
    #[must_use]
    pub fn calls(&self, vm: &VmId) -> usize {
        let script = lock(&self.script);
        script.orders.iter().filter(|order| order.vm == *vm).count()
    }
}

impl ControlVm for ScriptedController {
    async fn terminate(&self, order: &TerminationOrder) -> Result<Stopped, ControllerError> {
        let mut script = lock(&self.script);
        script.orders.push(order.clone());
        let step = match script.steps.get_mut(&order.vm) {
            None => Step::Gone,
            Some(steps) if steps.len() > 1 => steps.pop_front().unwrap_or(Step::Gone),
            Some(steps) => steps.front().copied().unwrap_or(Step::Gone),
        };
        match step {
            Step::Gone => Ok(Stopped::Gone),
            Step::NotYet => Ok(Stopped::NotYet),
            Step::Fail => Err(ControllerError("told to fail".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NODE, id};
    use domain::Version;

    fn order(vm: &str) -> TerminationOrder {
        TerminationOrder {
            vm: id(vm),
            node: id(NODE),
            reservation: None,
            version: Version::FIRST,
        }
    }

    #[tokio::test]
    async fn orders_are_kept_unless_the_call_was_to_fail() {
        let orders = RecordingOrders::default();
        orders.fail_next(1);
        assert!(orders.send_orders(&[order("a")]).await.is_err());
        assert!(orders.sent().is_empty());
        assert!(
            orders
                .clone()
                .send_orders(&[order("a"), order("b")])
                .await
                .is_ok()
        );
        assert_eq!(orders.vms(), [id("a"), id("b")]);
        assert_eq!(orders.calls(), 2);
    }

    #[tokio::test]
    async fn the_controller_follows_its_script_and_stays_at_its_end() {
        let controller = ScriptedController::default();
        controller.script(&id("a"), &[Step::Fail, Step::NotYet, Step::Gone]);
        assert!(controller.terminate(&order("a")).await.is_err());
        assert_eq!(controller.terminate(&order("a")).await, Ok(Stopped::NotYet));
        assert_eq!(controller.terminate(&order("a")).await, Ok(Stopped::Gone));
        assert_eq!(controller.terminate(&order("a")).await, Ok(Stopped::Gone));
        assert_eq!(controller.terminate(&order("b")).await, Ok(Stopped::Gone));
        assert_eq!(
            (controller.calls(&id("a")), controller.calls(&id("b"))),
            (4, 1)
        );
    }
}
