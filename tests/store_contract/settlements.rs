//! Settling a VM: told to stop, or its stop confirmed, together with all of its seats.

use app::ports::{Commit, Custodian, SettleKind, Settlement, Subject};
use domain::limits::AUDIT_LOST_AFTER_MS;
use domain::reservation::place::seats;
use domain::slot::condemned;
use domain::stamp::ActionKind;
use domain::{Dying, Tier, VmStatus};
use testkit::Store;
use testkit::fixtures::{
    self, AUDIENCE_ORG, STRANGER_ORG, id, stamp, stranger, system_stamp, unit, unit_set, units,
};

use super::{
    command_for, fleet, held, place, pool, present, reclaimed, released, reservation_id, reserve,
    settlement, spot, vm,
};

on_both!(
    a_stop_condemns_the_vm_where_it_sits,
    a_stop_keeps_what_condemned_the_vm_first,
    a_confirmation_sets_the_seats_free_and_remembers_who_left,
    a_vm_in_two_hands_is_settled_in_both,
    the_reservation_that_condemned_a_vm_hears_of_its_end,
    a_change_is_lost_if_the_vm_is_not_as_it_was_read,
    a_change_is_lost_if_a_seat_is_not_where_it_was_read,
    a_change_of_nothing_is_lost,
    a_change_that_comes_again_is_known,
    attempts_counted_in_between_are_kept,
);

async fn on_reservation(store: &impl Store) {
    fleet(store).await;
    released(store, 0x11, [0, 1]).await;
    spot(store, "vm-1", [0, 1], &held(), 0x12).await;
}

async fn stop_of(store: &impl Store, number: u64) -> Settlement {
    let seats = vec![(held(), units([0, 1]))];
    let vm = vm(store, "vm-1").await;
    settlement(SettleKind::Stop, &vm, seats, stamp(stranger(), number))
}

async fn confirmation_of(store: &impl Store, number: u64) -> Settlement {
    let seats = vec![(held(), units([0, 1]))];
    let vm = vm(store, "vm-1").await;
    settlement(SettleKind::Confirm, &vm, seats, system_stamp(number))
}

async fn done(store: &impl Store, change: &Settlement) {
    assert_eq!(store.settle(change).await, Ok(Commit::Done));
}

async fn a_stop_condemns_the_vm_where_it_sits(store: impl Store) {
    on_reservation(&store).await;
    let before = present(&store).await;
    let change = stop_of(&store, 0x13).await;
    done(&store, &change).await;
    assert_eq!(vm(&store, "vm-1").await, change.vm);
    let after = present(&store).await;
    let expected = domain::reservation::place::stop(&before, &change.vm.id, &change.stamp);
    assert_eq!(Some(&after), expected.as_ref());
    assert!(condemned(&after.slots, after.offer()).contains_key(&change.vm.id));
}

async fn a_stop_keeps_what_condemned_the_vm_first(store: impl Store) {
    fleet(&store).await;
    spot(&store, "vm-1", [4, 5], &Custodian::Pool, 0x12).await;
    reserve(&store, &command_for("res-2", 0x13, unit_set([4]))).await;
    let taker = Custodian::Reservation(id("res-2"));
    let seats = vec![(Custodian::Pool, units([5])), (taker, units([4]))];
    let there = vm(&store, "vm-1").await;
    let change = settlement(SettleKind::Stop, &there, seats, stamp(stranger(), 0x14));
    done(&store, &change).await;
    let slots = pool(&store).await.slots;
    let occupant = slots[&unit(5)].occupant.clone().unwrap();
    assert_eq!(occupant.dying, Some(Dying::Evicted(id("res-2"))));
}

async fn a_confirmation_sets_the_seats_free_and_remembers_who_left(store: impl Store) {
    on_reservation(&store).await;
    reclaimed(&store, 0x13, [0]).await;
    let before = present(&store).await;
    let change = confirmation_of(&store, 0x14).await;
    done(&store, &change).await;
    let after = present(&store).await;
    let expected = domain::reservation::place::vacate(&before, &change.vm.id, &change.stamp);
    assert_eq!(Some(&after), expected.as_ref());
    assert_eq!(seats(&after.slots, &change.vm.id), None);
    let gone = after.slots[&unit(0)].departed.clone().unwrap();
    assert_eq!((gone.vm, gone.left), (id("vm-1"), after.version));
    let tenant = ("vm-2", Tier::Community, AUDIENCE_ORG);
    let placed = place(&store, tenant, [0], &held(), 0x15).await;
    assert_eq!(placed, Commit::Done, "the unit is the tenant's");
    spot(&store, "vm-3", [1], &held(), 0x16).await;
}

async fn a_vm_in_two_hands_is_settled_in_both(store: impl Store) {
    fleet(&store).await;
    spot(&store, "vm-1", [4, 5], &Custodian::Pool, 0x12).await;
    reserve(&store, &command_for("res-2", 0x13, unit_set([4]))).await;
    let taker = Custodian::Reservation(id("res-2"));
    let both = vec![(Custodian::Pool, units([5])), (taker, units([4]))];
    let there = vm(&store, "vm-1").await;
    let half = vec![(Custodian::Pool, units([5, 4]))];
    let wrong = settlement(SettleKind::Confirm, &there, half, system_stamp(0x14));
    assert_eq!(store.settle(&wrong).await, Ok(Commit::Lost));
    let change = settlement(SettleKind::Confirm, &there, both, system_stamp(0x15));
    done(&store, &change).await;
    assert_eq!(seats(&pool(&store).await.slots, &there.id), None);
    let held = store.load_reservation(&there.node, &id("res-2")).await;
    assert_eq!(seats(&held.unwrap().unwrap().slots, &there.id), None);
}

async fn the_reservation_that_condemned_a_vm_hears_of_its_end(store: impl Store) {
    fleet(&store).await;
    spot(&store, "vm-1", [5], &Custodian::Pool, 0x12).await;
    let own = Subject::Reservation(id(fixtures::NODE), reservation_id());
    let made = present(&store).await;
    let none = store.look_again(&own, made.version, None).await;
    assert_eq!(none, Ok(Commit::Done));
    let before = present(&store).await;
    let seats = vec![(Custodian::Pool, units([5]))];
    let there = vm(&store, "vm-1").await;
    let mut change = settlement(SettleKind::Confirm, &there, seats, system_stamp(0x13));
    change.note = Some(id("res-none"));
    assert_eq!(store.settle(&change).await, Ok(Commit::Lost), "no such one");
    change.note = Some(reservation_id());
    done(&store, &change).await;
    let after = present(&store).await;
    assert_eq!(after.version, before.version.next());
    assert_eq!(after.slots, before.slots);
    assert_eq!(after.last_action.kind, ActionKind::Confirm);
    assert_eq!(after.last_action.vm, Some(id("vm-1")));
    // Its trail is looked at a day later: it may be over for long, and due for nothing else.
    let stamp = &change.stamp;
    let looked_at = stamp.now.plus_ms(AUDIT_LOST_AFTER_MS);
    assert_eq!((before.due_at, after.due_at), (None, Some(looked_at)));
    let early = Some(stamp.now.plus_ms(-1));
    let subject = Subject::Reservation(after.node.clone(), after.id.clone());
    let set = store.look_again(&subject, after.version, early).await;
    assert_eq!(set, Ok(Commit::Done));
    spot(&store, "vm-2", [4], &Custodian::Pool, 0x14).await;
    let there = vm(&store, "vm-2").await;
    let seats = vec![(Custodian::Pool, units([4]))];
    let mut change = settlement(SettleKind::Confirm, &there, seats, system_stamp(0x15));
    change.note = Some(reservation_id());
    done(&store, &change).await;
    assert_eq!(present(&store).await.due_at, early, "what is due stays so");
}

/// Fails unless the change is lost and leaves everything as it is.
async fn lost(store: &impl Store, change: &Settlement) {
    let before = (present(store).await, pool(store).await);
    let there = store.load_vm(&change.vm.id).await;
    assert_eq!(store.settle(change).await, Ok(Commit::Lost), "{change:?}");
    assert_eq!((present(store).await, pool(store).await), before);
    assert_eq!(store.load_vm(&change.vm.id).await, there);
}

async fn a_change_is_lost_if_the_vm_is_not_as_it_was_read(store: impl Store) {
    on_reservation(&store).await;
    let mut stop = stop_of(&store, 0x13).await;
    stop.seen = VmStatus::Terminating;
    lost(&store, &stop).await;
    let (stop, confirm) = (
        stop_of(&store, 0x14).await,
        confirmation_of(&store, 0x15).await,
    );
    done(&store, &stop).await;
    lost(&store, &confirm).await;
}

async fn a_change_is_lost_if_a_seat_is_not_where_it_was_read(store: impl Store) {
    on_reservation(&store).await;
    spot(&store, "vm-2", [4], &Custodian::Pool, 0x13).await;
    for (number, seats) in (0..).zip([
        vec![(held(), units([0]))],
        vec![(held(), units([0, 1, 2]))],
        vec![(Custodian::Pool, units([4]))],
        vec![(held(), units([0, 1])), (Custodian::Pool, units([4]))],
        vec![(Custodian::Reservation(id("res-none")), units([0, 1]))],
    ]) {
        for mut change in [
            stop_of(&store, 0x20 + number).await,
            confirmation_of(&store, 0x30 + number).await,
        ] {
            change.seats.clone_from(&seats);
            lost(&store, &change).await;
        }
    }
}

async fn a_change_of_nothing_is_lost(store: impl Store) {
    fleet(&store).await;
    let nobody = fixtures::vm("vm-1", Tier::Spot, STRANGER_ORG, [4]);
    let change = settlement(SettleKind::Confirm, &nobody, vec![], system_stamp(0x12));
    lost(&store, &change).await;
}

async fn a_change_that_comes_again_is_known(store: impl Store) {
    on_reservation(&store).await;
    let stop = stop_of(&store, 0x13).await;
    done(&store, &stop).await;
    let version = present(&store).await.version;
    done(&store, &stop).await;
    assert_eq!(present(&store).await.version, version, "done once");
    let confirm = confirmation_of(&store, 0x14).await;
    done(&store, &confirm).await;
    let (version, gone) = (present(&store).await.version, vm(&store, "vm-1").await);
    done(&store, &confirm).await;
    done(&store, &stop).await;
    assert_eq!(present(&store).await.version, version);
    assert_eq!(vm(&store, "vm-1").await, gone, "and not brought back");
}

async fn attempts_counted_in_between_are_kept(store: impl Store) {
    on_reservation(&store).await;
    done(&store, &stop_of(&store, 0x13).await).await;
    let change = confirmation_of(&store, 0x14).await;
    store.count_attempt(&id("vm-1")).await.unwrap();
    store.count_attempt(&id("vm-1")).await.unwrap();
    done(&store, &change).await;
    let gone = vm(&store, "vm-1").await;
    assert_eq!((gone.status, gone.attempts), (VmStatus::Terminated, 2));
}
