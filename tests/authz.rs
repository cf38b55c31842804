//! Who may do what: every route by every kind of caller, with every kind of key. What is expected
//! is written down here from the API contract, and compared with the route table, so that a route
//! that is not written down fails.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use app::auth::{ApiKey, Permission, SecretKey};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::{Caller, Timestamp};
use http_api::routes::{Access, Operation, ROUTES, Route};
use testkit::engine::{Engine, TABLE};
use testkit::events::HttpEvent;
use testkit::fixtures::{api_key, audience, manager, now, operator, owner, secret, stranger};
use testkit::http::{Answer, Fleet, Platform, key_of, secret_of};
use testkit::{MemoryStore, TestClock, World};

use Permission::{NodeAgent, ReservationCapacity, VmsRead, VmsWrite};

/// Who calls, in the order of a row's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Stranger,
    Audience,
    Manager,
    ManagerAfterTheTerm,
    Owner,
    Operator,
}

impl Who {
    const ALL: [Who; 6] = [
        Who::Stranger,
        Who::Audience,
        Who::Manager,
        Who::ManagerAfterTheTerm,
        Who::Owner,
        Who::Operator,
    ];

    fn caller(self) -> Caller {
        match self {
            Who::Stranger => stranger(),
            Who::Audience => audience(),
            Who::Manager | Who::ManagerAfterTheTerm => manager(),
            Who::Owner => owner(),
            Who::Operator => operator(),
        }
    }

    fn at(self) -> Timestamp {
        match self {
            // The fleet's reservation lasts an hour.
            Who::ManagerAfterTheTerm => now().plus_ms(3_600_000),
            _ => now(),
        }
    }
}

/// What the contract says of one route.
struct Row {
    method: &'static str,
    path: &'static str,
    /// Permissions of which one is needed; none where any valid key will do.
    needs: &'static [Permission],
    /// The answer to a key without them.
    lacking: u16,
    /// The answer to each of [`Who::ALL`].
    by: [u16; 6],
}

const fn row(
    method: &'static str,
    path: &'static str,
    needs: &'static [Permission],
    lacking: u16,
    by: [u16; 6],
) -> Row {
    Row {
        method,
        path,
        needs,
        lacking,
        by,
    }
}

const CAPACITY: &[Permission] = &[ReservationCapacity];
const AGENT: &[Permission] = &[NodeAgent, ReservationCapacity];
const STOP: &[Permission] = &[VmsWrite, ReservationCapacity];

/// The org in a path is the audience's; VMs are those of [`Fleet::target`].
#[rustfmt::skip]
const ROWS: [Row; 26] = [
    // stranger, audience, manager, manager after the term, owner, operator
    row("POST", "/v1/nodes/{nodeId}/reservations/{id}/release",
        CAPACITY, 404, [404, 404, 200, 409, 200, 200]),
    row("POST", "/v1/nodes/{nodeId}/reservations/{id}/reclaim",
        CAPACITY, 404, [404, 404, 200, 409, 200, 200]),
    row("POST", "/v1/nodes/{nodeId}/reservations/{id}/end",
        CAPACITY, 404, [404, 404, 404, 404, 404, 200]),
    row("POST", "/v1/nodes/{nodeId}/reservations",
        CAPACITY, 404, [404, 404, 404, 404, 200, 200]),
    row("GET", "/v1/nodes/{nodeId}/reservations",
        &[], 200, [200, 200, 200, 200, 200, 200]),
    row("GET", "/v1/nodes/{nodeId}/reservations/{id}",
        &[], 200, [404, 200, 200, 200, 200, 200]),
    row("POST", "/v1/nodes/{nodeId}/reservations/{id}/reaffirm",
        CAPACITY, 404, [404, 404, 404, 404, 404, 200]),
    row("GET", "/v1/nodes/{nodeId}/reservations/{id}/audit",
        &[], 200, [404, 404, 200, 200, 200, 200]),
    row("GET", "/v1/orgs/{orgId}/reservations",
        &[], 200, [403, 200, 403, 403, 403, 200]),
    row("GET", "/v1/nodes",
        &[], 200, [200, 200, 200, 200, 200, 200]),
    row("PUT", "/v1/nodes/{nodeId}",
        CAPACITY, 404, [404, 404, 404, 404, 404, 200]),
    row("GET", "/v1/nodes/{nodeId}",
        &[], 200, [404, 404, 404, 404, 200, 200]),
    row("PUT", "/v1/nodes/{nodeId}/topology",
        AGENT, 404, [404, 404, 404, 404, 200, 200]),
    row("GET", "/v1/nodes/{nodeId}/terminations",
        &[], 200, [404, 404, 404, 404, 200, 200]),
    row("POST", "/v1/nodes/{nodeId}/terminations/{vmId}/confirm",
        AGENT, 404, [404, 404, 404, 404, 200, 200]),
    row("POST", "/v1/orgs/{orgId}/vms/create",
        &[VmsWrite], 403, [403, 200, 403, 403, 403, 200]),
    row("GET", "/v1/orgs/{orgId}/vms",
        &[VmsRead], 403, [403, 200, 403, 403, 403, 200]),
    row("GET", "/v1/vms/{id}",
        &[VmsRead], 404, [404, 200, 404, 404, 404, 200]),
    row("POST", "/v1/vms/{id}/terminate",
        STOP, 404, [200, 404, 200, 404, 200, 200]),
    row("GET", "/v1/gpu-availability",
        &[], 200, [200, 200, 200, 200, 200, 200]),
    // By the keys of a fleet, which have no roles; `tests/keys.rs` has those that do.
    row("POST", "/v1/orgs/{orgId}/api-keys/create",
        &[], 200, [403, 403, 403, 403, 403, 200]),
    row("GET", "/v1/orgs/{orgId}/api-keys",
        &[], 200, [403, 403, 403, 403, 403, 200]),
    row("DELETE", "/v1/orgs/{orgId}/api-keys/{id}",
        &[], 204, [403, 403, 403, 403, 403, 204]),
    row("GET", "/v1/whoami",
        &[], 200, [200, 200, 200, 200, 200, 200]),
    row("GET", "/healthz",
        &[], 200, [200, 200, 200, 200, 200, 200]),
    row("GET", "/v1/openapi.json",
        &[], 200, [200, 200, 200, 200, 200, 200]),
];

impl Row {
    fn route(&self) -> &'static Route {
        let mut routes = ROUTES.iter();
        let found = routes.find(|route| (route.method, route.path) == (self.method, self.path));
        found.unwrap_or_else(|| panic!("{} {}: no such route", self.method, self.path))
    }

    fn operation(&self) -> Operation {
        self.route().operation
    }

    /// Whether it is for anyone, without a key.
    fn is_open(&self) -> bool {
        ["/healthz", "/v1/openapi.json"].contains(&self.path)
    }

    fn expected(&self, who: Who) -> u16 {
        let place = Who::ALL.iter().position(|known| *known == who);
        self.by[place.unwrap_or(0)]
    }
}

fn code(status: u16) -> &'static str {
    match status {
        200 | 204 => "",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "reservation_not_active",
        other => panic!("no refusal of rights is {other}"),
    }
}

/// A fleet to be copied for each call, so that no call sees the effect of another.
struct Stage {
    world: World,
    fleet: Fleet,
}

impl Stage {
    async fn set() -> Self {
        let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
        let fleet = Fleet::build(&platform).await;
        let world = platform.store.world();
        Self { world, fleet }
    }

    /// Makes one call on a fresh copy, and sees to it that a refusal changes nothing.
    async fn call(
        &self,
        request: HttpEvent,
        at: Timestamp,
        keys: &[(SecretKey, ApiKey)],
    ) -> Answer {
        let store = MemoryStore::holding(self.world.clone());
        let platform = Platform::new(store, TestClock::at(at), 2);
        put_keys(&platform, keys);
        let before = platform.store.world();
        let answer = platform.call(request).await;
        if !answer.is_good() {
            assert_eq!(platform.store.world(), before, "{answer:?}");
        }
        answer
    }

    /// The good call of a route by someone with this key in place of the usual one.
    async fn by(&self, row: &Row, who: Who, permissions: &[Permission]) -> Answer {
        let caller = who.caller();
        let key = api_key(&caller, permissions);
        let request = self.fleet.call(row.operation()).by(&secret_of(&caller));
        self.call(request, who.at(), &[(secret_of(&caller), key)])
            .await
    }
}

/// Puts keys in the place of those that are there.
fn put_keys(platform: &Platform<MemoryStore>, keys: &[(SecretKey, ApiKey)]) {
    platform.store.tamper(|world| {
        for (secret, key) in keys {
            world.keys.insert(secret.digest(), key.clone());
        }
    });
}

fn assert_answer(row: &Row, what: &str, answer: &Answer, status: u16) {
    let (method, path) = (row.method, row.path);
    let got = (answer.status, answer.code());
    assert_eq!(
        got,
        (status, code(status).to_owned()),
        "{method} {path}: {what}: {answer:?}"
    );
}

#[test]
fn every_route_is_written_down_here_and_nothing_else() {
    let table: BTreeSet<_> = ROUTES.iter().map(|r| (r.method, r.path)).collect();
    let here: BTreeSet<_> = ROWS.iter().map(|r| (r.method, r.path)).collect();
    assert_eq!(here, table);
    assert_eq!(ROUTES.len(), ROWS.len(), "no route twice");
}

#[tokio::test]
async fn every_route_serves_those_it_is_for() {
    let stage = Stage::set().await;
    for row in &ROWS {
        let served = Who::ALL.into_iter().filter(|who| row.expected(*who) < 300);
        let mut count = 0;
        for who in served {
            let answer = stage.by(row, who, &Permission::ALL).await;
            assert_answer(row, &format!("{who:?}"), &answer, row.expected(who));
            count += 1;
        }
        assert!(count > 0, "{} {}: a route for nobody", row.method, row.path);
    }
}

#[tokio::test]
async fn every_route_refuses_those_it_is_not_for_and_changes_nothing() {
    let stage = Stage::set().await;
    for row in &ROWS {
        for who in Who::ALL {
            let answer = stage.by(row, who, &Permission::ALL).await;
            assert_answer(row, &format!("{who:?}"), &answer, row.expected(who));
        }
    }
}

#[tokio::test]
async fn a_key_without_the_permission_is_refused_whoever_holds_it() {
    let stage = Stage::set().await;
    for row in &ROWS {
        let others = Permission::ALL
            .into_iter()
            .filter(|p| !row.needs.contains(p));
        let others: Vec<Permission> = others.collect();
        for who in Who::ALL {
            let expected = match row.needs {
                [] => row.expected(who),
                _ => row.lacking,
            };
            for held in [&others[..], &[]] {
                let answer = stage.by(row, who, held).await;
                assert_answer(row, &format!("{who:?} with {held:?}"), &answer, expected);
            }
        }
    }
}

#[tokio::test]
async fn any_one_of_the_permissions_is_enough_where_it_is_the_right_one() {
    let stage = Stage::set().await;
    let alone = |row: &Row, who: Who, permission: Permission| match row.operation() {
        // Stopping for the org takes vms:write; for the capacity under it, reservation.capacity.
        Operation::TerminateVm => match (who, permission) {
            (Who::Stranger | Who::Operator, VmsWrite)
            | (Who::Manager | Who::Owner, ReservationCapacity) => 200,
            (Who::Manager | Who::Owner, _) => 404,
            _ => 404,
        },
        _ => row.expected(who),
    };
    for row in &ROWS {
        for permission in row.needs {
            for who in Who::ALL {
                let answer = stage.by(row, who, &[*permission]).await;
                let expected = alone(row, who, *permission);
                assert_answer(
                    row,
                    &format!("{who:?} with {permission:?}"),
                    &answer,
                    expected,
                );
            }
        }
    }
}

/// Keys that are none, by what is wrong with them: the header, and what the store knows of it.
fn bad_keys() -> Vec<(&'static str, Option<String>, Option<ApiKey>)> {
    let good = secret_of(&operator());
    let bearer = |secret: &SecretKey| Some(format!("Bearer {}", secret.reveal()));
    let dead = |number: u8, change: fn(&mut ApiKey)| {
        let mut key = key_of(&operator());
        change(&mut key);
        (bearer(&secret(number)), Some(key))
    };
    let (revoked, revoked_key) = dead(40, |key| key.revoked_at = Some(now()));
    let (late, late_key) = dead(41, |key| key.revoked_at = Some(now().plus_ms(1)));
    let (expired, expired_key) = dead(42, |key| key.expires_at = Some(now()));
    let (both, both_key) = dead(43, |key| {
        key.expires_at = Some(now().plus_ms(-1));
        key.revoked_at = Some(now().plus_ms(-1));
    });
    let mut mistyped = good.reveal().to_owned();
    mistyped.replace_range(10..11, "#");
    vec![
        ("no key", None, None),
        ("empty", Some(String::new()), None),
        ("no scheme", Some(good.reveal().to_owned()), None),
        (
            "another scheme",
            Some(format!("Basic {}", good.reveal())),
            None,
        ),
        ("scheme alone", Some("Bearer ".to_owned()), None),
        ("too short", Some("Bearer or_abc".to_owned()), None),
        ("legacy too short", Some("Bearer vl_abc".to_owned()), None),
        ("mistyped", Some(format!("Bearer {mistyped}")), None),
        (
            "cut off",
            Some(format!("Bearer {}", &good.reveal()[..40])),
            None,
        ),
        (
            "two keys",
            Some(format!("Bearer {0}, Bearer {0}", good.reveal())),
            None,
        ),
        ("unknown", bearer(&secret(99)), None),
        (
            "unknown legacy",
            Some("Bearer vl_never-made-0001".to_owned()),
            None,
        ),
        ("revoked", revoked, revoked_key),
        ("revoked by another clock", late, late_key),
        ("expired at this instant", expired, expired_key),
        ("revoked and expired", both, both_key),
    ]
}

#[tokio::test]
async fn without_a_valid_key_there_is_one_answer_on_every_route() {
    let stage = Stage::set().await;
    let mut answers = BTreeSet::new();
    for row in ROWS.iter().filter(|row| !row.is_open()) {
        for (what, header, stored) in bad_keys() {
            let mut request = stage.fleet.call(row.operation());
            if let Some(header) = &header {
                request = request.header("authorization", header);
            }
            let secret = header
                .as_deref()
                .and_then(|h| SecretKey::from_header(Some(h)).ok());
            let keys: Vec<(SecretKey, ApiKey)> = secret.into_iter().zip(stored).collect();
            let answer = stage.call(request, now(), &keys).await;
            assert_answer(row, what, &answer, 401);
            assert_eq!(answer.header("www-authenticate"), "Bearer", "{what}");
            answers.insert(format!("{:?}", answer.without_id()));
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test]
async fn legacy_keys_still_work_and_a_key_works_until_it_expires() {
    let stage = Stage::set().await;
    let Some(legacy) = SecretKey::parse("vl_legacy-key-0001") else {
        panic!("it has the form of a legacy key")
    };
    let mut key = key_of(&operator());
    key.expires_at = Some(now().plus_ms(1));
    for row in &ROWS {
        let request = stage.fleet.call(row.operation()).by(&legacy);
        let keys = [(legacy.clone(), key.clone())];
        let answer = stage.call(request, now(), &keys).await;
        assert_answer(row, "legacy", &answer, row.expected(Who::Operator));
    }
}

#[tokio::test]
async fn an_open_route_is_for_anyone_with_whatever_key_and_reads_nothing() {
    let stage = Stage::set().await;
    let open: Vec<&Row> = ROWS.iter().filter(|row| row.is_open()).collect();
    let marked = ROUTES.iter().filter(|route| route.access == Access::Open);
    assert_eq!(open.len(), marked.count(), "no route is open by mistake");
    for row in open {
        for (what, header, _) in bad_keys() {
            let platform = Platform::new(MemoryStore::default(), TestClock::default(), 2);
            let mut request = stage.fleet.call(row.operation());
            if let Some(header) = &header {
                request = request.header("authorization", header);
            }
            assert_answer(row, what, &platform.call(request).await, 200);
            assert_eq!(platform.store.take_calls(), 0, "{what}");
        }
    }
}

/// Stopping a VM depends on whose it is and on who holds the units under it.
#[tokio::test]
async fn a_vm_is_stopped_by_its_org_by_operators_and_by_who_has_a_right_to_the_units() {
    let stage = Stage::set().await;
    let fleet = &stage.fleet;
    #[rustfmt::skip]
    let cases = [
        // stranger, audience, manager, manager after the term, owner, operator
        ("a tenant's on reserved units", &fleet.tenant_vm, [404, 200, 404, 404, 404, 200]),
        ("a stranger's in the pool", &fleet.pool_vm,       [200, 404, 404, 404, 200, 200]),
        ("a stranger's on another node", &fleet.other_vm,  [200, 404, 404, 404, 404, 200]),
        ("a condemned one", &fleet.dying_vm,               [200, 404, 200, 404, 200, 200]),
    ];
    for (what, vm, by) in cases {
        for (who, expected) in Who::ALL.into_iter().zip(by) {
            let path = format!("/v1/vms/{vm}/terminate");
            let request = HttpEvent::new("POST", &path).by(&secret_of(&who.caller()));
            let answer = stage.call(request, who.at(), &[]).await;
            let got = (answer.status, answer.code());
            assert_eq!(
                got,
                (expected, code(expected).to_owned()),
                "{what} by {who:?}"
            );
        }
    }
}

#[tokio::test]
async fn lists_show_each_caller_what_it_may_see_and_no_more() {
    let stage = Stage::set().await;
    let row = &ROWS[4];
    for who in Who::ALL {
        let answer = stage.by(row, who, &Permission::ALL).await;
        let items = answer.json()["items"].as_array().map_or(0, Vec::len);
        let seen = usize::from(who != Who::Stranger);
        assert_eq!(items, seen, "{who:?}: {answer:?}");
    }
}

/// An attribute as text, its members in order.
fn text_of(value: &AttributeValue) -> String {
    let AttributeValue::M(members) = value else {
        return format!("{value:?}");
    };
    let each = members.iter().map(|(name, value)| (name, text_of(value)));
    format!("{:?}", each.collect::<BTreeMap<_, _>>())
}

/// Every item of the table, as text.
async fn dump(client: &Client) -> BTreeSet<String> {
    let read = client.scan().table_name(TABLE).consistent_read(true);
    let Ok(reply) = read.send().await else {
        panic!("the table cannot be read")
    };
    let whole = reply.last_evaluated_key().is_none();
    assert!(whole, "one page holds it all");
    let each = reply.items().iter();
    each.map(|item| text_of(&AttributeValue::M(item.clone())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_real_store_the_same_are_refused_and_nothing_changes() {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let before = dump(engine.client()).await;
    assert!(before.len() > 10, "the fleet is stored");
    for row in &ROWS {
        for who in Who::ALL.into_iter().filter(|who| row.expected(*who) >= 300) {
            platform.clock.set(who.at());
            let request = fleet.call(row.operation()).by(&secret_of(&who.caller()));
            let answer = platform.call(request).await;
            assert_answer(row, &format!("{who:?}"), &answer, row.expected(who));
        }
        platform.clock.set(now());
        if row.is_open() {
            continue;
        }
        let answer = platform.call(fleet.call(row.operation())).await;
        assert_answer(row, "no key", &answer, 401);
        let unknown = fleet.call(row.operation()).by(&secret(99));
        assert_answer(row, "unknown", &platform.call(unknown).await, 401);
    }
    let after = dump(engine.client()).await;
    let changed: Vec<_> = after.symmetric_difference(&before).collect();
    assert!(changed.is_empty(), "{changed:#?}");
}
