//! The sweep: looks after everything that is due. Terms begin and end, and what was condemned and
//! is not gone is ordered to stop once more, whatever became of earlier events.
//!
//! It holds nothing between runs: whatever it does not finish is still due. Each item goes by its
//! own condition, and one that fails stops no other.

use std::collections::{BTreeMap, BTreeSet};

use domain::limits::{DRAIN_CHECK_AFTER_MS, STUCK_AFTER_MS};
use domain::slot::{Condemned, condemned};
use domain::vm::Sentence;
use domain::{NodeId, Reservation, ReservationId, Timestamp, Version, Vm, VmId};
use domain::{Slots, VmStatus, slot::Offer};
use futures_util::StreamExt as _;

use crate::error::{Error, StoreError};
use crate::ports::{
    Clock, CondemnVm, Due, FindDue, Ids, LookAgain, PutAudit, ReadAudit, SendError, SendOrders,
    Subject, TerminationOrder,
};
use crate::react::{ReactError, condemned_by, status_reason};
use crate::settle::{SettleStore, mark_stuck};
use crate::terms::{Passed, TermStore, pass};
use crate::trail::{Tail, close_tail};

/// The bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Most items that one run looks at.
    pub items_max: usize,
    /// Longest time after which a run takes on no further item, in milliseconds.
    pub run_ms_max: i64,
    /// How long a condemned VM may stay unconfirmed before it counts as stuck, in milliseconds.
    pub stuck_after_ms: i64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            items_max: 2_000,
            run_ms_max: 40_000,
            stuck_after_ms: STUCK_AFTER_MS,
        }
    }
}

/// Nodes that are looked after at the same time. What is due on one node goes one by one: it would
/// only get in its own way.
const NODES_AT_ONCE: usize = 8;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Items looked at.
    pub items: usize,
    /// Reservations that became active.
    pub activated: usize,
    /// Reservations that took their units to withhold them.
    pub withheld: usize,
    /// Reservations that expired.
    pub expired: usize,
    /// Termination orders sent again.
    pub orders: usize,
    /// Condemned VMs seen that are not gone.
    pub draining: usize,
    /// Those of them whose stop is overdue.
    pub stuck: usize,
    /// Audit trails whose end was told as lost.
    pub gaps: usize,
    /// Items that could not be finished. They are still due, or soon again.
    pub failed: usize,
    /// Items found due that were not taken on; one more than the bound is looked for, no further.
    pub left: usize,
    /// Whether more was due than the run could take on.
    pub behind: bool,
    /// How long the longest due item had been due when the run began, in milliseconds.
    pub lag_ms: i64,
}

impl Swept {
    fn add(&mut self, other: &Swept) {
        self.items += other.items;
        self.activated += other.activated;
        self.withheld += other.withheld;
        self.expired += other.expired;
        self.orders += other.orders;
        self.draining += other.draining;
        self.stuck += other.stuck;
        self.gaps += other.gaps;
        self.failed += other.failed;
        self.behind |= other.behind;
    }
}

/// Why an item could not be finished.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    UseCase(Error),
    Reaction(ReactError),
}

impl Trouble {
    fn for_log(&self) -> String {
        match self {
            Trouble::UseCase(error) => error.for_log(),
            Trouble::Reaction(error) => error.to_string(),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::UseCase(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::UseCase(error.into())
    }
}

impl From<ReactError> for Trouble {
    fn from(error: ReactError) -> Self {
        Trouble::Reaction(error)
    }
}

impl From<SendError> for Trouble {
    fn from(error: SendError) -> Self {
        Trouble::Reaction(error.into())
    }
}

/// The ports that the sweep needs of the store.
pub trait SweepStore:
    FindDue + LookAgain + TermStore + SettleStore + CondemnVm + ReadAudit + PutAudit
{
}
impl<T> SweepStore for T where
    T: FindDue + LookAgain + TermStore + SettleStore + CondemnVm + ReadAudit + PutAudit
{
}

/// Looks after everything that is due now, the longest due first, within the rules' bounds.
///
/// # Errors
/// What is due cannot be found; failures of single items are counted and logged.
pub async fn sweep(
    store: &impl SweepStore,
    orders: &impl SendOrders,
    clock: &impl Clock,
    ids: &impl Ids,
    rules: &Rules,
) -> Result<Swept, Error> {
    let began = clock.now();
    let mut due = store
        .find_due(began, rules.items_max.saturating_add(1))
        .await?;
    let mut swept = Swept {
        behind: due.len() > rules.items_max,
        lag_ms: due
            .first()
            .map_or(0, |first| began.unix_ms() - first.at.unix_ms()),
        ..Swept::default()
    };
    let found = due.len();
    due.truncate(rules.items_max);
    let nodes = by_node(due);
    let run = Run {
        store,
        orders,
        clock,
        ids,
        rules,
        full: swept.behind,
        pressed: began.plus_ms(rules.run_ms_max / 2),
        until: began.plus_ms(rules.run_ms_max),
    };
    let each = nodes.into_iter().map(|due| run.node(due));
    let mut each = futures_util::stream::iter(each).buffer_unordered(NODES_AT_ONCE);
    while let Some(of_node) = each.next().await {
        swept.add(&of_node);
    }
    swept.left = found.saturating_sub(swept.items);
    Ok(swept)
}

/// What is due on each node, in order. The node that waits longest comes first, so that a run which
/// is cut short leaves what can wait best, and not always the same.
fn by_node(due: Vec<Due>) -> Vec<Vec<Due>> {
    let mut places: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut nodes: Vec<Vec<Due>> = Vec::new();
    for due in due {
        let place = *places
            .entry(due.subject.node().clone())
            .or_insert(nodes.len());
        match nodes.get_mut(place) {
            Some(node) => node.push(due),
            None => nodes.push(vec![due]),
        }
    }
    nodes
}

/// What all of a run has at hand.
struct Run<'a, S, Q, C, I> {
    store: &'a S,
    orders: &'a Q,
    clock: &'a C,
    ids: &'a I,
    rules: &'a Rules,
    /// Whether more is due than it looks at.
    full: bool,
    /// From when on its time may be too short.
    pressed: Timestamp,
    /// From when on it takes on no further item.
    until: Timestamp,
}

/// Units in one custodian's hands, to be looked through for VMs that should be gone.
struct Custody<'a> {
    node: &'a NodeId,
    reservation: Option<&'a ReservationId>,
    version: Version,
    slots: &'a Slots,
    offer: Offer<'a>,
}

impl<S, Q, C, I> Run<'_, S, Q, C, I>
where
    S: SweepStore,
    Q: SendOrders,
    C: Clock,
    I: Ids,
{
    /// Looks after what is due on one node.
    async fn node(&self, due: Vec<Due>) -> Swept {
        let mut swept = Swept::default();
        for Due { subject, .. } in due {
            if self.clock.now() >= self.until {
                swept.behind = true;
                break;
            }
            swept.items += 1;
            let done = match &subject {
                Subject::Node(node) => self.pool(node, &mut swept).await,
                Subject::Reservation(node, id) => self.reservation(node, id, &mut swept).await,
            };
            if let Err(cause) = done {
                swept.failed += 1;
                let (node_id, reservation_id) = match &subject {
                    Subject::Node(node) => (node, None),
                    Subject::Reservation(node, id) => (node, Some(id.as_str())),
                };
                let cause = cause.for_log();
                tracing::error!(%node_id, reservation_id, cause, "due item not finished");
                self.step_back(&subject).await;
            }
        }
        swept
    }

    /// Lets what has failed stand behind what is due now, where a run has no time or no room for
    /// all that is due: else it would be all that any run ever looks at. What cannot be read stays
    /// first.
    async fn step_back(&self, subject: &Subject) {
        let now = self.clock.now();
        if !self.full && now < self.pressed {
            return;
        }
        let again = Some(now.plus_ms(DRAIN_CHECK_AFTER_MS));
        let seen = match self.seen(subject).await {
            Ok(Some((version, due_at))) if is_due(due_at, now) => version,
            _ => return,
        };
        // Where that fails as well, it is due still.
        if let Err(cause) = self.store.look_again(subject, seen, again).await {
            tracing::debug!(%cause, "a due item that failed was not put back");
        }
    }

    /// The version that an item is at, and when it is due.
    async fn seen(
        &self,
        subject: &Subject,
    ) -> Result<Option<(Version, Option<Timestamp>)>, StoreError> {
        Ok(match subject {
            Subject::Node(node) => {
                let found = self.store.load_node(node).await?;
                found.map(|node| (node.version, node.due_at))
            }
            Subject::Reservation(node, id) => {
                let found = self.store.load_reservation(node, id).await?;
                found.map(|reservation| (reservation.version, reservation.due_at))
            }
        })
    }

    async fn reservation(
        &self,
        node: &NodeId,
        id: &ReservationId,
        swept: &mut Swept,
    ) -> Result<(), Trouble> {
        let Some(mut image) = self.store.load_reservation(node, id).await? else {
            return Ok(());
        };
        let now = self.clock.now();
        if !is_due(image.due_at, now) {
            return Ok(());
        }
        if image.boundary(now).is_some()
            && let Some((passed, after)) = pass(self.store, self.clock, self.ids, node, id).await?
        {
            match passed {
                Passed::Activated => swept.activated += 1,
                Passed::Withheld => swept.withheld += 1,
                Passed::Expired => swept.expired += 1,
            }
            image = after;
        }
        let custody = Custody {
            node,
            reservation: Some(id),
            version: image.version,
            slots: &image.slots,
            offer: image.offer(),
        };
        let check = self.drain(&custody, swept).await?;
        let seen = image.version;
        let next = match check {
            Some(check) => image.next_boundary().into_iter().chain([check]).min(),
            None => self.trail(&image, swept).await?,
        };
        self.again(
            &Subject::Reservation(node.clone(), id.clone()),
            seen,
            image.due_at,
            next,
        )
        .await
    }

    /// When a reservation is to be looked at next on which nothing is draining. Its audit trail is
    /// looked at now: it must have come to its version.
    async fn trail(
        &self,
        image: &Reservation,
        swept: &mut Swept,
    ) -> Result<Option<Timestamp>, Trouble> {
        let now = self.clock.now();
        // A boundary was written right now: the record of that has not had its time.
        if !is_due(image.due_at, now) {
            return Ok(image.due_at);
        }
        let late = match close_tail(self.store, now, image).await? {
            Tail::Complete => None,
            Tail::Late(until) => Some(until),
            Tail::Gap => {
                swept.gaps += 1;
                None
            }
        };
        Ok(image.next_boundary().into_iter().chain(late).min())
    }

    async fn pool(&self, id: &NodeId, swept: &mut Swept) -> Result<(), Trouble> {
        let Some(node) = self.store.load_node(id).await? else {
            return Ok(());
        };
        if !is_due(node.due_at, self.clock.now()) {
            return Ok(());
        }
        let custody = Custody {
            node: id,
            reservation: None,
            version: node.version,
            slots: &node.slots,
            offer: node.offer(),
        };
        let next = self.drain(&custody, swept).await?;
        let subject = Subject::Node(id.clone());
        self.again(&subject, node.version, node.due_at, next).await
    }

    /// Sets when the item is to be looked at again. Whoever changed it in the meantime has set that
    /// as well, or left it due.
    async fn again(
        &self,
        subject: &Subject,
        seen: Version,
        due_at: Option<Timestamp>,
        next: Option<Timestamp>,
    ) -> Result<(), Trouble> {
        if next != due_at {
            self.store.look_again(subject, seen, next).await?;
        }
        Ok(())
    }

    /// Orders the VMs to stop that are condemned and not gone. Returns when to look at them again;
    /// `None` if there are none.
    async fn drain(
        &self,
        custody: &Custody<'_>,
        swept: &mut Swept,
    ) -> Result<Option<Timestamp>, Trouble> {
        let condemned = condemned(custody.slots, custody.offer);
        if condemned.is_empty() {
            return Ok(None);
        }
        let wanted: BTreeSet<VmId> = condemned.keys().cloned().collect();
        let found = self.store.load_vms(&wanted).await?;
        let vms: BTreeMap<VmId, Vm> = found.into_iter().map(|vm| (vm.id.clone(), vm)).collect();
        let now = self.clock.now();
        let mut orders = Vec::new();
        let mut overdue = Vec::new();
        let mut failed: Option<Trouble> = None;
        let mut next = now.plus_ms(DRAIN_CHECK_AFTER_MS);
        for (id, sentence) in &condemned {
            let Some(vm) = vms.get(id) else {
                tracing::error!(vm_id = %id, "a slot names a VM that does not exist");
                continue;
            };
            if vm.status == VmStatus::Terminated {
                continue;
            }
            swept.draining += 1;
            let since = vm.sentence.as_ref().map(|sentence| sentence.at);
            let age_ms = since.map(|since| now.unix_ms() - since.unix_ms());
            match age_ms {
                Some(age_ms) if age_ms < DRAIN_CHECK_AFTER_MS => {
                    next = next.min(now.plus_ms(DRAIN_CHECK_AFTER_MS - age_ms));
                }
                // One that cannot be marked must not keep the others running.
                _ => match self.order(custody, vm, sentence).await {
                    Ok(order) => orders.extend(order),
                    Err(trouble) => failed = failed.or(Some(trouble)),
                },
            }
            if age_ms.is_some_and(|age_ms| age_ms >= self.rules.stuck_after_ms) {
                swept.stuck += 1;
                if vm.stuck_at.is_none() {
                    overdue.push(id.clone());
                }
            }
        }
        for id in &overdue {
            tracing::error!(vm_id = %id, "VM stuck: its stop is overdue");
            mark_stuck(self.store, self.clock, self.ids, id).await?;
        }
        if !orders.is_empty() {
            self.orders.send_orders(&orders).await?;
            swept.orders += orders.len();
            metrics::ORDERS_SENT.add(u64::try_from(orders.len()).unwrap_or(u64::MAX), []);
        }
        failed.map_or(Ok(Some(next)), Err)
    }

    /// The order to stop a VM. One that no event has marked as condemned is marked first.
    async fn order(
        &self,
        custody: &Custody<'_>,
        vm: &Vm,
        condemned: &Condemned,
    ) -> Result<Option<TerminationOrder>, Trouble> {
        let sentence = match &vm.sentence {
            Some(sentence) => sentence.clone(),
            None => Sentence {
                reservation: condemned_by(condemned, custody.reservation),
                version: custody.version,
                at: self.clock.now(),
            },
        };
        if vm.status == VmStatus::Running {
            let reason = status_reason(sentence.reservation.as_ref());
            let marked = self.store.condemn(&vm.id, &sentence, &reason).await?;
            if marked.is_none_or(|vm| vm.status == VmStatus::Terminated) {
                return Ok(None);
            }
        }
        Ok(Some(TerminationOrder {
            vm: vm.id.clone(),
            node: custody.node.clone(),
            reservation: sentence.reservation,
            version: sentence.version,
        }))
    }
}

/// Whether it is due still: an index may tell of what has been done.
fn is_due(due_at: Option<Timestamp>, now: Timestamp) -> bool {
    due_at.is_some_and(|at| at <= now)
}
