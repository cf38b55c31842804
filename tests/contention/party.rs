//! Those who act on the reservation, what they were told, and what must be true of it in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use app::capacity::UnitsRequest;
use app::context::Context;
use app::nodes::terminations;
use app::ports::Ids;
use app::vms::{Place, VmRequest, Wanted, create};
use app::{Error, auth, nodes, reclaim, release, settle};
use domain::invariants::check_all;
use domain::reservation::place::seats;
use domain::{Caller, OrgId, Tier, UnitSet, Vm, VmId, VmStatus};
use testkit::fixtures::{
    AUDIENCE_ORG, NODE, RESERVATION, STRANGER_ORG, audience, id, manager, owner, stranger, unit,
};
use testkit::{Rng, SeededIds, Store, TestClock};

use super::RESERVED;

/// What callers were told.
#[derive(Debug, Default)]
struct Told {
    /// In a `terminated` list.
    terminated: BTreeSet<VmId>,
    /// In a `skipped` list.
    skipped: BTreeSet<VmId>,
    /// Stopped by its own org.
    stopped: BTreeSet<VmId>,
    /// Bought, and not stopped by its own org yet.
    running: Vec<Vm>,
    /// How often each thing went through.
    done: BTreeMap<&'static str, usize>,
}

/// All who act, over one store.
#[derive(Debug)]
pub(super) struct Party<S> {
    pub(super) store: S,
    pub(super) clock: TestClock,
    pub(super) ids: SeededIds,
    told: Mutex<Told>,
}

impl<S: Store + Clone + 'static> Party<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            clock: TestClock::default(),
            ids: SeededIds::new(11),
            told: Mutex::default(),
        }
    }

    fn told<T>(&self, note: impl FnOnce(&mut Told) -> T) -> T {
        note(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn context(&self, caller: Caller) -> Context {
        Context {
            principal: auth::Principal {
                caller,
                permissions: auth::Permission::ALL.into(),
                role: None,
                expires_at: None,
            },
            request_id: self.ids.uuid(),
        }
    }

    /// One thing that somebody does, out of a seed.
    pub(super) async fn round(&self, seed: usize) {
        let rng = &mut Rng::new(u64::try_from(seed).unwrap());
        match rng.below(100) {
            0..25 => self.release(rng).await,
            25..35 => self.reclaim(rng).await,
            35..65 => self.buy(rng, Tier::Spot, stranger()).await,
            65..80 => self.buy(rng, Tier::Community, audience()).await,
            _ => self.stop(rng).await,
        }
    }

    /// Notes what went through. Losing a race is an honest answer; a bug is not.
    fn settle<T>(&self, what: &'static str, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(done) => {
                self.told(|told| *told.done.entry(what).or_default() += 1);
                Some(done)
            }
            Err(Error::Refused { .. } | Error::Unavailable(_)) => None,
            Err(other) => panic!("{what}: {other:?}"),
        }
    }

    fn request(rng: &mut Rng) -> UnitsRequest {
        let all: Vec<_> = (0..RESERVED).map(unit).collect();
        let units = rng.few_of(&all, 3).into_iter().collect();
        UnitsRequest {
            node: id(NODE),
            id: id(RESERVATION),
            units: UnitSet::from_set(units).unwrap(),
            expected: None,
            reason: None,
        }
    }

    async fn release(&self, rng: &mut Rng) {
        let (context, request) = (self.context(manager()), Self::request(rng));
        let done = release::release(&self.store, &self.clock, &self.ids, &context, request).await;
        self.settle("release", done);
    }

    async fn reclaim(&self, rng: &mut Rng) {
        let (context, request) = (self.context(manager()), Self::request(rng));
        let done = reclaim::reclaim(&self.store, &self.clock, &self.ids, &context, request).await;
        if let Some(done) = self.settle("reclaim", done) {
            self.told(|told| {
                told.terminated.extend(done.victims.spot);
                told.skipped.extend(done.victims.other);
            });
        }
    }

    async fn buy(&self, rng: &mut Rng, tier: Tier, caller: Caller) {
        let request = VmRequest {
            org: caller.org.clone(),
            name: "vm".to_owned(),
            tier,
            wanted: Wanted::Gpus(rng.pick(&[1, 1, 2])),
            // A stranger does not see the reservation: it buys on the node.
            place: match tier {
                Tier::Spot => Place::Node(id(NODE), None),
                Tier::Community | Tier::Verified => Place::Reservation(id(NODE), id(RESERVATION)),
            },
        };
        let context = self.context(caller);
        let done = create(&self.store, &self.clock, &self.ids, &context, request, None).await;
        if let Some(vm) = self.settle(tier.as_str(), done) {
            self.told(|told| told.running.push(vm));
        }
    }

    async fn stop(&self, rng: &mut Rng) {
        let number = rng.below(1_000);
        let Some(vm) = self.told(|told| {
            let count = told.running.len();
            (count > 0).then(|| told.running.swap_remove(number % count))
        }) else {
            return;
        };
        let caller = if vm.org == stranger().org {
            stranger()
        } else {
            audience()
        };
        let context = self.context(caller);
        let done = settle::stop(&self.store, &self.clock, &context, &vm.id).await;
        match self.settle("stop", done) {
            Some(vm) => self.told(|told| {
                told.stopped.insert(vm.id);
            }),
            None => self.told(|told| told.running.push(vm)),
        }
    }

    /// Confirms, as the node's agent, what the node lists. Returns how many that were.
    pub(super) async fn confirm_listed(&self) -> usize {
        let context = self.context(owner());
        let listed = terminations(&self.store, &context, &id(NODE)).await;
        let Some(listed) = self.settle("terminations", listed) else {
            return 1;
        };
        for termination in &listed {
            let (context, vm) = (self.context(owner()), &termination.vm);
            let done = settle::confirm(&self.store, &self.clock, &context, &id(NODE), vm).await;
            self.settle("confirm", done);
        }
        listed.len()
    }

    async fn all_vms(&self) -> Vec<Vm> {
        let mut all = Vec::new();
        for org in [STRANGER_ORG, AUDIENCE_ORG] {
            let (org, mut after): (OrgId, Option<VmId>) = (id(org), None);
            loop {
                let page = self.store.list_vms(&org, after.as_ref(), 100).await;
                let page = page.unwrap();
                all.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        all
    }

    /// Checks the end: who lives, who does not, and where they sit.
    pub(super) async fn check(&self) {
        let view = nodes::load(&self.store, &id(NODE)).await.unwrap().unwrap();
        assert_eq!(check_all(&view.node, &view.holding), []);
        let vms = self.all_vms().await;
        let told = self.told(std::mem::take);
        for vm in &vms {
            let doomed = told.terminated.contains(&vm.id) || told.stopped.contains(&vm.id);
            let expected = if doomed {
                VmStatus::Terminated
            } else {
                VmStatus::Running
            };
            assert_eq!(vm.status, expected, "{vm:?}");
            if vm.tier != Tier::Spot {
                assert!(!told.terminated.contains(&vm.id), "{vm:?}");
            }
            let mut slots = view.holding.iter().map(|r| &r.slots);
            let reserved = slots.find_map(|slots| seats(slots, &vm.id));
            let seats = reserved.or_else(|| seats(&view.node.slots, &vm.id));
            assert_eq!(seats, (!doomed).then(|| vm.units.clone()), "{vm:?}");
        }
        let known: BTreeSet<VmId> = vms.iter().map(|vm| vm.id.clone()).collect();
        assert!(told.terminated.is_subset(&known) && told.skipped.is_subset(&known));
        assert!(told.terminated.is_disjoint(&told.skipped));
        for what in ["release", "reclaim", "spot", "community", "stop"] {
            let times = told.done.get(what).copied().unwrap_or(0);
            assert!(
                times >= 10,
                "{what} hardly ever went through: {:?}",
                told.done
            );
        }
        assert!(!told.terminated.is_empty() && !told.skipped.is_empty());
    }
}
