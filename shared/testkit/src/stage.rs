//! The scene that tests over the engine play on: the node, its reservation, the cast with their
//! keys. What happens on it happens through the real store, with the same ids and instants in every
//! run, so that two stages on which the same happened hold the same.

#[cfg(feature = "runtime-api")]
mod functions;

use app::auth::{Permission, SecretKey};
use app::capacity::UnitsRequest;
use app::context::Context;
use app::end::ChangeRequest;
use app::ports::{
    Commit, CondemnVm, Custodian, CustodyMove, Ids, LoadNode, LoadReservations, LoadVms,
    MoveCustody, PlaceVm, PutKey, PutNode, ReadAudit, Write,
};
use app::reclaim::Reclaimed;
use app::{Error, end, reclaim, release, settle};
use domain::audit::Record;
use domain::stamp::Actor;
use domain::vm::Sentence;
use domain::{Caller, Node, Reservation, Stamp, Timestamp, Vm, WriteId};
use dynamo::DynamoStore;

use crate::engine::Engine;
use crate::fixtures::{
    self, NODE, RESERVATION, audience, id, manager, operator, owner, stranger, unit_set,
};
use crate::{SeededIds, TestClock};

#[cfg(feature = "runtime-api")]
pub use functions::{
    QUEUE_URL, assert_connects_at_start, assert_http_init, assert_needs,
    assert_outlives_bad_events, recorded,
};

/// Units of the node.
pub const UNITS: usize = 6;
/// Units of it that [`Stage::set`] reserves: the first ones.
pub const RESERVED: usize = 4;

/// The engine with the node and the keys of the cast, and a clock that stands still.
#[derive(Debug)]
pub struct Stage {
    engine: Engine,
    clock: TestClock,
    ids: SeededIds,
}

/// The secret of the key that a caller of the cast holds.
#[must_use]
pub fn key_of(caller: &Caller) -> SecretKey {
    let cast = cast();
    let place = cast.iter().position(|member| member == caller);
    let number = place.and_then(|place| u8::try_from(place).ok());
    fixtures::secret(number.unwrap_or(u8::MAX))
}

fn cast() -> [Caller; 5] {
    [operator(), owner(), manager(), audience(), stranger()]
}

/// When the reservation starts: long ago by any machine's clock.
fn long_ago() -> Timestamp {
    Timestamp::from_unix_ms(1_577_836_800_000)
}

impl Stage {
    /// The node with all its units in the pool.
    pub async fn bare() -> Self {
        let stage = Self {
            engine: Engine::start().await,
            clock: TestClock::default(),
            ids: SeededIds::new(7),
        };
        let store = stage.store();
        for caller in cast() {
            let key = fixtures::api_key(&caller, &Permission::ALL);
            let put = store.put_key(&key_of(&caller).digest(), &key).await;
            assert_eq!(done(put), Commit::Done);
        }
        let (node, write) = (fixtures::node(UNITS), fixtures::write(0xe001));
        assert_eq!(done(store.put_node(&node, &write).await), Write::Done(()));
        stage
    }

    /// The node with its reservation over the first [`RESERVED`] units.
    pub async fn set() -> Self {
        let stage = Self::bare().await;
        stage.reserve(RESERVATION, 0..RESERVED).await;
        stage
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The store over it.
    #[must_use]
    pub fn store(&self) -> DynamoStore {
        self.engine.store()
    }

    /// The clock of all that happens here.
    #[must_use]
    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// Fresh ids.
    #[must_use]
    pub fn ids(&self) -> &SeededIds {
        &self.ids
    }

    /// A call by this caller, who may do everything that a key can allow.
    #[must_use]
    pub fn context(&self, caller: Caller) -> Context {
        fixtures::context(caller, &self.ids)
    }

    fn stamp(&self, caller: Caller) -> Stamp {
        let request_id = self.ids.uuid();
        let write = WriteId::parse(&request_id[request_id.len() - WriteId::DIGITS..]);
        let write = write.unwrap_or_else(|| unreachable!("{request_id} ends in digits"));
        Stamp {
            actor: Actor::Caller(caller),
            write,
            request_id,
            reason: None,
            now: fixtures::now(),
        }
    }

    /// Has the node's owner reserve these units under this id, in effect at once.
    pub async fn reserve(&self, reservation: &str, numbers: impl IntoIterator<Item = usize>) {
        let mut command = fixtures::reserve_command(numbers);
        command.id = id(reservation);
        command.starts = Some(long_ago());
        command.stamp = self.stamp(owner());
        let before = self.node().await;
        let (reservation, node) = fixtures::reserve_with(&before, &command);
        let change = CustodyMove {
            node_seen: before.version,
            node,
            reservation_seen: None,
            reservation,
            write: command.stamp.write,
        };
        assert_eq!(done(self.store().move_custody(&change).await), Commit::Done);
    }

    fn request(numbers: impl IntoIterator<Item = usize>) -> UnitsRequest {
        UnitsRequest {
            node: id(NODE),
            id: id(RESERVATION),
            units: unit_set(numbers),
            expected: None,
            reason: None,
        }
    }

    /// Has the manager put these units of the reservation on the market.
    pub async fn release(&self, numbers: impl IntoIterator<Item = usize>) {
        let (context, request) = (self.context(manager()), Self::request(numbers));
        done(release::release(&self.store(), &self.clock, &self.ids, &context, request).await);
    }

    /// Has the manager take these units back.
    pub async fn reclaim(&self, numbers: impl IntoIterator<Item = usize>) -> Reclaimed {
        let (context, request) = (self.context(manager()), Self::request(numbers));
        done(reclaim::reclaim(&self.store(), &self.clock, &self.ids, &context, request).await)
    }

    /// Has an operator end the reservation.
    pub async fn end(&self) {
        let context = self.context(operator());
        let request = ChangeRequest {
            node: id(NODE),
            id: id(RESERVATION),
            expected: None,
            reason: None,
        };
        done(end::end(&self.store(), &self.clock, &context, &request, None).await);
    }

    /// Whether this VM of [`fixtures::vm`] takes its seats on the reservation's units.
    pub async fn seat(&self, vm: &Vm) -> bool {
        self.sit(vm, Custodian::Reservation(id(RESERVATION))).await
    }

    /// Whether this VM of [`fixtures::vm`] takes its seats in the pool.
    pub async fn seat_in_pool(&self, vm: &Vm) -> bool {
        self.sit(vm, Custodian::Pool).await
    }

    async fn sit(&self, vm: &Vm, custodian: Custodian) -> bool {
        let mut vm = vm.clone();
        if let Custodian::Reservation(reservation) = &custodian {
            vm.reservation = Some(reservation.clone());
        }
        let stamp = self.stamp(Caller {
            org: vm.org.clone(),
            ..stranger()
        });
        done(self.store().place(&vm, &custodian, &stamp).await) == Commit::Done
    }

    /// Has its own org stop this VM.
    pub async fn stop(&self, name: &str) {
        let context = self.context(stranger());
        done(settle::stop(&self.store(), &self.clock, &context, &id(name)).await);
    }

    /// Has the platform confirm that this VM is gone.
    pub async fn confirm(&self, name: &str) {
        done(settle::confirm_as_system(&self.store(), &self.clock, &self.ids, &id(name)).await);
    }

    /// Marks this VM as condemned by the reservation's present version, as the stream function
    /// does.
    pub async fn condemn(&self, name: &str) {
        let sentence = Sentence {
            reservation: Some(id(RESERVATION)),
            version: self.reservation().await.version,
            at: fixtures::now(),
        };
        let store = self.store();
        let condemned = store.condemn(&id(name), &sentence, "reclaimed").await;
        assert!(done(condemned).is_some(), "{name} is placed");
    }

    /// The node as it is.
    pub async fn node(&self) -> Node {
        let found = done(self.store().load_node(&id(NODE)).await);
        found.unwrap_or_else(|| unreachable!("the node is registered"))
    }

    /// The reservation as it is.
    pub async fn reservation(&self) -> Reservation {
        let store = self.store();
        let found = done(store.load_reservation(&id(NODE), &id(RESERVATION)).await);
        found.unwrap_or_else(|| unreachable!("the reservation is there"))
    }

    /// This VM as it is.
    pub async fn vm(&self, name: &str) -> Vm {
        let found = self.find_vm(name).await;
        found.unwrap_or_else(|| unreachable!("{name} is placed"))
    }

    /// This VM as it is; `None` if it was never placed.
    pub async fn find_vm(&self, name: &str) -> Option<Vm> {
        done(self.store().load_vm(&id(name)).await)
    }

    /// The audit trail of this reservation, oldest first.
    pub async fn trail(&self, reservation: &str) -> Vec<Record> {
        let store = self.store();
        done(store.list_records(&id(reservation), None, 1_000).await).items
    }
}

/// What must go well for a test to run at all.
fn done<T, E: Into<Error>>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        let error: Error = error.into();
        unreachable!("the stage is set by what works: {error:?}")
    })
}
