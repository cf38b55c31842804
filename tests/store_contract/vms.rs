//! VMs by themselves: read, listed, condemned, counted.

use app::ports::Custodian;
use domain::vm::Sentence;
use domain::{Tier, VmId, VmStatus};
use testkit::Store;
use testkit::fixtures::{self, AUDIENCE_ORG, STRANGER_ORG, id, now, stamp, stranger};

use super::{place, registered, spot, version, vm};

on_both!(
    vms_asked_for_come_in_order_and_the_others_are_left_out,
    an_org_lists_its_own_vms_over_pages_of_any_length,
    a_vm_is_condemned_once,
    a_condemned_vm_keeps_its_place_in_the_list,
    nobody_is_condemned_or_counted_into_being,
    attempts_are_counted_one_by_one,
);

async fn placed(store: &impl Store, name: &str, org: &str, number: usize) {
    let write = 0x100 + u64::try_from(number).unwrap();
    let buyer = (name, Tier::Community, org);
    place(store, buyer, [number], &Custodian::Pool, write).await;
}

async fn vms_asked_for_come_in_order_and_the_others_are_left_out(store: impl Store) {
    registered(&store, 8).await;
    for (number, name) in ["vm-b", "vm-c", "vm-a"].into_iter().enumerate() {
        placed(&store, name, STRANGER_ORG, number).await;
    }
    let asked = [id("vm-b"), id("vm-none"), id("vm-a")].into();
    let found = store.load_vms(&asked).await.unwrap();
    assert_eq!(found, [vm(&store, "vm-a").await, vm(&store, "vm-b").await]);
    assert_eq!(store.load_vms(&[].into()).await, Ok(vec![]));
    assert_eq!(store.load_vm(&id("vm-none")).await, Ok(None));
}

async fn listed(store: &impl Store, org: &str, limit: usize) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let mut after: Option<VmId> = None;
    loop {
        let page = store.list_vms(&id(org), after.as_ref(), limit).await;
        let page = page.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items.iter().map(|vm| vm.id.to_string()));
        match page.next {
            None => return seen,
            Some(next) => after = Some(next),
        }
    }
}

async fn an_org_lists_its_own_vms_over_pages_of_any_length(store: impl Store) {
    registered(&store, 16).await;
    let names = ["-", "a", "a-", "a.b", "a0", "b"];
    for (number, name) in names.into_iter().enumerate() {
        placed(&store, name, STRANGER_ORG, number).await;
    }
    placed(&store, "a1", AUDIENCE_ORG, 8).await;
    placed(&store, "a2", "org-stranger-2", 9).await;
    for limit in [1, 2, 3, 5, 6, 7, 100] {
        let seen = listed(&store, STRANGER_ORG, limit).await;
        assert_eq!(seen, names, "by pages of {limit}");
    }
    assert_eq!(listed(&store, AUDIENCE_ORG, 2).await, ["a1"]);
    assert!(listed(&store, "org", 2).await.is_empty());
    let after: VmId = id("a.0");
    let page = store.list_vms(&id(STRANGER_ORG), Some(&after), 1).await;
    assert_eq!(page.unwrap().items[0].id, id("a.b"));
}

fn sentence(number: u64) -> Sentence {
    Sentence {
        reservation: Some(id(fixtures::RESERVATION)),
        version: version(number),
        at: now().plus_ms(5),
    }
}

async fn a_vm_is_condemned_once(store: impl Store) {
    registered(&store, 8).await;
    spot(&store, "vm-1", [0], &Custodian::Pool, 0x11).await;
    let before = vm(&store, "vm-1").await;
    let first = store.condemn(&id("vm-1"), &sentence(7), "first").await;
    let expected = domain::Vm {
        status: VmStatus::Terminating,
        status_reason: Some("first".to_owned()),
        sentence: Some(sentence(7)),
        updated_at: sentence(7).at,
        ..before
    };
    assert_eq!(first, Ok(Some(expected.clone())));
    let second = store.condemn(&id("vm-1"), &sentence(8), "second").await;
    assert_eq!(second, Ok(Some(expected.clone())), "the first one stays");
    assert_eq!(vm(&store, "vm-1").await, expected);
}

async fn a_condemned_vm_keeps_its_place_in_the_list(store: impl Store) {
    registered(&store, 8).await;
    for (number, name) in ["vm-1", "vm-2", "vm-3"].into_iter().enumerate() {
        placed(&store, name, STRANGER_ORG, number).await;
    }
    let condemned = store.condemn(&id("vm-2"), &sentence(7), "x").await;
    assert!(condemned.unwrap().is_some());
    let page = store.list_vms(&id(STRANGER_ORG), None, 10).await.unwrap();
    let statuses: Vec<VmStatus> = page.items.iter().map(|vm| vm.status).collect();
    let (up, down) = (VmStatus::Running, VmStatus::Terminating);
    assert_eq!(statuses, [up, down, up]);
}

async fn nobody_is_condemned_or_counted_into_being(store: impl Store) {
    registered(&store, 8).await;
    let nobody = store.condemn(&id("vm-1"), &sentence(7), "x").await;
    assert_eq!(nobody, Ok(None));
    assert_eq!(store.count_attempt(&id("vm-1")).await, Ok(()));
    assert_eq!(store.load_vm(&id("vm-1")).await, Ok(None));
    let wanted = fixtures::vm("vm-1", Tier::Spot, STRANGER_ORG, [0]);
    let stamp = stamp(stranger(), 0x11);
    let placed = store.place(&wanted, &Custodian::Pool, &stamp).await;
    assert_eq!(placed, Ok(app::ports::Commit::Done));
}

async fn attempts_are_counted_one_by_one(store: impl Store) {
    registered(&store, 8).await;
    spot(&store, "vm-1", [0], &Custodian::Pool, 0x11).await;
    let before = vm(&store, "vm-1").await;
    for count in 1..4 {
        store.count_attempt(&id("vm-1")).await.unwrap();
        let expected = domain::Vm {
            attempts: count,
            ..before.clone()
        };
        assert_eq!(vm(&store, "vm-1").await, expected);
    }
}
