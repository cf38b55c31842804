//! What the use cases need of the world: one small trait for each thing, so that a function's type
//! says which rights it must have.

mod lists;

use std::future::Future;

use domain::audit::Record;
use domain::node::Node;
use domain::reservation::{Reclaim, Release, Reservation};
use domain::stamp::{ActionKind, Stamp, WriteId};
use domain::vm::{Sentence, Vm};
use domain::{
    GpuModelId, KeyId, NodeId, OrgId, ReservationId, Timestamp, UnitId, Version, VmId, VmStatus,
};
use std::collections::BTreeSet;

use crate::auth::{ApiKey, KeyDigest};
use crate::error::StoreError;
use crate::grant::Keeper;
use crate::idempotency::{IdempotencyKey, Kept, OnceCommit};

pub use lists::{ListModels, ListNodes, ListOrgReservations, LoadCustodians, Part};

/// Result of a call to the store.
pub type StoreResult<T> = Result<T, StoreError>;

/// What a conditional write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write<T, I = T> {
    /// The condition held, now or at an earlier try of the same write.
    Done(T),
    /// The condition did not hold; this is the item as it stood.
    Refused(I),
    /// There is no such item.
    Absent,
}

/// A write that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The reservation after the write; later still if a reply was lost and others wrote since.
    pub image: Reservation,
    /// The version that this write made.
    pub version: Version,
}

/// Whether a transaction went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// It did, now or at an earlier try of the same write.
    Done,
    /// An item had changed since it was read, or was not as required.
    Lost,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, K> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// Where the next page starts: after this key. `None` at the end.
    pub next: Option<K>,
}

/// Who holds a unit of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Custodian {
    /// The node's public pool.
    Pool,
    /// This reservation.
    Reservation(ReservationId),
}

/// The clock that everything is judged by, UTC.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// A source of fresh ids.
pub trait Ids: Send + Sync + 'static {
    /// A fresh UUID, version 7, in its hyphenated form.
    fn uuid(&self) -> String;
}

/// Reads an API key by the digest of its secret, strongly consistent.
pub trait LoadKey: Send + Sync {
    /// `None` if no such key was ever made.
    fn load_key(
        &self,
        digest: &KeyDigest,
    ) -> impl Future<Output = StoreResult<Option<ApiKey>>> + Send;
}

/// A source of random bytes that nobody can foresee.
pub trait Random: Send + Sync + 'static {
    /// Fresh bytes, as many as a secret is made of.
    ///
    /// # Errors
    /// [`NoRandom`]: then no secret may be made.
    fn random(&self) -> Result<[u8; 32], NoRandom>;
}

/// The machine has no random bytes to give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes: {0}")]
pub struct NoRandom(pub String);

/// Writes a new API key.
pub trait PutKey: Send + Sync {
    /// Stores it under the digest of its secret, and under its id in the list of its org, if there
    /// is neither. The same key put again is [`Commit::Done`] and changes nothing.
    fn put_key(
        &self,
        digest: &KeyDigest,
        key: &ApiKey,
    ) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// Lists an org's API keys in order of their ids, which is the order they were made in.
pub trait ListKeys: Send + Sync {
    /// At most `limit` of them, those after `after`, revoked ones too; strongly consistent.
    fn list_keys(
        &self,
        org: &OrgId,
        after: Option<&KeyId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<ApiKey, KeyId>>> + Send;
}

/// Revokes API keys: one conditional write.
pub trait RevokeKey: Send + Sync {
    /// Revokes the org's key of this id at `at` if [`Keeper::check`] allows it. A key that is
    /// revoked already keeps its instant.
    fn revoke_key(
        &self,
        org: &OrgId,
        id: &KeyId,
        keeper: Keeper,
        at: Timestamp,
    ) -> impl Future<Output = StoreResult<Write<ApiKey>>> + Send;
}

/// Reads a node, strongly consistent.
pub trait LoadNode: Send + Sync {
    /// `None` if it is not registered.
    fn load_node(&self, id: &NodeId) -> impl Future<Output = StoreResult<Option<Node>>> + Send;
}

/// Registers a node.
pub trait PutNode: Send + Sync {
    /// Writes it if there is none of that id; never [`Write::Absent`].
    fn put_node(
        &self,
        node: &Node,
        write: &WriteId,
    ) -> impl Future<Output = StoreResult<Write<(), Node>>> + Send;
}

/// Reads reservations of a node, strongly consistent.
pub trait LoadReservations: Send + Sync {
    /// `None` if there is none of that id on that node.
    fn load_reservation(
        &self,
        node: &NodeId,
        id: &ReservationId,
    ) -> impl Future<Output = StoreResult<Option<Reservation>>> + Send;

    /// Those of `ids` that exist, in order of their ids.
    fn load_reservations(
        &self,
        node: &NodeId,
        ids: &BTreeSet<ReservationId>,
    ) -> impl Future<Output = StoreResult<Vec<Reservation>>> + Send;
}

/// Lists a node's reservations in order of their ids.
pub trait ListReservations: Send + Sync {
    /// At most `limit` of them, those after `after`.
    fn list_reservations(
        &self,
        node: &NodeId,
        after: Option<&ReservationId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<Reservation, ReservationId>>> + Send;
}

/// Releases units: one conditional write.
pub trait ReleaseUnits: Send + Sync {
    /// Applies the command if [`domain::reservation::release`] allows it.
    fn release(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Release,
    ) -> impl Future<Output = StoreResult<Write<Landed, Reservation>>> + Send;
}

/// Reclaims units: one conditional write.
pub trait ReclaimUnits: Send + Sync {
    /// Applies the command if [`domain::reservation::reclaim`] allows it.
    fn reclaim(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Reclaim,
    ) -> impl Future<Output = StoreResult<Write<Landed, Reservation>>> + Send;
}

/// A reservation and its node, changed together because slots move between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustodyMove {
    /// The node's version as it was read.
    pub node_seen: Version,
    /// The node after the move.
    pub node: Node,
    /// The reservation's version as it was read; `None` for a new one.
    pub reservation_seen: Option<Version>,
    /// The reservation after the move.
    pub reservation: Reservation,
    /// The write.
    pub write: WriteId,
}

impl CustodyMove {
    /// The move that makes `after` out of a reservation and its node as they were read.
    #[must_use]
    pub fn of(
        (reservation, node): (&Reservation, &Node),
        after: (Reservation, Node),
        write: WriteId,
    ) -> Self {
        Self {
            node_seen: node.version,
            node: after.1,
            reservation_seen: Some(reservation.version),
            reservation: after.0,
            write,
        }
    }
}

/// Moves slots between a node and a reservation: one transaction.
pub trait MoveCustody: Send + Sync {
    /// Writes both items if both still have the versions that were read.
    fn move_custody(
        &self,
        change: &CustodyMove,
    ) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// A reservation after a change that was decided on its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Its version as it was read.
    pub seen: Version,
    /// The reservation after the change.
    pub reservation: Reservation,
    /// The write.
    pub write: WriteId,
}

/// Writes that keep the answer to their call, all in one transaction. None of them is done if a
/// call with the same key has been answered before and that still counts.
pub trait Once: Send + Sync {
    /// What is kept under this key, strongly consistent; also what does not count any more.
    fn load_kept(
        &self,
        org: &OrgId,
        key: &IdempotencyKey,
    ) -> impl Future<Output = StoreResult<Option<Kept>>> + Send;

    /// Writes the reservation if it still has the version that was read.
    fn replace_once(
        &self,
        change: &Replacement,
        kept: &Kept,
    ) -> impl Future<Output = StoreResult<OnceCommit>> + Send;

    /// As [`MoveCustody::move_custody`].
    fn move_custody_once(
        &self,
        change: &CustodyMove,
        kept: &Kept,
    ) -> impl Future<Output = StoreResult<OnceCommit>> + Send;

    /// As [`PlaceVm::place`].
    fn place_once(
        &self,
        vm: &Vm,
        custodian: &Custodian,
        stamp: &Stamp,
        kept: &Kept,
    ) -> impl Future<Output = StoreResult<OnceCommit>> + Send;
}

/// A node with the reservations that its new topology puts under review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyChange {
    /// The node's version as it was read.
    pub node_seen: Version,
    /// The node after the report.
    pub node: Node,
    /// The reservations after it; each was read at the version before its own.
    pub reviewed: Vec<Reservation>,
    /// The write.
    pub write: WriteId,
}

/// Writes a new topology: one transaction.
pub trait ChangeTopology: Send + Sync {
    /// Writes the node and all the reservations if each still has the version that was read.
    fn change_topology(
        &self,
        change: &TopologyChange,
    ) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// Something that is looked at when it is due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A node: VMs in its pool are condemned.
    Node(NodeId),
    /// A reservation of a node: a boundary of its term has come, or VMs on its units are condemned.
    Reservation(NodeId, ReservationId),
}

impl Subject {
    /// The node that it is or belongs to.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        match self {
            Subject::Node(node) | Subject::Reservation(node, _) => node,
        }
    }
}

/// Something that is due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Since when.
    pub at: Timestamp,
    /// What.
    pub subject: Subject,
}

/// Finds what is due.
pub trait FindDue: Send + Sync {
    /// At most `limit` of what is due by `now`, the longest due first. May lag behind writes.
    fn find_due(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<Due>>> + Send;
}

/// Sets when something is to be looked at again. That is no change of it: its version stays.
pub trait LookAgain: Send + Sync {
    /// Sets the instant, or that there is none, if the version is still the one that was seen.
    fn look_again(
        &self,
        subject: &Subject,
        seen: Version,
        at: Option<Timestamp>,
    ) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// Reads VMs, strongly consistent.
pub trait LoadVms: Send + Sync {
    /// `None` if there never was one of that id.
    fn load_vm(&self, id: &VmId) -> impl Future<Output = StoreResult<Option<Vm>>> + Send;

    /// Those of `ids` that exist, in order of their ids.
    fn load_vms(&self, ids: &BTreeSet<VmId>) -> impl Future<Output = StoreResult<Vec<Vm>>> + Send;
}

/// Lists an org's VMs in order of their ids, which is the order they were placed in.
pub trait ListVms: Send + Sync {
    /// At most `limit` of them, those after `after`. May lag behind writes.
    fn list_vms(
        &self,
        org: &OrgId,
        after: Option<&VmId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<Vm, VmId>>> + Send;
}

/// Places a VM: one transaction over the VM and the custodian of its units.
pub trait PlaceVm: Send + Sync {
    /// Seats the VM if [`domain::reservation::place::place`] or [`Node::place`] allows it.
    fn place(
        &self,
        vm: &Vm,
        custodian: &Custodian,
        stamp: &Stamp,
    ) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// How the life of a seated VM goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleKind {
    /// It is told to stop: its seats are marked as dying.
    Stop,
    /// Its stop is confirmed: its seats become free.
    Confirm,
    /// Its stop is overdue: that is noted where it sits, and nothing else changes.
    Stuck,
}

impl SettleKind {
    /// What is done to the reservations that it concerns.
    #[must_use]
    pub fn action(self) -> ActionKind {
        match self {
            SettleKind::Stop => ActionKind::Stop,
            SettleKind::Confirm => ActionKind::Confirm,
            SettleKind::Stuck => ActionKind::Stuck,
        }
    }
}

/// A change of a VM together with all of its seats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Which change.
    pub kind: SettleKind,
    /// The VM after it.
    pub vm: Vm,
    /// The VM's status as it was read; the change needs it unchanged.
    pub seen: VmStatus,
    /// Who holds its seats, and which units those are.
    pub seats: Vec<(Custodian, BTreeSet<UnitId>)>,
    /// A reservation that condemned it earlier and holds none of its seats now: what becomes of the
    /// VM is written there too, so that its audit trail tells the end.
    pub note: Option<ReservationId>,
    /// Who, when, why.
    pub stamp: Stamp,
}

/// Stops a VM or confirms its stop: one transaction over the VM and the custodians of its seats.
pub trait SettleVm: Send + Sync {
    /// Applies the change if every seat is still where it was read.
    fn settle(&self, change: &Settlement) -> impl Future<Output = StoreResult<Commit>> + Send;
}

/// Marks a VM as terminating.
pub trait CondemnVm: Send + Sync {
    /// Moves the VM from running to terminating, if it is running. Returns it as it is then; `None`
    /// if there is no such VM.
    fn condemn(
        &self,
        id: &VmId,
        sentence: &Sentence,
        reason: &str,
    ) -> impl Future<Output = StoreResult<Option<Vm>>> + Send;
}

/// Counts how often a VM's node was told to stop it.
pub trait CountAttempt: Send + Sync {
    /// One more.
    fn count_attempt(&self, id: &VmId) -> impl Future<Output = StoreResult<()>> + Send;
}

/// An order to terminate one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminationOrder {
    /// The VM.
    pub vm: VmId,
    /// Its node.
    pub node: NodeId,
    /// The reservation whose change condemned it; `None` for the public pool.
    pub reservation: Option<ReservationId>,
    /// The custodian's version that condemned it: the controller refuses an older order.
    pub version: Version,
}

/// Sends termination orders on their way.
pub trait SendOrders: Send + Sync {
    /// Sends all of them, or fails: a partial failure is a failure.
    fn send_orders(
        &self,
        orders: &[TerminationOrder],
    ) -> impl Future<Output = Result<(), SendError>> + Send;
}

/// Orders that were not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("termination orders were not taken: {0}")]
pub struct SendError(pub String);

/// What the VM controller says of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It is gone, or was gone already.
    Gone,
    /// It is on its way; ask again.
    NotYet,
}

/// The controller did not answer, or not with something that means "gone" or "not yet".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("VM controller: {0}")]
pub struct ControllerError(pub String);

/// Drives the machines on which VMs run.
pub trait ControlVm: Send + Sync {
    /// Tells the VM's machine to stop it.
    fn terminate(
        &self,
        order: &TerminationOrder,
    ) -> impl Future<Output = Result<Stopped, ControllerError>> + Send;
}

/// Reads the audit trail.
pub trait ReadAudit: Send + Sync {
    /// The last record of a reservation before the records of `version`, strongly consistent.
    fn last_record_before(
        &self,
        id: &ReservationId,
        version: Version,
    ) -> impl Future<Output = StoreResult<Option<Record>>> + Send;

    /// At most `limit` records after the one with key `after`, oldest first.
    fn list_records(
        &self,
        id: &ReservationId,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<Record, String>>> + Send;
}

/// What writing an audit record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is there now.
    Written,
    /// The same record was there before.
    Same,
    /// Another record stands in its place: an alarm.
    Different,
}

/// Writes the audit trail: appends only.
pub trait PutAudit: Send + Sync {
    /// Adds the record if there is none in its place.
    fn put_record(&self, record: &Record) -> impl Future<Output = StoreResult<Recorded>> + Send;
}

/// Finds custodians that may have units of a model to sell: all of its nodes, since what their
/// reservations keep for an audience is found by them, and reservations that release units.
pub trait FindMarket: Send + Sync {
    /// At most `limit` hints in no promised order, different from call to call with `spread`; each
    /// may be stale.
    fn find_market(
        &self,
        model: &GpuModelId,
        spread: &WriteId,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<(NodeId, Custodian)>>> + Send;
}
