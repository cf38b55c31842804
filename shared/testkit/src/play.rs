//! A node and its cast over any store, for tests of how things go on as time passes: all that
//! happens on it goes through the use cases, by the right callers, at the clock's instant.

use std::collections::BTreeMap;

use app::capacity::UnitsRequest;
use app::context::Context;
use app::end::ChangeRequest;
use app::nodes::{self, NodeRequest, Termination};
use app::ports::Clock;
use app::react::{Change, ReactError, Reaction, react};
use app::reclaim::Reclaimed;
use app::reservations::{self, ReserveRequest};
use app::sweep::{Rules, Swept, sweep};
use app::terminate::{Outcome, TerminateError, terminate};
use app::vms::{self, Place, VmRequest, Wanted};
use app::{Error, end, reclaim, release, settle, topology};
use domain::audit::Record;
use domain::{
    Caller, Node, NodeId, OrgId, Reservation, ReservationId, Tier, Timestamp, UnitId, UnitSet, Vm,
    VmId,
};

use crate::fixtures::{self, AUDIENCE_ORG, GPU_MODEL, MANAGER_ORG, NODE, OWNER_ORG, id, operator};
use crate::{RecordingOrders, ScriptedController, SeededIds, Store, TestClock};

/// A minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;

/// A platform over a store: its clock, its queue, its VM controller.
#[derive(Debug, Clone)]
pub struct Play<S> {
    /// The store.
    pub store: S,
    /// The clock, set by hand.
    pub clock: TestClock,
    /// The source of all ids.
    pub ids: SeededIds,
    /// The queue of termination orders.
    pub orders: RecordingOrders,
    /// The VM controller.
    pub controller: ScriptedController,
}

impl<S: Store> Play<S> {
    /// A platform without nodes.
    #[must_use]
    pub fn bare(store: S) -> Self {
        Self {
            store,
            clock: TestClock::default(),
            ids: SeededIds::new(11),
            orders: RecordingOrders::default(),
            controller: ScriptedController::default(),
        }
    }

    /// A platform with the node of so many units of one GPU each.
    pub async fn set(store: S, units: usize) -> Self {
        let play = Self::bare(store);
        play.register(NODE, units).await;
        play
    }

    /// Registers another node of so many units.
    pub async fn register(&self, node: &str, units: usize) {
        let request = NodeRequest {
            id: id(node),
            owner: id(OWNER_ORG),
            gpu_model: id(GPU_MODEL),
            units: sizes(0..units),
            topology_gen: 1,
        };
        let context = self.context(operator());
        done(nodes::put(&self.store, &self.clock, &context, request).await);
    }

    /// The instant so many milliseconds from now.
    #[must_use]
    pub fn from_now(&self, ms: i64) -> Timestamp {
        self.clock.now().plus_ms(ms)
    }

    /// A call by `caller` with every permission.
    #[must_use]
    pub fn context(&self, caller: Caller) -> Context {
        fixtures::context(caller, &self.ids)
    }

    /// Has the owner reserve these units of the node.
    ///
    /// # Errors
    /// As [`reservations::create`].
    pub async fn try_reserve(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        starts: Option<Timestamp>,
        ends: Option<Timestamp>,
    ) -> Result<Reservation, Error> {
        let request = ReserveRequest {
            node: id(NODE),
            units: fixtures::unit_set(numbers),
            audience: [id(AUDIENCE_ORG)].into(),
            managers: [id(MANAGER_ORG)].into(),
            starts,
            ends,
            contract_ref: None,
            reason: None,
        };
        self.try_reserve_as(request).await
    }

    /// Has the owner reserve what the request says.
    ///
    /// # Errors
    /// As [`reservations::create`].
    pub async fn try_reserve_as(&self, request: ReserveRequest) -> Result<Reservation, Error> {
        let context = self.context(fixtures::owner());
        let (clock, ids) = (&self.clock, &self.ids);
        reservations::create(&self.store, clock, ids, &context, request, None).await
    }

    /// As [`Self::try_reserve`], where it is allowed. Returns the id.
    pub async fn reserve(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        starts: Option<Timestamp>,
        ends: Option<Timestamp>,
    ) -> ReservationId {
        done(self.try_reserve(numbers, starts, ends).await).id
    }

    fn units_request(
        &self,
        reservation: &ReservationId,
        numbers: impl IntoIterator<Item = usize>,
    ) -> UnitsRequest {
        UnitsRequest {
            node: id(NODE),
            id: reservation.clone(),
            units: fixtures::unit_set(numbers),
            expected: None,
            reason: None,
        }
    }

    /// Has `by` release these units.
    ///
    /// # Errors
    /// As [`release::release`].
    pub async fn release(
        &self,
        reservation: &ReservationId,
        numbers: impl IntoIterator<Item = usize>,
        by: Caller,
    ) -> Result<Reservation, Error> {
        let (context, request) = (self.context(by), self.units_request(reservation, numbers));
        release::release(&self.store, &self.clock, &self.ids, &context, request).await
    }

    /// Has `by` reclaim these units.
    ///
    /// # Errors
    /// As [`reclaim::reclaim`].
    pub async fn reclaim(
        &self,
        reservation: &ReservationId,
        numbers: impl IntoIterator<Item = usize>,
        by: Caller,
    ) -> Result<Reclaimed, Error> {
        let (context, request) = (self.context(by), self.units_request(reservation, numbers));
        reclaim::reclaim(&self.store, &self.clock, &self.ids, &context, request).await
    }

    /// Has `by` ask what a reclaim of these units would do.
    ///
    /// # Errors
    /// As [`reclaim::dry_run`].
    pub async fn dry_run(
        &self,
        reservation: &ReservationId,
        numbers: impl IntoIterator<Item = usize>,
        by: Caller,
    ) -> Result<Reclaimed, Error> {
        let (context, request) = (self.context(by), self.units_request(reservation, numbers));
        reclaim::dry_run(&self.store, &self.clock, &self.ids, &context, request).await
    }

    /// Has an operator end it.
    ///
    /// # Errors
    /// As [`end::end`].
    pub async fn end(&self, reservation: &ReservationId) -> Result<Reservation, Error> {
        let context = self.context(operator());
        let request = change_of(reservation);
        end::end(&self.store, &self.clock, &context, &request, None).await
    }

    /// Has an operator re-affirm it.
    ///
    /// # Errors
    /// As [`reservations::reaffirm`].
    pub async fn reaffirm(&self, reservation: &ReservationId) -> Result<Reservation, Error> {
        let context = self.context(operator());
        let request = change_of(reservation);
        let (clock, ids) = (&self.clock, &self.ids);
        reservations::reaffirm(&self.store, clock, ids, &context, &request, None).await
    }

    /// Has the node's agent report that the node has these units of one GPU each.
    ///
    /// # Errors
    /// As [`topology::report`].
    pub async fn report(&self, numbers: impl IntoIterator<Item = usize>) -> Result<Node, Error> {
        let context = self.context(fixtures::owner());
        let topology_gen = self.node().await.topology_gen + 1;
        let (node, units) = (id(NODE), sizes(numbers));
        let (store, clock, ids) = (&self.store, &self.clock, &self.ids);
        let reported = topology::report(store, clock, ids, &context, &node, topology_gen, &units);
        Ok(reported.await?.node)
    }

    /// Has an org with no part in anything buy exactly these units at spot.
    ///
    /// # Errors
    /// As [`vms::create`].
    pub async fn buy_spot(&self, numbers: impl IntoIterator<Item = usize>) -> Result<Vm, Error> {
        let place = Place::Node(id(NODE), None);
        let units = fixtures::unit_set(numbers);
        self.buy(fixtures::stranger(), Tier::Spot, place, units)
            .await
    }

    /// Has an org of the audience place a VM on exactly these units of its reservation.
    ///
    /// # Errors
    /// As [`vms::create`].
    pub async fn place_tenant(
        &self,
        reservation: &ReservationId,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<Vm, Error> {
        let place = Place::Reservation(id(NODE), reservation.clone());
        let units = fixtures::unit_set(numbers);
        self.buy(fixtures::audience(), Tier::Verified, place, units)
            .await
    }

    /// Has `by` buy exactly these units for its org.
    ///
    /// # Errors
    /// As [`vms::create`].
    pub async fn buy(
        &self,
        by: Caller,
        tier: Tier,
        place: Place,
        units: UnitSet,
    ) -> Result<Vm, Error> {
        let org: OrgId = by.org.clone();
        let request = VmRequest {
            org,
            name: "vm".to_owned(),
            tier,
            wanted: Wanted::Units(units),
            place,
        };
        let context = self.context(by);
        vms::create(&self.store, &self.clock, &self.ids, &context, request, None).await
    }

    /// Has `by` stop a VM.
    ///
    /// # Errors
    /// As [`settle::stop`].
    pub async fn stop(&self, vm: &VmId, by: Caller) -> Result<Vm, Error> {
        let context = self.context(by);
        settle::stop(&self.store, &self.clock, &context, vm).await
    }

    /// Has `by` say that a VM of the node is gone.
    ///
    /// # Errors
    /// As [`settle::confirm`].
    pub async fn confirm(&self, vm: &VmId, by: Caller) -> Result<Vm, Error> {
        let context = self.context(by);
        settle::confirm(&self.store, &self.clock, &context, &id(NODE), vm).await
    }

    /// The condemned VMs of the node, as its agent sees them.
    pub async fn terminations(&self) -> Vec<Termination> {
        let context = self.context(fixtures::owner());
        done(nodes::terminations(&self.store, &context, &id(NODE)).await)
    }

    /// Runs the sweep once, within the ordinary bounds.
    pub async fn sweep(&self) -> Swept {
        self.sweep_within(&Rules::default()).await
    }

    /// Runs the sweep once, within these bounds.
    pub async fn sweep_within(&self, rules: &Rules) -> Swept {
        let (store, orders) = (&self.store, &self.orders);
        done(sweep(store, orders, &self.clock, &self.ids, rules).await)
    }

    /// Has the stream function react to a change.
    ///
    /// # Errors
    /// As [`react()`].
    pub async fn react(&self, change: &Change) -> Result<Reaction, ReactError> {
        react(&self.store, &self.orders, self.clock.now(), change).await
    }

    /// Carries out all orders of the queue once. Those that are to come again stay in it.
    ///
    /// # Panics
    /// If the store fails, or an order names a VM that is not condemned.
    pub async fn carry_out(&self) {
        let mut again = Vec::new();
        for order in self.orders.take() {
            let (store, clock) = (&self.store, &self.clock);
            match terminate(store, &self.controller, clock, &self.ids, &order).await {
                Ok(Outcome::Confirmed | Outcome::NothingToDo) => {}
                Ok(Outcome::NotYet) | Err(TerminateError::Controller(_)) => again.push(order),
                other => unreachable!("{order:?}: {other:?}"),
            }
        }
        self.orders.put_back(again);
    }

    /// The node as it is.
    pub async fn node(&self) -> Node {
        self.node_named(NODE).await
    }

    /// This node as it is.
    pub async fn node_named(&self, node: &str) -> Node {
        let found = done(self.store.load_node(&id::<NodeId>(node)).await);
        found.unwrap_or_else(|| unreachable!("{node} is registered"))
    }

    /// This reservation of the node as it is.
    pub async fn reservation(&self, reservation: &ReservationId) -> Reservation {
        let found = done(self.store.load_reservation(&id(NODE), reservation).await);
        found.unwrap_or_else(|| unreachable!("{reservation} was made"))
    }

    /// This VM as it is.
    pub async fn vm(&self, vm: &VmId) -> Vm {
        let found = done(self.store.load_vm(vm).await);
        found.unwrap_or_else(|| unreachable!("{vm} was placed"))
    }

    /// The audit trail of this reservation, oldest first.
    pub async fn trail(&self, reservation: &ReservationId) -> Vec<Record> {
        done(self.store.list_records(reservation, None, 10_000).await).items
    }
}

fn change_of(reservation: &ReservationId) -> ChangeRequest {
    ChangeRequest {
        node: id(NODE),
        id: reservation.clone(),
        expected: None,
        reason: None,
    }
}

/// These units with one GPU each.
fn sizes(numbers: impl IntoIterator<Item = usize>) -> BTreeMap<UnitId, u16> {
    let units = fixtures::units(numbers);
    units.into_iter().map(|unit| (unit, 1)).collect()
}

/// What must go well for a test to run at all.
fn done<T, E: Into<Error>>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        let error: Error = error.into();
        unreachable!("the play goes by what works: {error:?}")
    })
}
