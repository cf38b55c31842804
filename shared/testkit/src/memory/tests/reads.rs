//! What is read back: in order, in pages, and no more than is there.

use super::*;

#[tokio::test]
async fn lists_come_in_order_and_in_pages_that_end() {
    let store = MemoryStore::default();
    store.tamper(|world| {
        for name in ["vm-3", "vm-1", "vm-2"] {
            let vm = fixtures::vm(name, Tier::Spot, fixtures::AUDIENCE_ORG, [0]);
            world.vms.insert(vm.id.clone(), vm);
        }
        for number in [5, 4] {
            let mut reservation = fixtures::reserved(&node(8), 0..4).0;
            reservation.id = id(&format!("res-{number}"));
            world.put_reservation(reservation);
        }
    });
    let org = id(fixtures::AUDIENCE_ORG);
    let first = store.list_vms(&org, None, 2).await.unwrap();
    let names: Vec<&str> = first.items.iter().map(|vm| vm.id.as_str()).collect();
    assert_eq!(
        (names.as_slice(), &first.next),
        (&["vm-1", "vm-2"][..], &Some(id("vm-2")))
    );
    let last = store.list_vms(&org, first.next.as_ref(), 1).await.unwrap();
    assert_eq!(
        (last.items.len(), last.next),
        (1, None),
        "the last page says that it is"
    );
    assert_eq!(
        store.list_vms(&id("org-x"), None, 5).await.unwrap().items,
        []
    );
    let node_id = id(fixtures::NODE);
    let page = store.list_reservations(&node_id, None, 1).await.unwrap();
    assert_eq!(
        (page.items[0].id.as_str(), page.next),
        ("res-4", Some(id("res-4")))
    );
    let rest = store
        .list_reservations(&node_id, Some(&id("res-4")), 9)
        .await
        .unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    let asked: BTreeSet<ReservationId> = [id("res-5"), id("res-4"), id("res-9")].into();
    let found = store.load_reservations(&node_id, &asked).await.unwrap();
    let found: Vec<&str> = found.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(found, ["res-4", "res-5"]);
}

#[tokio::test]
async fn the_audit_trail_only_grows_and_is_read_back_in_order() {
    let store = fleet().await;
    let mut old = None;
    let mut hash = String::new();
    for write in 0x11..0x14 {
        let new = present(&store);
        for event in events(old.as_ref(), &new) {
            let record = event.seal(&hash);
            hash.clone_from(&record.hash);
            assert_eq!(store.put_record(&record).await, Ok(Recorded::Written));
            assert_eq!(store.put_record(&record).await, Ok(Recorded::Same));
            let other = record.event.clone().seal("another chain");
            assert_eq!(store.put_record(&other).await, Ok(Recorded::Different));
        }
        old = Some(new);
        released(&store, write, 0).await;
    }
    let reservation = id(fixtures::RESERVATION);
    let page = store.list_records(&reservation, None, 2).await.unwrap();
    let rest = store
        .list_records(&reservation, page.next.as_deref(), 2)
        .await
        .unwrap();
    let records: Vec<_> = page.items.into_iter().chain(rest.items).collect();
    assert_eq!(rest.next, None);
    let verified = domain::audit::verify(&records, old.unwrap().version).unwrap();
    assert_eq!(verified.records, records.len());
    let before = |version| store.last_record_before(&reservation, version);
    assert_eq!(before(Version::FIRST).await, Ok(None));
    let third = Version::FIRST.next().next();
    assert_eq!(before(third).await.unwrap().as_ref(), Some(&records[1]));
}

#[tokio::test]
async fn the_market_names_who_has_an_empty_unit_to_sell_and_turns() {
    let store = fleet().await;
    let model: domain::GpuModelId = id(fixtures::GPU_MODEL);
    let pool = (id(fixtures::NODE), Custodian::Pool);
    let held = (
        id(fixtures::NODE),
        Custodian::Reservation(id(fixtures::RESERVATION)),
    );
    let hints = |write: u64| {
        let store = store.clone();
        let model = model.clone();
        async move {
            store
                .find_market(&model, &fixtures::write(write), 9)
                .await
                .unwrap()
        }
    };
    assert_eq!(hints(1).await.as_slice(), std::slice::from_ref(&pool));
    released(&store, 0x11, 0).await;
    let mut rng = Rng::new(3);
    let mut firsts = BTreeSet::new();
    for _ in 0..20 {
        let found = hints(rng.next_u64()).await;
        assert!(found.contains(&pool) && found.contains(&held) && found.len() == 2);
        firsts.insert(found[0].clone());
    }
    assert_eq!(firsts.len(), 2, "each comes first at times");
    assert_eq!(
        placed(&store, "vm-s", Tier::Spot, 0, 0x14).await,
        Commit::Done
    );
    assert_eq!(
        hints(1).await.as_slice(),
        std::slice::from_ref(&pool),
        "a full one sells nothing"
    );
    released(&store, 0x12, 1).await;
    assert_eq!(hints(1).await.len(), 2);
    let mut held = present(&store);
    held.status = domain::Status::NeedsReview;
    store.tamper(|world| world.put_reservation(held));
    assert_eq!(hints(1).await, [pool], "nor does one under review");
    let other = store.find_market(&id("a100"), &fixtures::write(1), 9).await;
    assert_eq!(other, Ok(vec![]));
}

#[tokio::test]
async fn keys_are_found_by_digest_and_a_node_is_registered_once() {
    let store = fleet().await;
    let key = fixtures::api_key(&owner(), &[]);
    let digest = fixtures::secret(1).digest();
    store.put_key(&digest, &key).await.unwrap();
    assert_eq!(store.load_key(&digest).await, Ok(Some(key)));
    assert_eq!(
        store.load_key(&fixtures::secret(2).digest()).await,
        Ok(None)
    );
    let there = store.world().nodes[&id(fixtures::NODE)].clone();
    let again = store.put_node(&node(8), &fixtures::write(0xe001)).await;
    assert_eq!(again, Ok(Write::Done(())), "the same write again");
    let other = store.put_node(&node(3), &fixtures::write(0x51)).await;
    assert_eq!(other, Ok(Write::Refused(there)));
}

#[tokio::test]
async fn records_beside_a_version_stand_behind_it_and_tens_behind_units() {
    let store = fleet().await;
    let new = present(&store);
    let own = events(None, &new).remove(0);
    let at = |version, beside: Option<&str>| {
        let mut event = own.clone();
        event.version = Version::stored(version).unwrap();
        event.beside = beside.map(id);
        event.seal("")
    };
    let sorted = [
        at(2, None),
        at(2, Some("vm-a")),
        at(2, Some("vm-b")),
        at(10, None),
        at(10, Some("vm-a")),
    ];
    for record in sorted.iter().rev() {
        assert_eq!(store.put_record(record).await, Ok(Recorded::Written));
    }
    let mut read = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store
            .list_records(&new.id, after.as_deref(), 1)
            .await
            .unwrap();
        read.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(read, sorted);
    let tenth = Version::stored(10).unwrap();
    let last = store.last_record_before(&new.id, tenth).await.unwrap();
    assert_eq!(last.as_ref(), Some(&sorted[2]));
}
