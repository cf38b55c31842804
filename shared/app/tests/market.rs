//! What is free, and purchases by model: found wherever they are, refused with what could be had.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use app::auth::{Permission, Principal};
use app::availability::{self, Asked, Availability, Free};
use app::ports::{Custodian, PlaceVm, PutNode, Write};
use app::vms::{self, Place, VmRequest, Wanted};
use app::{Context, Error};
use domain::limits::{AVAILABILITY_CUSTODIANS_MAX, AVAILABILITY_MODELS_MAX, MARKET_HINTS_MAX};
use domain::node::Register;
use domain::reservation::{Release, release};
use domain::{Booking, Caller, Node, Refusal, Term, Tier, Vm};
use testkit::fixtures::{
    self, AUDIENCE_ORG, GPU_MODEL, NODE, OWNER_ORG, RESERVATION, id, now, stamp, unit, units,
};
use testkit::{MemoryStore, SeededIds, TestClock};

fn context(by: Caller) -> Context {
    Context {
        principal: Principal {
            caller: by,
            permissions: Permission::ALL.into(),
            role: None,
            expires_at: None,
        },
        request_id: "0190a6f0-0000-7000-8000-0123456789ab".to_owned(),
    }
}

/// Registers a node of the fixtures' model with units of these sizes.
async fn node(store: &MemoryStore, name: &str, sizes: &[u16]) {
    node_of(store, name, GPU_MODEL, sizes).await;
}

async fn node_of(store: &MemoryStore, name: &str, model: &str, sizes: &[u16]) {
    let sized = sizes.iter().enumerate();
    let register = Register {
        id: id(name),
        owner: id(OWNER_ORG),
        gpu_model: id(model),
        units: sized.map(|(number, gpus)| (unit(number), *gpus)).collect(),
        topology_gen: 1,
        stamp: stamp(fixtures::operator(), 0xe001),
    };
    let put = store
        .put_node(&register.node(), &register.stamp.write)
        .await;
    assert_eq!(put, Ok(Write::Done(())));
}

/// The node of the fixtures with the reservation of its first four units, of which these are
/// released.
fn reserved(store: &MemoryStore, released: &[usize]) {
    let (mut reservation, node) = fixtures::reserved(&fixtures::node(8), 0..4);
    if !released.is_empty() {
        let command = Release {
            units: fixtures::unit_set(released.iter().copied()),
            expected: None,
            stamp: stamp(fixtures::manager(), 0x77),
        };
        reservation = release(&reservation, &command).unwrap();
    }
    store.tamper(|world| {
        let key = (reservation.node.clone(), reservation.id.clone());
        world.reservations.insert(key, reservation);
        world.nodes.insert(node.id.clone(), node);
    });
}

async fn buy(store: &MemoryStore, org: &str, tier: Tier, gpus: u32) -> Result<Vm, Error> {
    let request = VmRequest {
        org: id(org),
        name: "w".to_owned(),
        tier,
        wanted: Wanted::Gpus(gpus),
        place: Place::Model(id(GPU_MODEL)),
    };
    let (clock, ids) = (TestClock::default(), SeededIds::new(u64::from(gpus)));
    let context = context(fixtures::caller(org));
    vms::create(store, &clock, &ids, &context, request, None).await
}

/// Why there was no capacity.
fn shortage(answer: Result<Vm, Error>) -> String {
    match answer {
        Err(Error::Refused {
            refusal: Refusal::InsufficientCapacity(text),
            ..
        }) => text,
        other => unreachable!("there is no capacity: {other:?}"),
    }
}

async fn free(store: &MemoryStore, asked: Asked) -> Vec<Availability> {
    let (clock, context) = (TestClock::default(), context(fixtures::stranger()));
    let found = availability::list(store, &clock, &context, &asked, None, 100);
    found.await.unwrap().items
}

/// Units, GPUs, nodes, and the largest VM.
fn counts(free: Free) -> [u32; 4] {
    [free.units, free.gpus, free.nodes, free.largest]
}

#[tokio::test]
async fn a_purchase_by_model_finds_the_one_node_that_fits_among_many() {
    let store = MemoryStore::default();
    for number in 0..MARKET_HINTS_MAX - 1 {
        node(&store, &format!("small-{number}"), &[1, 1]).await;
    }
    node(&store, "z-large", &[4, 4]).await;
    let made = buy(&store, "any", Tier::Community, 8).await.unwrap();
    assert_eq!((made.node.as_str(), made.gpu_count), ("z-large", 8));
}

#[tokio::test]
async fn a_refused_purchase_says_what_could_be_had_on_one_node() {
    let store = MemoryStore::default();
    let text = shortage(buy(&store, "any", Tier::Spot, 1).await);
    assert!(text.contains("nothing is free there"), "{text}");
    node(&store, "a", &[1, 1]).await;
    node(&store, "b", &[4, 4]).await;
    node(&store, "c", &[8]).await;
    let text = shortage(buy(&store, "any", Tier::Spot, 9).await);
    assert!(text.contains("9 GPUs on one node"), "{text}");
    assert!(
        text.contains("largest free: 8 GPUs; nearest that fits: 8"),
        "{text}"
    );
    let text = shortage(buy(&store, "any", Tier::Spot, 3).await);
    assert!(text.contains("nearest that fits: 2 or 4"), "{text}");
    assert!(!text.contains("more nodes"), "{text}");
    for number in 0..MARKET_HINTS_MAX {
        node(&store, &format!("more-{number}"), &[2]).await;
    }
    let text = shortage(buy(&store, "any", Tier::Spot, 64).await);
    assert!(text.contains("more nodes than were looked at"), "{text}");
}

#[tokio::test]
async fn a_vm_has_no_more_units_than_a_call_may_name() {
    let store = MemoryStore::default();
    node(&store, "wide", &[1; 40]).await;
    let text = shortage(buy(&store, "any", Tier::Spot, 33).await);
    assert!(text.contains("largest free: 32 GPUs"), "{text}");
    let made = buy(&store, "any", Tier::Spot, 32).await.unwrap();
    assert_eq!(made.units.len(), 32);
}

#[tokio::test]
async fn by_model_an_audience_finds_its_own_units_and_spot_the_released_ones() {
    let store = MemoryStore::default();
    reserved(&store, &[0, 1]);
    let custodian = Custodian::Pool;
    let tenant = fixtures::vm("full", Tier::Verified, "any", 4..8);
    let placed = store
        .place(&tenant, &custodian, &stamp(fixtures::caller("any"), 0x91))
        .await;
    assert!(placed.is_ok());
    let text = shortage(buy(&store, "any", Tier::Community, 1).await);
    assert!(text.contains("nothing is free there"), "{text}");
    let spot = buy(&store, "any", Tier::Spot, 2).await.unwrap();
    assert_eq!(spot.units, units([0, 1]));
    let tenant = buy(&store, AUDIENCE_ORG, Tier::Community, 2).await.unwrap();
    assert_eq!(tenant.units, units([2, 3]));
    assert_eq!(tenant.reservation, Some(id(RESERVATION)));
}

#[tokio::test]
async fn what_is_free_is_counted_by_model_and_tier() {
    let store = MemoryStore::default();
    node(&store, "a", &[1, 2]).await;
    node_of(&store, "b", "a100", &[4]).await;
    reserved(&store, &[0, 1]);
    let found = free(&store, Asked::default()).await;
    let models: Vec<&str> = found.iter().map(|f| f.model.as_str()).collect();
    assert_eq!(models, ["a100", GPU_MODEL]);
    let (a100, h100) = (&found[0], &found[1]);
    assert!(a100.free.values().all(|free| counts(*free) == [1, 4, 1, 4]));
    let by_tier: BTreeMap<Tier, [u32; 4]> =
        h100.free.iter().map(|(t, f)| (*t, counts(*f))).collect();
    // Units 4 to 7 of the pool and the two of the other node; at spot the two released ones too.
    let expected = [
        (Tier::Community, [6, 7, 2, 4]),
        (Tier::Verified, [6, 7, 2, 4]),
        (Tier::Spot, [8, 9, 2, 4]),
    ];
    assert_eq!(by_tier, expected.into());
    assert_eq!((h100.nodes, h100.at_least), (2, false));

    let spot = Asked {
        tier: Some(Tier::Spot),
        model: Some(id("a100")),
    };
    let found = free(&store, spot).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].free.keys().collect::<Vec<_>>(), [&Tier::Spot]);
    let unknown = Asked {
        tier: None,
        model: Some(id("a10")),
    };
    assert_eq!(free(&store, unknown).await, []);
}

#[tokio::test]
async fn a_model_with_nothing_free_is_there_with_noughts() {
    let store = MemoryStore::default();
    node(&store, "a", &[1]).await;
    buy(&store, "any", Tier::Spot, 1).await.unwrap();
    let found = free(&store, Asked::default()).await;
    assert_eq!((found.len(), found[0].nodes), (1, 0));
    let nothing = |free: &Free| counts(*free) == [0; 4];
    assert!(found[0].free.values().all(nothing), "{found:?}");
}

#[tokio::test]
async fn what_a_booking_claims_from_now_on_is_neither_counted_nor_sold() {
    let store = MemoryStore::default();
    let mut claimed: Node = fixtures::node(3);
    let booking = |starts| Booking {
        units: units([0]),
        term: Term { starts, ends: None },
        holds: false,
    };
    claimed.bookings = [
        (id("due"), booking(now())),
        (
            id("later"),
            Booking {
                units: units([1]),
                ..booking(now().plus_ms(1))
            },
        ),
    ]
    .into();
    store.tamper(|world| {
        world.nodes.insert(id(NODE), claimed);
    });
    let found = free(&store, Asked::default()).await;
    assert!(
        found[0].free.values().all(|free| free.units == 2),
        "{found:?}"
    );
    let text = shortage(buy(&store, "any", Tier::Spot, 3).await);
    assert!(text.contains("largest free: 2 GPUs"), "{text}");
}

#[tokio::test]
async fn a_fleet_too_large_to_count_says_that_there_may_be_more() {
    let store = MemoryStore::default();
    for number in 0..AVAILABILITY_CUSTODIANS_MAX {
        node(&store, &format!("n-{number}"), &[1]).await;
    }
    let found = free(&store, Asked::default()).await;
    assert!(!found[0].at_least);
    node(&store, "one-more", &[1]).await;
    let found = free(&store, Asked::default()).await;
    assert!(found[0].at_least);
    let counted = u32::try_from(AVAILABILITY_CUSTODIANS_MAX).unwrap();
    assert!(found[0].free.values().all(|free| free.units == counted));
}

#[tokio::test]
async fn a_page_has_so_many_models_at_most_and_the_next_goes_on() {
    let store = MemoryStore::default();
    for number in 0..2 * AVAILABILITY_MODELS_MAX + 1 {
        node_of(
            &store,
            &format!("n-{number}"),
            &format!("m-{number:03}"),
            &[1],
        )
        .await;
    }
    let (clock, context) = (TestClock::default(), context(fixtures::stranger()));
    let mut seen = Vec::new();
    loop {
        let asked = Asked::default();
        let page = availability::list(&store, &clock, &context, &asked, seen.last(), 100);
        let page = page.await.unwrap();
        assert!(page.items.len() <= AVAILABILITY_MODELS_MAX);
        seen.extend(page.items.into_iter().map(|found| found.model));
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 2 * AVAILABILITY_MODELS_MAX + 1);
    assert!(seen.is_sorted());
}
