//! The machines that VMs run on: most stop at once, some are slow, a few take hours.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use app::ports::{
    Clock, ControlVm, ControllerError, SendError, SendOrders, Stopped, TerminationOrder,
};
use domain::{Timestamp, VmId};
use testkit::TestClock;

const MINUTE_MS: i64 = 60_000;

/// A VM controller whose machines are as quick as a hash of the VM's id says.
#[derive(Debug, Clone)]
pub(crate) struct Machines {
    clock: TestClock,
    prompt: bool,
    gone_from: Arc<Mutex<BTreeMap<VmId, Timestamp>>>,
}

impl Machines {
    /// `prompt` ones all stop at once.
    pub(crate) fn new(clock: TestClock, prompt: bool) -> Self {
        Self {
            clock,
            prompt,
            gone_from: Arc::default(),
        }
    }

    /// How long the machine of this VM takes to stop it, in milliseconds.
    fn patience_ms(&self, vm: &VmId) -> i64 {
        if self.prompt {
            return 0;
        }
        let sum = vm.as_str().bytes().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let spread = i64::try_from(sum % 97).unwrap_or(0);
        match sum % 400 {
            0..250 => 0,
            250..397 => spread * 6_000,
            // Past the ten minutes after which it is stuck.
            _ => 12 * MINUTE_MS + spread * MINUTE_MS,
        }
    }
}

impl ControlVm for Machines {
    async fn terminate(&self, order: &TerminationOrder) -> Result<Stopped, ControllerError> {
        let now = self.clock.now();
        let mut all = self.gone_from.lock().unwrap();
        let patience_ms = self.patience_ms(&order.vm);
        let gone_from = *all
            .entry(order.vm.clone())
            .or_insert_with(|| now.plus_ms(patience_ms));
        if now >= gone_from {
            return Ok(Stopped::Gone);
        }
        if order.vm.as_str().ends_with('7') {
            return Err(ControllerError("busy".to_owned()));
        }
        Ok(Stopped::NotYet)
    }
}

/// The queue of orders. Its clones are the same queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<Vec<TerminationOrder>>>);

impl Queue {
    pub(crate) fn take(&self) -> Vec<TerminationOrder> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl SendOrders for Queue {
    async fn send_orders(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        self.0.lock().unwrap().extend_from_slice(orders);
        Ok(())
    }
}
