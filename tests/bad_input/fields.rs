//! Every field of every body, wrong in every way that the contract names.

use domain::limits::TOPOLOGY_GEN_MAX;
use http_api::routes::{BodyRule, Operation, ROUTES};
use serde_json::{Value, json};
use testkit::events::HttpEvent;
use testkit::fixtures::{AUDIENCE_ORG, GPU_MODEL, NODE, operator};
use testkit::http::{secret_of, with_text};

use crate::{BAD, Stage};

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    Units { max: usize },
    Orgs { empty: bool },
    Id,
    Words { max: usize },
    Tier,
    Time,
    Flag,
    Count { max: u64 },
    NodeUnits,
    Role,
    Permissions,
}

fn long(chars: usize) -> String {
    "a".repeat(chars)
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("n{number}")).collect()
}

/// The members of a JSON array, with more.
fn listed(values: Value, more: &[Value]) -> Vec<Value> {
    let mut out = values.as_array().unwrap().clone();
    out.extend_from_slice(more);
    out
}

/// Values of this kind that are wrong, whatever the request. Null is wrong everywhere: what has no
/// value is left out.
fn wrong(kind: Kind) -> Vec<Value> {
    let of_kind = match kind {
        Kind::Units { max } => wrong_unit_ids(max),
        Kind::Orgs { empty } => wrong_orgs(empty),
        Kind::Id => {
            let values = json!([
                5,
                true,
                [],
                ["a"],
                "",
                " ",
                "a b",
                "ü",
                "a/b",
                "a\n",
                "a\u{0}",
                "a#b"
            ]);
            listed(values, &[json!(long(129))])
        }
        Kind::Words { max } => {
            let texts = [json!(long(max + 1)), json!("ü".repeat(max + 1))];
            listed(json!([5, true, [], ["a"], ""]), &texts)
        }
        Kind::Tier => {
            let values = json!([5, [], "", "Spot", "gold", "spot "]);
            listed(values, &[json!(long(1000))])
        }
        Kind::Time => wrong_times(),
        Kind::Flag => listed(json!(["true", "false", "", 1, 0, [], [true]]), &[]),
        Kind::Count { max } => {
            let values = json!([0, -1, 1.5, -1.0, 1e30, "1", [], [1], true]);
            let mut large = vec![json!(i64::MIN)];
            let past = [max + 1, u64::MAX, 4_294_967_297, 9_007_199_254_740_992];
            large.extend(past.into_iter().filter(|n| *n > max).map(Value::from));
            listed(values, &large)
        }
        Kind::NodeUnits => wrong_units(),
        Kind::Role => {
            let values = json!([5, true, [], ["owner"], "", "Owner", "owner ", "operator"]);
            listed(values, &[json!(long(1000))])
        }
        Kind::Permissions => wrong_permissions(),
    };
    listed(json!([null, {}, { "a": 1 }]), &of_kind)
}

fn wrong_unit_ids(max: usize) -> Vec<Value> {
    let values = json!([
        "u00",
        5,
        true,
        [],
        [""],
        ["a b"],
        ["ü"],
        ["a/b"],
        [null],
        [1],
        [["u00"]],
        ["u00", "u00"],
        ["u00", "u01", "u00"]
    ]);
    let lists = [
        json!([long(129)]),
        json!(many(max + 1)),
        json!(many(max + 1000)),
    ];
    listed(values, &lists)
}

fn wrong_orgs(empty: bool) -> Vec<Value> {
    let values = json!(["org", 5, [""], ["a b"], ["ü"], [null], [1], ["o", "o"]]);
    let mut lists = vec![json!([long(129)]), json!(many(33))];
    if !empty {
        lists.push(json!([]));
    }
    listed(values, &lists)
}

fn wrong_permissions() -> Vec<Value> {
    let values = json!([
        "vms:read",
        5,
        true,
        [],
        [""],
        ["vms:delete"],
        ["VMS:READ"],
        ["vms:read "],
        ["*"],
        [null],
        [1],
        [["vms:read"]],
        ["vms:read", "vms:read"],
        ["vms:read", "owner"]
    ]);
    listed(values, &[json!(many(1000)), json!([long(1000)])])
}

fn wrong_times() -> Vec<Value> {
    let values = json!([
        5,
        1_782_907_200,
        [],
        "",
        "soon",
        "2026-07-01",
        "2026-07-01T12:00:00",
        "2026-07-01 12:00",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-07-01T25:00:00Z",
        "2026-07-01T12:00:00+99:00",
        "1969-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
        "-2026-07-01T12:00:00Z"
    ]);
    listed(values, &[json!(long(5000))])
}

fn wrong_units() -> Vec<Value> {
    let many: Vec<Value> = many(129).iter().map(|id| json!({ "id": id })).collect();
    let values = json!([
        [], "u00", 5, ["u00"], [null], [["u00", 1]], [["u00"]], [{ "id": "" }], [{ "id": "a b" }],
        [{ "id": 1 }], [{ "id": null }], [{ "id": "a" }, { "id": "a" }]
    ]);
    let mut lists = vec![json!(many), json!([{ "id": long(129) }])];
    for gpus in wrong(Kind::Count { max: 64 }) {
        lists.push(json!([{ "id": "a", "gpus": gpus }]));
    }
    listed(values, &lists)
}

/// A field of a call: which body it is tried in, and its name.
struct Field {
    operation: Operation,
    body: Value,
    name: &'static str,
    kind: Kind,
    required: bool,
}

const REASON: Kind = Kind::Words { max: 512 };

/// A field's name, what it holds, and whether it must be there.
type Named = (&'static str, Kind, bool);

fn fields_of(operation: Operation, body: &Value, each: &[Named]) -> Vec<Field> {
    let fields = each.iter().map(|(name, kind, required)| Field {
        operation,
        body: body.clone(),
        name,
        kind: *kind,
        required: *required,
    });
    fields.collect()
}

fn fields(stage: &Stage) -> Vec<Field> {
    let of_vms = vm_fields(stage);
    let all = [capacity_fields(), registry_fields(), of_vms, key_fields()];
    all.into_iter().flatten().collect()
}

fn capacity_fields() -> Vec<Field> {
    let units = ("unitIds", Kind::Units { max: 32 }, true);
    let reason = ("reason", REASON, false);
    let dry_run = ("dryRun", Kind::Flag, false);
    let (idle, sold) = (json!({ "unitIds": ["u03"] }), json!({ "unitIds": ["u00"] }));
    let all = [
        fields_of(Operation::ReleaseUnits, &idle, &[units, reason]),
        fields_of(Operation::ReclaimUnits, &sold, &[units, reason, dry_run]),
        fields_of(Operation::EndReservation, &json!({}), &[reason]),
        fields_of(Operation::ReaffirmReservation, &json!({}), &[reason]),
    ];
    all.into_iter().flatten().collect()
}

fn registry_fields() -> Vec<Field> {
    let body = json!({ "reservedUnitIds": ["u06"], "allowedOrgIds": [AUDIENCE_ORG] });
    let each = [
        ("reservedUnitIds", Kind::Units { max: 64 }, true),
        ("allowedOrgIds", Kind::Orgs { empty: false }, true),
        ("managingOrgIds", Kind::Orgs { empty: true }, false),
        ("startsAt", Kind::Time, false),
        ("endsAt", Kind::Time, false),
        ("contractRef", REASON, false),
        ("reason", REASON, false),
    ];
    let mut out = fields_of(Operation::CreateReservation, &body, &each);
    let body = json!({ "ownerOrgId": "o", "gpuModelId": GPU_MODEL, "units": [{ "id": "u" }] });
    let each = [
        ("ownerOrgId", Kind::Id, true),
        ("gpuModelId", Kind::Id, true),
        ("units", Kind::NodeUnits, true),
        (
            "topologyGen",
            Kind::Count {
                max: TOPOLOGY_GEN_MAX,
            },
            false,
        ),
    ];
    out.extend(fields_of(Operation::PutNode, &body, &each));
    let body = json!({ "topologyGen": 2, "units": [{ "id": "u" }] });
    let each = [
        (
            "topologyGen",
            Kind::Count {
                max: TOPOLOGY_GEN_MAX,
            },
            true,
        ),
        ("units", Kind::NodeUnits, true),
    ];
    out.extend(fields_of(Operation::PutTopology, &body, &each));
    out
}

fn key_fields() -> Vec<Field> {
    let by_role = json!({ "name": "k", "role": "admin" });
    let mut out = fields_of(
        Operation::CreateKey,
        &by_role,
        &[
            ("name", Kind::Words { max: 128 }, true),
            ("role", Kind::Role, true),
            ("expiresInSeconds", Kind::Count { max: 315_360_000 }, false),
            ("platformOperator", Kind::Flag, false),
        ],
    );
    let one_by_one = json!({ "name": "k", "permissions": ["vms:read", "node.agent"] });
    let permissions = ("permissions", Kind::Permissions, true);
    out.extend(fields_of(Operation::CreateKey, &one_by_one, &[permissions]));
    out
}

fn vm_fields(stage: &Stage) -> Vec<Field> {
    let by_units = json!({ "name": "w", "tier": "spot", "nodeId": NODE, "unitIds": ["u07"] });
    let by_count = json!({ "name": "w", "tier": "verified", "nodeId": NODE, "gpuCount": 1,
        "reservationId": stage.fleet.reservation });
    let by_model = json!({ "name": "w", "tier": "spot", "gpuModelId": GPU_MODEL, "gpuCount": 1 });
    let cases: [(Value, &[Named]); 3] = [
        (
            by_units,
            &[
                ("name", Kind::Words { max: 128 }, true),
                ("tier", Kind::Tier, true),
                ("unitIds", Kind::Units { max: 32 }, false),
            ],
        ),
        (
            by_count,
            &[
                ("gpuCount", Kind::Count { max: 2048 }, false),
                ("nodeId", Kind::Id, false),
                ("reservationId", Kind::Id, false),
            ],
        ),
        (by_model, &[("gpuModelId", Kind::Id, false)]),
    ];
    let each = cases.into_iter();
    each.flat_map(|(body, each)| fields_of(Operation::CreateVm, &body, each))
        .collect()
}

#[tokio::test]
async fn the_bodies_are_right_before_a_field_is_made_wrong() {
    let stage = Stage::set().await;
    for field in fields(&stage) {
        let event = with_text(stage.event(field.operation), &field.body.to_string());
        let answer = stage.platform.send(event).await;
        assert_eq!(answer.status, 200, "{:?}: {answer:?}", field.body);
        stage.restore();
    }
}

#[tokio::test]
async fn every_field_wrong_in_every_way_is_named_and_nothing_changes() {
    let stage = Stage::set().await;
    let mut count = 0;
    for field in fields(&stage) {
        for value in wrong(field.kind) {
            let mut body = field.body.clone();
            body[field.name] = value;
            // Inside `units` it is the field of a unit that is named.
            let named = match field.kind {
                Kind::NodeUnits => "unit",
                _ => field.name,
            };
            let event = with_text(stage.event(field.operation), &body.to_string());
            stage.refused(event, BAD, &[named]).await;
            count += 1;
        }
    }
    assert!(count > 250, "{count}");
}

/// To JSON there is one kind of number.
#[tokio::test]
async fn a_whole_number_is_taken_however_it_is_written() {
    let stage = Stage::set().await;
    let operations = [
        Operation::PutNode,
        Operation::CreateKey,
        Operation::PutTopology,
    ];
    for (operation, body) in operations.into_iter().zip([
        r#"{"ownerOrgId":"o","gpuModelId":"m","units":[{"id":"u","gpus":2.0}],"topologyGen":3e0}"#,
        r#"{"name":"k","role":"viewer","expiresInSeconds":60.0}"#,
        r#"{"topologyGen":4.0,"units":[{"id":"u00","gpus":1.0}]}"#,
    ]) {
        let event = with_text(stage.event(operation), body);
        let answer = stage.platform.send(event).await;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
    }
    let node = json!({ "id": "u", "gpus": 2, "state": "free" });
    let path = "/v1/nodes/node-new";
    let get = HttpEvent::new("GET", path).by(&secret_of(&operator()));
    let made = stage.platform.call(get).await.json();
    assert_eq!(
        (&made["units"][0], &made["topologyGen"]),
        (&node, &json!(3))
    );
}

#[tokio::test]
async fn a_missing_field_is_named() {
    let stage = Stage::set().await;
    for field in fields(&stage).into_iter().filter(|field| field.required) {
        let mut body = field.body.clone();
        body.as_object_mut().unwrap().remove(field.name);
        let event = with_text(stage.event(field.operation), &body.to_string());
        stage.refused(event, BAD, &[field.name]).await;
    }
}

#[tokio::test]
async fn an_unknown_field_is_named_on_every_route_with_a_body() {
    let stage = Stage::set().await;
    for route in ROUTES.iter().filter(|route| route.body != BodyRule::None) {
        let event = stage.event(route.operation);
        let good: Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
        for name in [
            "x", "dryrun", "dry_run", "DryRun", "dryRun ", "unit_ids", "UnitIds", "",
        ] {
            let mut body = good.clone();
            body[name] = json!(true);
            let event = with_text(event.clone(), &body.to_string());
            stage.refused(event, BAD, &[name]).await;
        }
    }
    let body = json!({ "ownerOrgId": "o", "gpuModelId": "m", "units": [{ "id": "u", "gpu": 1 }] });
    let event = with_text(stage.event(Operation::PutNode), &body.to_string());
    stage.refused(event, BAD, &["gpu"]).await;
}

#[tokio::test]
async fn fields_that_exclude_or_need_each_other_are_named() {
    let stage = Stage::set().await;
    let reservation = &stage.fleet.reservation;
    let cases: [(Value, &[&str]); 8] = [
        (json!({}), &["gpuCount", "unitIds"]),
        (
            json!({ "gpuCount": 1, "unitIds": ["u07"], "nodeId": NODE }),
            &["gpuCount", "unitIds"],
        ),
        (json!({ "nodeId": NODE }), &["gpuCount", "unitIds"]),
        (json!({ "gpuCount": 1 }), &["nodeId", "gpuModelId"]),
        (json!({ "unitIds": ["u07"] }), &["nodeId"]),
        (
            json!({ "unitIds": ["u07"], "gpuModelId": GPU_MODEL }),
            &["nodeId", "unitIds"],
        ),
        (
            json!({ "gpuCount": 1, "reservationId": reservation }),
            &["nodeId", "reservationId"],
        ),
        (
            json!({ "gpuCount": 1, "nodeId": NODE, "reservationId": reservation,
                "gpuModelId": GPU_MODEL }),
            &["gpuModelId"],
        ),
    ];
    for (mut body, words) in cases {
        body["name"] = json!("w");
        body["tier"] = json!("spot");
        let event = with_text(stage.event(Operation::CreateVm), &body.to_string());
        stage.refused(event, BAD, words).await;
    }
}

#[tokio::test]
async fn a_key_has_a_role_or_permissions_and_not_both() {
    let stage = Stage::set().await;
    for mut body in [
        json!({}),
        json!({ "role": "viewer", "permissions": ["vms:read"] }),
        json!({ "role": "nothing", "permissions": [] }),
        json!({ "platformOperator": true }),
    ] {
        body["name"] = json!("k");
        let event = with_text(stage.event(Operation::CreateKey), &body.to_string());
        stage.refused(event, BAD, &["role", "permissions"]).await;
    }
}

#[tokio::test]
async fn what_is_well_formed_and_means_nothing_here_is_422() {
    let stage = Stage::set().await;
    let foreign = json!({ "unitIds": ["u03", "u04", "u99"] });
    for operation in [Operation::ReleaseUnits, Operation::ReclaimUnits] {
        let event = with_text(stage.event(operation), &foreign.to_string());
        let answer = stage.refused(event, (422, "unit_not_reserved"), &["u04, u99"]);
        assert!(!answer.await.field("error").contains("u03"));
    }
    let new = |more: Value| {
        let mut body = json!({ "reservedUnitIds": ["u06"], "allowedOrgIds": [AUDIENCE_ORG] });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        with_text(stage.event(Operation::CreateReservation), &body.to_string())
    };
    let cases = [
        (
            json!({ "reservedUnitIds": ["u06", "u99"] }),
            (422, "unknown_unit"),
            "u99",
        ),
        (
            json!({ "startsAt": "2026-07-01T13:00:00Z", "endsAt": "2026-07-01T12:59:59Z" }),
            (422, "ends_too_early"),
            "endsAt",
        ),
        (
            json!({ "endsAt": "2026-07-01T12:00:00Z" }),
            (422, "ends_too_early"),
            "endsAt",
        ),
        (
            json!({ "endsAt": "2026-07-01T13:30:00+02:00" }),
            (422, "ends_too_early"),
            "endsAt",
        ),
        (
            json!({ "reservedUnitIds": ["u02", "u06"] }),
            (409, "units_already_reserved"),
            "u02 by",
        ),
    ];
    for (more, refusal, word) in cases {
        stage.refused(new(more), refusal, &[word]).await;
    }
}
