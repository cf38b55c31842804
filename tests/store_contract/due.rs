//! What is due: found, put off, and never behind the back of a change.

use app::ports::{Commit, CustodyMove, Due, SettleKind, Subject};
use domain::limits::AUDIT_LOST_AFTER_MS;
use domain::reservation::{activate, expire};
use domain::{Reservation, Status, Timestamp};
use testkit::Store;
use testkit::fixtures::{self, NODE, id, now, stranger, system_stamp, unit_set, units};

use super::{
    command_for, fleet, held, pool, present, reclaimed, registered, released, reservation_id,
    reserve, settlement, spot, stamp, vm,
};

on_both!(
    nothing_is_due_where_nothing_waits,
    a_reclaim_is_due_at_once,
    a_stop_is_due_at_once_where_the_vm_sits,
    a_booking_is_due_when_its_term_begins_and_when_it_ends,
    the_longest_due_come_first_and_no_more_than_asked_for,
    looking_again_later_is_no_change,
    whoever_changed_it_in_between_is_not_overwritten,
    looking_again_at_what_is_not_there_is_lost,
    a_stop_is_noted_as_overdue_once,
);

fn due(at: Timestamp, subject: Subject) -> Due {
    Due { at, subject }
}

fn reserved(name: &str) -> Subject {
    Subject::Reservation(id(NODE), id(name))
}

fn own() -> Subject {
    Subject::Reservation(id(NODE), reservation_id())
}

/// What is due by this instant, by its subject.
async fn found(store: &impl Store, by: Timestamp) -> Vec<Due> {
    store.find_due(by, 100).await.unwrap()
}

async fn nothing_is_due_where_nothing_waits(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, 0..4).await;
    spot(&store, "vm-s", [0], &held(), 0x12).await;
    // Only the trail is looked at, a day after the change.
    let day = now().plus_ms(AUDIT_LOST_AFTER_MS);
    assert_eq!(found(&store, day.plus_ms(-1)).await, []);
    assert_eq!(found(&store, day).await, [due(day, own())]);
    let version = present(&store).await.version;
    let none = store.look_again(&own(), version, None).await;
    assert_eq!(none, Ok(Commit::Done));
    assert_eq!(found(&store, now().plus_ms(1_000_000_000)).await, []);
}

async fn a_reclaim_is_due_at_once(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    reclaimed(&store, 0x12, [0]).await;
    assert_eq!(found(&store, now().plus_ms(-1)).await, []);
    assert_eq!(found(&store, now()).await, [due(now(), own())]);
}

async fn a_stop_is_due_at_once_where_the_vm_sits(store: impl Store) {
    fleet(&store).await;
    spot(&store, "vm-1", [5], &domain_pool(), 0x12).await;
    let there = vm(&store, "vm-1").await;
    let seats = vec![(domain_pool(), units([5]))];
    let change = settlement(SettleKind::Stop, &there, seats, stamp(stranger(), 0x13));
    assert_eq!(store.settle(&change).await, Ok(Commit::Done));
    let expected = due(now(), Subject::Node(id(NODE)));
    assert_eq!(found(&store, now()).await, [expected]);
    assert_eq!(pool(&store).await.due_at, Some(now()));
}

fn domain_pool() -> app::ports::Custodian {
    app::ports::Custodian::Pool
}

/// Books a unit from an hour ahead for an hour.
async fn booked(store: &impl Store) -> Reservation {
    let mut command = command_for("res-2", 0x21, unit_set([6]));
    command.starts = Some(now().plus_ms(3_600_000));
    command.ends = Some(now().plus_ms(7_200_000));
    reserve(store, &command).await
}

/// Writes a boundary of the booked reservation.
async fn moved(
    store: &impl Store,
    before: &Reservation,
    number: u64,
    at: Timestamp,
) -> Reservation {
    let node = pool(store).await;
    let mut stamp = system_stamp(number);
    stamp.now = at;
    let after = match before.holds() {
        true => expire(before, &node, &stamp),
        false => activate(before, &node, &stamp).unwrap(),
    };
    let (reservation, node_after) = after.unwrap();
    let change = CustodyMove {
        node_seen: node.version,
        node: node_after,
        reservation_seen: Some(before.version),
        reservation,
        write: stamp.write,
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    change.reservation
}

async fn a_booking_is_due_when_its_term_begins_and_when_it_ends(store: impl Store) {
    registered(&store, 8).await;
    let made = booked(&store).await;
    assert_eq!((made.status, made.holds()), (Status::Pending, false));
    let (starts, ends) = (now().plus_ms(3_600_000), now().plus_ms(7_200_000));
    assert_eq!(found(&store, starts.plus_ms(-1)).await, []);
    assert_eq!(
        found(&store, starts).await,
        [due(starts, reserved("res-2"))]
    );
    let active = moved(&store, &made, 0x22, starts).await;
    assert_eq!(found(&store, ends.plus_ms(-1)).await, []);
    assert_eq!(found(&store, ends).await, [due(ends, reserved("res-2"))]);
    let over = moved(&store, &active, 0x23, ends).await;
    assert_eq!(over.status, Status::Expired);
    // Its trail is looked at once more, and then nothing is.
    assert_eq!(found(&store, ends).await, []);
    let again = store
        .look_again(&reserved("res-2"), over.version, None)
        .await;
    assert_eq!(again, Ok(Commit::Done));
    assert_eq!(found(&store, ends.plus_ms(1_000_000_000)).await, []);
}

async fn the_longest_due_come_first_and_no_more_than_asked_for(store: impl Store) {
    registered(&store, 32).await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let name = format!("res-{number:02}");
        let write = 0x100 + u64::try_from(number).unwrap();
        let mut command = command_for(&name, write, unit_set([number]));
        // Every other instant is that of another one too.
        let after = i64::try_from((number * 7) % 20 / 2).unwrap();
        command.ends = Some(now().plus_ms(1_000 + after));
        expected.push(due(now().plus_ms(1_000 + after), reserved(&name)));
        reserve(&store, &command).await;
    }
    expected.sort();
    let later = now().plus_ms(10_000);
    assert_eq!(store.find_due(later, 20).await, Ok(expected.clone()));
    assert_eq!(store.find_due(later, 7).await, Ok(expected[..7].to_vec()));
    let some = store.find_due(now().plus_ms(1_003), 100).await.unwrap();
    assert_eq!(some, expected[..8]);
}

async fn looking_again_later_is_no_change(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    reclaimed(&store, 0x12, [0]).await;
    let before = present(&store).await;
    let later = now().plus_ms(30_000);
    for at in [Some(later), None, Some(later)] {
        let again = store.look_again(&own(), before.version, at).await;
        assert_eq!(again, Ok(Commit::Done));
        let after = Reservation {
            due_at: at,
            ..before.clone()
        };
        assert_eq!(present(&store).await, after);
    }
    assert_eq!(found(&store, now()).await, []);
    assert_eq!(found(&store, later).await, [due(later, own())]);
    let node = pool(&store).await;
    let subject = Subject::Node(id(NODE));
    let again = store.look_again(&subject, node.version, Some(later)).await;
    assert_eq!(again, Ok(Commit::Done));
    let expected = [due(later, subject), due(later, own())];
    assert_eq!(found(&store, later).await, expected);
}

async fn whoever_changed_it_in_between_is_not_overwritten(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    let seen = present(&store).await.version;
    reclaimed(&store, 0x12, [0]).await;
    let again = store.look_again(&own(), seen, None).await;
    assert_eq!(again, Ok(Commit::Lost));
    assert_eq!(found(&store, now()).await, [due(now(), own())]);
}

async fn looking_again_at_what_is_not_there_is_lost(store: impl Store) {
    fleet(&store).await;
    let version = domain::Version::FIRST;
    for subject in [reserved("res-none"), Subject::Node(id("node-none"))] {
        let again = store.look_again(&subject, version, Some(now())).await;
        assert_eq!(again, Ok(Commit::Lost), "{subject:?}");
    }
    assert_eq!(found(&store, now()).await, []);
}

async fn a_stop_is_noted_as_overdue_once(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0, 1]).await;
    spot(&store, "vm-1", [0, 1], &held(), 0x12).await;
    let seats = || vec![(held(), units([0, 1]))];
    let there = vm(&store, "vm-1").await;
    let stop = settlement(SettleKind::Stop, &there, seats(), stamp(stranger(), 0x13));
    assert_eq!(store.settle(&stop).await, Ok(Commit::Done));
    let before = present(&store).await;
    let there = vm(&store, "vm-1").await;
    let stuck = settlement(SettleKind::Stuck, &there, seats(), system_stamp(0x14));
    assert_eq!(store.settle(&stuck).await, Ok(Commit::Done));
    assert_eq!(vm(&store, "vm-1").await.stuck_at, Some(fixtures::now()));
    let after = present(&store).await;
    let expected =
        domain::reservation::place::mark_stuck(&before, &stuck.vm.id, &stuck.stamp).unwrap();
    assert_eq!(after, expected);
    assert_eq!(after.slots, before.slots, "nothing moves");
    let again = settlement(SettleKind::Stuck, &there, seats(), system_stamp(0x15));
    assert_eq!(store.settle(&again).await, Ok(Commit::Lost));
    assert_eq!(store.settle(&stuck).await, Ok(Commit::Done), "itself again");
    assert_eq!(present(&store).await, after);
    let gone = settlement(SettleKind::Confirm, &there, seats(), system_stamp(0x16));
    let mut gone = gone;
    gone.vm.stuck_at = stuck.vm.stuck_at;
    assert_eq!(store.settle(&gone).await, Ok(Commit::Done));
    assert_eq!(vm(&store, "vm-1").await, gone.vm);
}
