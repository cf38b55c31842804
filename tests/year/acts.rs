//! What the orgs do, each through the use case that its call would reach.

use std::collections::{BTreeMap, BTreeSet};

use app::capacity::UnitsRequest;
use app::end::ChangeRequest;
use app::ports::{Clock, TerminationOrder};
use app::reservations::{self, ReserveRequest};
use app::terminate::{Outcome, TerminateError, terminate};
use app::vms::{self, Place, VmRequest, Wanted};
use app::{Error, end, reclaim, release, settle, topology};
use domain::{
    Caller, NodeId, OrgId, Refusal, Reservation, ReservationId, Status, Tier, Timestamp, UnitId,
    UnitSet, Version, Vm, VmId, VmStatus,
};
use testkit::fixtures::{self, id, manager, operator, owner};

use crate::fleet::{Act, DAY_MS, Fleet, HOUR_MS, MINUTE_MS};

/// Tries of one order before the queue gives it up.
const TRIES_MAX: u32 = 5;

impl Fleet {
    pub(crate) async fn act(&mut self, act: Act) {
        match act {
            Act::Reserve => self.reserve().await,
            Act::Release(node, id) => self.release(node, id).await,
            Act::Buy(node, reservation) => self.buy(node, reservation).await,
            Act::Reclaim(node, id) => self.reclaim(node, id).await,
            Act::End(node, id) => self.end(node, id).await,
            Act::Stop(vm) => self.stop(vm).await,
            Act::Topology(node) => self.topology(node).await,
            Act::Reaffirm(node, id) => self.reaffirm(node, id).await,
            Act::Order(order, tries) => self.order(order, tries).await,
            Act::Agent(node, vm) => self.agent(node, vm).await,
            Act::Follow => self.follow(100).await,
            Act::Busy => self.busy(),
            Act::Told => {
                let before = self.clock.now().plus_ms(-26 * HOUR_MS);
                self.checks.ends_are_told(&self.store, before, self.seed);
            }
        }
    }

    /// Reserves somewhere, back to back with a term that is in the way where one is.
    async fn reserve(&mut self) {
        let now = self.clock.now();
        let mut starts = None;
        if self.rng.chance(50) {
            let ahead = self.within(20 * DAY_MS);
            starts = Some(now.plus_ms(1 + ahead));
        }
        let node = self.rng.pick(&self.nodes);
        let node = self.store.peek(|world| world.nodes.get(&node).cloned());
        let node = node.unwrap();
        let units = self.rng.few_of(node.units.keys(), 3);
        let units = UnitSet::from_set(units.into_iter().collect()).unwrap();
        let length_ms = match self.rng.below(20) {
            0 => 1,
            1..8 => 1 + self.within(HOUR_MS),
            8..15 => 1 + self.within(DAY_MS),
            _ => 1 + self.within(6 * DAY_MS),
        };
        let open_ended = self.rng.chance(5);
        let by = if self.rng.chance(50) {
            owner()
        } else {
            operator()
        };
        for _ in 0..3 {
            let from = starts.unwrap_or(now);
            let request = ReserveRequest {
                node: node.id.clone(),
                units: units.clone(),
                audience: [id(fixtures::AUDIENCE_ORG)].into(),
                managers: [id(fixtures::MANAGER_ORG)].into(),
                starts,
                ends: (!open_ended).then(|| from.plus_ms(length_ms)),
                contract_ref: None,
                reason: None,
            };
            let context = self.context(by.clone());
            let (store, clock, ids) = (&self.store, &self.clock, &self.ids);
            let made = reservations::create(store, clock, ids, &context, request, None).await;
            match made {
                Ok(made) => return self.made(&made),
                Err(Error::Refused {
                    refusal: Refusal::UnitsAlreadyReserved(_, Some(free_from)),
                    ..
                }) => {
                    // To the millisecond at the end of what is in the way.
                    self.count("back to back");
                    starts = Some(free_from);
                }
                Err(Error::Refused { refusal, .. }) => {
                    assert!(
                        matches!(
                            refusal,
                            Refusal::UnitsAlreadyReserved(..) | Refusal::LimitReached(_)
                        ),
                        "seed {}: {refusal}",
                        self.seed
                    );
                    break;
                }
                Err(error) => panic!("seed {}: {error:?}", self.seed),
            }
        }
        // Elsewhere, soon.
        let after = 1 + self.within(MINUTE_MS);
        self.plan(now.plus_ms(after), Act::Reserve);
    }

    /// Plans what will happen on a new reservation.
    fn made(&mut self, made: &Reservation) {
        self.made += 1;
        let (node, id) = (&made.node, &made.id);
        let starts = made.term.starts;
        let length_ms = made.term.ends.map_or(8 * DAY_MS, |ends| {
            (ends.unix_ms() - starts.unix_ms()).min(8 * DAY_MS)
        });
        let acts = [
            (60, Act::Release(node.clone(), id.clone())),
            (35, Act::Buy(node.clone(), Some(id.clone()))),
            (50, Act::Buy(node.clone(), None)),
            (30, Act::Release(node.clone(), id.clone())),
            (50, Act::Buy(node.clone(), None)),
            (50, Act::Reclaim(node.clone(), id.clone())),
            (20, Act::Reclaim(node.clone(), id.clone())),
        ];
        let mut at = starts;
        for (percent, act) in acts {
            if self.rng.chance(percent) {
                // One in ten right at the start, before any sweep.
                if !self.rng.chance(10) {
                    at = at.plus_ms(self.within(1 + length_ms / 5));
                }
                self.plan(at, act);
            }
        }
        if let Some(ends) = made.term.ends.filter(|_| self.rng.chance(30)) {
            // Just before the end: the units go on before those on them are gone.
            let before_ms = 1 + self.within(MINUTE_MS);
            let act = Act::Reclaim(node.clone(), id.clone());
            self.plan(ends.plus_ms(-before_ms).max(starts), act);
        }
        if made.term.ends.is_none() || self.rng.chance(8) {
            let span = self.within(1 + length_ms + DAY_MS);
            self.plan(starts.plus_ms(span), Act::End(node.clone(), id.clone()));
        }
    }

    /// Plans for an hour in which all that is active changes.
    fn busy(&mut self) {
        let active: Vec<(NodeId, ReservationId)> = self.store.peek(|world| {
            let all = world.reservations.values();
            let active = all.filter(|r| r.status == Status::Active);
            active.map(|r| (r.node.clone(), r.id.clone())).collect()
        });
        let now = self.clock.now();
        for (node, id) in active {
            let acts = [
                Act::Release(node.clone(), id.clone()),
                Act::Buy(node.clone(), None),
                Act::Reclaim(node, id),
            ];
            let mut at = now;
            for act in acts {
                at = at.plus_ms(self.within(19 * MINUTE_MS));
                self.plan(at, act);
            }
        }
    }

    fn found(&self, node: &NodeId, id: &ReservationId) -> Reservation {
        let found = self
            .store
            .peek(|world| world.reservation(node, id).cloned());
        found.unwrap()
    }

    fn someone(&mut self) -> Caller {
        self.rng.pick(&[manager(), owner(), operator()])
    }

    fn units_request(&mut self, image: &Reservation, expected: Option<Version>) -> UnitsRequest {
        let units: BTreeSet<UnitId> = self.rng.few_of(image.units.iter(), 3).into_iter().collect();
        UnitsRequest {
            node: image.node.clone(),
            id: image.id.clone(),
            units: UnitSet::from_set(units).unwrap(),
            expected,
            reason: None,
        }
    }

    async fn release(&mut self, node: NodeId, id: ReservationId) {
        let image = self.found(&node, &id);
        let request = self.units_request(&image, None);
        let (by, now) = (self.someone(), self.clock.now());
        let context = self.context(by);
        let done = release::release(&self.store, &self.clock, &self.ids, &context, request).await;
        match done {
            Ok(after) => {
                self.assert_in_force(&image, now);
                assert!(after.term.contains(now));
                self.count("released");
            }
            Err(error) => {
                self.assert_refusal(&error, &image, now);
            }
        }
    }

    /// Nothing that needs a term goes through outside of it, swept or not.
    fn assert_in_force(&self, image: &Reservation, now: Timestamp) {
        assert!(
            image.term.contains(now) && image.status != Status::Cancelled,
            "seed {}: {image:?} at {now}",
            self.seed
        );
    }

    /// Within a term that has begun nothing is refused for being pending.
    fn assert_refusal(&mut self, error: &Error, image: &Reservation, now: Timestamp) {
        let Error::Refused { refusal, .. } = error else {
            panic!("seed {}: {error:?}", self.seed);
        };
        match refusal {
            Refusal::ReservationNotActive(status) => {
                let over = image.term.is_over(now);
                let right = match status {
                    Status::Expired => over,
                    Status::Pending => !over && !image.term.contains(now),
                    Status::NeedsReview => !over,
                    Status::Cancelled => image.status == Status::Cancelled,
                    Status::Active => false,
                };
                assert!(right, "seed {}: {status} of {image:?} at {now}", self.seed);
                self.count("not active");
            }
            Refusal::UnitDraining(_) => self.count("draining"),
            Refusal::VersionMismatch { .. } => self.count("mismatch"),
            other => panic!("seed {}: {other}", self.seed),
        }
    }

    async fn reclaim(&mut self, node: NodeId, id: ReservationId) {
        let image = self.found(&node, &id);
        let mut request = self.units_request(&image, None);
        let by = self.someone();
        let now = self.clock.now();
        let mut foreseen = None;
        if self.rng.chance(40) {
            let context = self.context(by.clone());
            let (asked, ids) = (request.clone(), self.ids.clone());
            match reclaim::dry_run(&self.store, &self.clock, &ids, &context, asked).await {
                Err(error) => return self.assert_refusal(&error, &image, now),
                Ok(plan) => {
                    self.count("dry run");
                    assert_eq!(
                        plan.reservation,
                        self.found(&node, &id),
                        "seed {}",
                        self.seed
                    );
                    request.expected = Some(plan.reservation.version);
                    foreseen = Some(plan.victims);
                }
            }
            if self.rng.chance(30) {
                return;
            }
        }
        let context = self.context(by);
        let done = reclaim::reclaim(&self.store, &self.clock, &self.ids, &context, request).await;
        match done {
            Ok(done) => {
                self.assert_in_force(&image, now);
                self.count("reclaimed");
                // The plan is carried out as it was shown.
                assert!(foreseen.is_none_or(|plan| plan == done.victims));
                self.checks.promised(done.victims.spot);
            }
            Err(error) => {
                assert!(foreseen.is_none(), "seed {}: {error:?}", self.seed);
                self.assert_refusal(&error, &image, now);
            }
        }
    }

    async fn buy(&mut self, node: NodeId, reservation: Option<ReservationId>) {
        let tier = match (&reservation, self.rng.below(3)) {
            (Some(_), 0) => Tier::Spot,
            (Some(_), _) => Tier::Community,
            (None, 0) => Tier::Verified,
            (None, _) => Tier::Spot,
        };
        let org: OrgId = id(if reservation.is_some() {
            fixtures::AUDIENCE_ORG
        } else {
            fixtures::STRANGER_ORG
        });
        let place = match reservation {
            Some(reservation) => Place::Reservation(node, reservation),
            None if self.rng.chance(5) => Place::Model(id(fixtures::GPU_MODEL)),
            None => Place::Node(node, None),
        };
        let gpus = self.rng.pick(&[1, 1, 1, 2, 3, 4]);
        let request = VmRequest {
            org: org.clone(),
            name: "vm".to_owned(),
            tier,
            wanted: Wanted::Gpus(gpus),
            place,
        };
        let context = self.context(fixtures::caller(org.as_str()));
        let (store, clock, ids) = (&self.store, &self.clock, &self.ids);
        let bought = vms::create(store, clock, ids, &context, request, None).await;
        match bought {
            Ok(vm) => self.bought(&vm),
            Err(Error::Refused {
                refusal: Refusal::InsufficientCapacity(_),
                ..
            }) => self.count("no capacity"),
            Err(error) => panic!("seed {}: {error:?}", self.seed),
        }
    }

    fn bought(&mut self, vm: &Vm) {
        self.count(match vm.tier {
            Tier::Spot => "bought spot",
            Tier::Community => "bought community",
            Tier::Verified => "bought verified",
        });
        if let Some(on) = &vm.reservation {
            let image = self.found(&vm.node, on);
            self.assert_in_force(&image, self.clock.now());
        }
        self.placed.push(vm.id.clone());
        // Its org stops it some day, or it would stay for ever.
        let brief = self.rng.chance(50);
        let span = self.within(if brief { HOUR_MS } else { 6 * DAY_MS });
        self.plan(self.clock.now().plus_ms(span), Act::Stop(vm.id.clone()));
    }

    async fn stop(&mut self, vm: VmId) {
        let found = self.store.peek(|world| world.vms.get(&vm).cloned());
        let found = found.unwrap();
        let context = self.context(fixtures::caller(found.org.as_str()));
        self.checks.stopped(&vm);
        let stopped = settle::stop(&self.store, &self.clock, &context, &vm).await;
        let stopped = stopped.unwrap_or_else(|error| panic!("seed {}: {error:?}", self.seed));
        assert_ne!(stopped.status, VmStatus::Running);
        self.count("stopped");
    }

    async fn end(&mut self, node: NodeId, id: ReservationId) {
        let image = self.found(&node, &id);
        let context = self.context(operator());
        let request = change_of(node, id);
        match end::end(&self.store, &self.clock, &context, &request, None).await {
            Ok(after) => {
                assert_eq!(after.status, Status::Cancelled);
                self.count("ended");
            }
            Err(error) => self.assert_refusal(&error, &image, self.clock.now()),
        }
    }

    /// Reports other units than before: some gone, some back, some of another size.
    async fn topology(&mut self, node: NodeId) {
        let before = self.store.peek(|world| world.nodes.get(&node).cloned());
        let before = before.unwrap();
        let mut units: BTreeMap<UnitId, u16> = before.units.clone();
        for number in 0..9 {
            let unit = fixtures::unit(number);
            match (units.get(&unit).copied(), self.rng.below(10)) {
                (Some(_), 0..2) => {
                    units.remove(&unit);
                }
                (Some(gpus), 2) => {
                    units.insert(unit, gpus % 4 + 1);
                }
                (None, 0..7) => {
                    units.insert(unit, 1);
                }
                _ => {}
            }
        }
        units.entry(fixtures::unit(0)).or_insert(1);
        let context = self.context(owner());
        let topology_gen = before.topology_gen + 1;
        let reported = topology::report(
            &self.store,
            &self.clock,
            &self.ids,
            &context,
            &node,
            topology_gen,
            &units,
        )
        .await;
        let after = reported.unwrap_or_else(|error| panic!("seed {}: {error:?}", self.seed));
        self.count("reports");
        let (now, after) = (self.clock.now(), after.node);
        for id in after.bookings.keys() {
            if self.found(&node, id).status == Status::NeedsReview {
                self.count("reviewed");
                let span = self.within(2 * DAY_MS);
                self.plan(now.plus_ms(span), Act::Reaffirm(node.clone(), id.clone()));
            }
        }
    }

    async fn reaffirm(&mut self, node: NodeId, id: ReservationId) {
        let image = self.found(&node, &id);
        let (context, now) = (self.context(operator()), self.clock.now());
        let request = change_of(node.clone(), id.clone());
        let (store, clock, ids) = (&self.store, &self.clock, &self.ids);
        let done = reservations::reaffirm(store, clock, ids, &context, &request, None).await;
        match done {
            Ok(after) => {
                self.count("reaffirmed");
                assert_eq!(after.released, image.released, "seed {}", self.seed);
                assert_eq!(after.status_at(now), after.status, "seed {}", self.seed);
            }
            Err(Error::Refused { refusal, .. }) => match refusal {
                Refusal::UnitsLost(lost) => {
                    assert!(lost.is_subset(image.units.as_set()));
                    self.count("lost units");
                    let again = now.plus_ms(self.within(3 * DAY_MS));
                    let act = if self.rng.chance(30) {
                        Act::End(node, id)
                    } else {
                        Act::Reaffirm(node, id)
                    };
                    self.plan(again, act);
                }
                Refusal::NotInReview(_) => self.count("not in review"),
                other => panic!("seed {}: {other}", self.seed),
            },
            Err(error) => panic!("seed {}: {error:?}", self.seed),
        }
    }

    /// Carries out an order as the queue hands it on, again and again until it gives it up.
    async fn order(&mut self, order: TerminationOrder, tries: u32) {
        let done = terminate(&self.store, &self.machines, &self.clock, &self.ids, &order).await;
        match done {
            Ok(Outcome::Confirmed | Outcome::NothingToDo) => {}
            Ok(Outcome::NotCondemned) => panic!("seed {}: {order:?}", self.seed),
            Ok(Outcome::NotYet) | Err(TerminateError::Controller(_)) => {
                self.count("slow");
                let now = self.clock.now();
                if tries + 1 < TRIES_MAX {
                    let act = Act::Order(order.clone(), tries + 1);
                    self.plan(now.plus_ms(10_000), act);
                }
                if tries == 0 && self.rng.chance(10) {
                    let after = 11 * MINUTE_MS;
                    let act = Act::Agent(order.node.clone(), order.vm.clone());
                    self.plan(now.plus_ms(after), act);
                }
            }
            Err(error) => panic!("seed {}: {error:?}", self.seed),
        }
    }

    /// The agent finds that the VM is gone, or an operator does.
    async fn agent(&mut self, node: NodeId, vm: VmId) {
        let by = if self.rng.chance(50) {
            owner()
        } else {
            operator()
        };
        let context = self.context(by);
        let confirmed = settle::confirm(&self.store, &self.clock, &context, &node, &vm).await;
        let confirmed = confirmed.unwrap_or_else(|error| panic!("seed {}: {error:?}", self.seed));
        assert_eq!(confirmed.status, VmStatus::Terminated);
        self.count(match confirmed.stuck_at {
            Some(_) => "confirmed by hand when stuck",
            None => "confirmed by hand",
        });
    }
}

fn change_of(node: NodeId, id: ReservationId) -> ChangeRequest {
    ChangeRequest {
        node,
        id,
        expected: None,
        reason: None,
    }
}
