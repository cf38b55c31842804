//! Ends of audit trails that were lost: told within a day and an hour or two.

use domain::ReservationId;
use domain::audit::{EventType, verify};
use testkit::fixtures::{manager, owner};
use testkit::play::MINUTE_MS;
use testkit::{MemoryStore, Play, Step};

const HOUR_MS: i64 = 60 * MINUTE_MS;

/// The platform with one reservation of two units and all events told so far.
async fn told() -> (Play<MemoryStore>, ReservationId) {
    let store = MemoryStore::default();
    store.keep_stream();
    let play = Play::set(store, 4).await;
    let id = play.reserve(0..2, None, None).await;
    play.release(&id, 0..1, manager()).await.unwrap();
    tell(&play).await;
    (play, id)
}

async fn tell(play: &Play<MemoryStore>) {
    for change in play.store.take_stream() {
        play.react(&change).await.unwrap();
    }
}

fn lose(play: &Play<MemoryStore>) {
    assert!(!play.store.take_stream().is_empty());
}

/// Time passes, with a sweep every ten minutes and nothing else.
async fn pass(play: &Play<MemoryStore>, hours: i64) -> usize {
    let mut gaps = 0;
    for _ in 0..hours * 6 {
        play.clock.advance_ms(10 * MINUTE_MS);
        let swept = play.sweep().await;
        assert_eq!(swept.failed, 0);
        gaps += swept.gaps;
        let _ = play.store.take_stream();
    }
    gaps
}

async fn assert_ends_with_a_gap(play: &Play<MemoryStore>, id: &ReservationId) {
    let trail = play.trail(id).await;
    let current = play.reservation(id).await.version;
    assert_eq!(verify(&trail, current).map(drop), Ok(()));
    let gaps = trail.iter().filter(|r| r.event.event == EventType::Gap);
    assert_eq!(gaps.count(), 1);
    assert_eq!(trail.last().map(|r| r.event.event), Some(EventType::Gap));
}

#[tokio::test]
async fn the_lost_end_of_an_ended_reservation_is_told() {
    let (play, id) = told().await;
    play.end(&id).await.unwrap();
    lose(&play);
    assert_eq!(pass(&play, 23).await, 0, "it may still come");
    assert_eq!(pass(&play, 2).await, 1);
    assert_ends_with_a_gap(&play, &id).await;
    assert_eq!(pass(&play, 30).await, 0, "once");
}

#[tokio::test]
async fn the_lost_end_of_a_drain_is_told() {
    let (play, id) = told().await;
    let vm = play.buy_spot(0..1).await.unwrap().id;
    play.reclaim(&id, 0..1, manager()).await.unwrap();
    tell(&play).await;
    play.carry_out().await;
    assert_eq!(play.vm(&vm).await.attempts, 1);
    lose(&play);
    assert_eq!(pass(&play, 26).await, 1);
    assert_ends_with_a_gap(&play, &id).await;
}

#[tokio::test]
async fn the_end_of_a_vm_that_outlived_its_reservation_by_hours_is_told_if_it_is_lost() {
    let (play, id) = told().await;
    let vm = play.buy_spot(0..1).await.unwrap().id;
    play.controller.script(&vm, &[Step::NotYet]);
    play.reclaim(&id, 0..1, manager()).await.unwrap();
    play.end(&id).await.unwrap();
    tell(&play).await;
    // The trail has been looked at, and found whole, before the VM is gone.
    for _ in 0..150 {
        play.clock.advance_ms(10 * MINUTE_MS);
        play.sweep().await;
        tell(&play).await;
    }
    let before = play.reservation(&id).await;
    assert_eq!(
        verify(&play.trail(&id).await, before.version).map(drop),
        Ok(())
    );
    assert_eq!(before.due_at, None);
    play.confirm(&vm, owner()).await.unwrap();
    let after = play.reservation(&id).await;
    assert_eq!(after.version, before.version.next(), "it is noted there");
    lose(&play);
    assert_eq!(pass(&play, 26).await, 1);
    assert_ends_with_a_gap(&play, &id).await;
}

#[tokio::test]
async fn a_lost_end_is_told_by_the_next_change_of_a_reservation_that_lives() {
    let (play, id) = told().await;
    play.release(&id, 1..2, manager()).await.unwrap();
    lose(&play);
    play.clock.advance_ms(HOUR_MS);
    play.reclaim(&id, 1..2, manager()).await.unwrap();
    play.clock.advance_ms(MINUTE_MS);
    tell(&play).await;
    let trail = play.trail(&id).await;
    assert_eq!(
        verify(&trail, play.reservation(&id).await.version).map(drop),
        Ok(())
    );
    let events: Vec<EventType> = trail.iter().map(|r| r.event.event).collect();
    assert_eq!(
        events,
        [
            EventType::Created,
            EventType::Released,
            EventType::Gap,
            EventType::Reclaimed
        ]
    );
}
