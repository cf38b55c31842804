//! What is wrong with a request beside its fields: size, type, encoding, method, query, headers.

use std::collections::BTreeSet;

use http_api::routes::{BodyRule, Operation, ROUTES};
use serde_json::{Value, json};
use testkit::events::HttpEvent;
use testkit::fixtures::operator;
use testkit::http::{secret_of, with_bytes, with_text};

use crate::{BAD, Stage, route, with_header, with_query};

const TOO_LARGE: (u16, &str) = (413, "body_too_large");
const NOT_JSON: (u16, &str) = (415, "unsupported_media_type");

fn without_body(mut event: Value) -> Value {
    event.as_object_mut().unwrap().remove("body");
    event
}

/// The operations that take a body.
fn with_bodies() -> impl Iterator<Item = Operation> {
    let routes = ROUTES.iter().filter(|route| route.body != BodyRule::None);
    routes.map(|route| route.operation)
}

#[tokio::test]
async fn a_body_is_there_exactly_where_it_belongs() {
    let stage = Stage::set().await;
    for route in ROUTES {
        let event = stage.event(route.operation);
        match route.body {
            BodyRule::Required => {
                stage
                    .refused(without_body(event.clone()), BAD, &["body"])
                    .await;
                stage.refused(with_text(event, ""), BAD, &["body"]).await;
            }
            BodyRule::Optional => {
                for event in [without_body(event.clone()), with_text(event, "")] {
                    let answer = stage.platform.send(event).await;
                    assert_eq!(answer.status, 200, "{answer:?}");
                    stage.restore();
                }
            }
            BodyRule::None => {
                stage
                    .refused(with_text(event, "{}"), BAD, &["no body"])
                    .await;
            }
        }
    }
}

#[tokio::test]
async fn a_body_past_the_limit_is_413_and_one_at_the_limit_is_taken() {
    let stage = Stage::set().await;
    for route in ROUTES {
        let event = stage.event(route.operation);
        for large in [" ".repeat(65_537), "x".repeat(1 << 20)] {
            stage
                .refused(with_text(event.clone(), &large), TOO_LARGE, &["65536"])
                .await;
            stage
                .refused(with_bytes(event.clone(), large.as_bytes()), TOO_LARGE, &[])
                .await;
        }
        if route.body != BodyRule::None {
            let good = event["body"].as_str().unwrap();
            let padded = format!("{good}{}", " ".repeat(65_536 - good.len()));
            let answer = stage.platform.send(with_text(event.clone(), &padded)).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            stage.restore();
        }
    }
}

#[tokio::test]
async fn a_body_is_declared_as_json() {
    let stage = Stage::set().await;
    for operation in with_bodies() {
        let event = stage.event(operation);
        for odd in [
            "",
            "text/plain",
            "application/xml",
            "application/jsonx",
            "application/problem+json",
            "json",
            "multipart/form-data",
            "application/x-www-form-urlencoded",
            "text/json",
            ";",
            "é",
        ] {
            let event = with_header(event.clone(), "content-type", odd);
            stage.refused(event, NOT_JSON, &["application/json"]).await;
        }
        let mut undeclared = event.clone();
        undeclared["headers"]
            .as_object_mut()
            .unwrap()
            .remove("content-type");
        stage
            .refused(undeclared, NOT_JSON, &["application/json"])
            .await;
        for right in [
            "application/json; charset=utf-8",
            "APPLICATION/JSON",
            " application/json ;x",
        ] {
            let event = with_header(event.clone(), "content-type", right);
            let answer = stage.platform.send(event).await;
            assert_eq!(answer.status, 200, "{right}: {answer:?}");
            stage.restore();
        }
    }
}

#[tokio::test]
async fn what_is_no_json_object_is_400() {
    let stage = Stage::set().await;
    let deep = |open: &str, count: usize| open.repeat(count);
    let texts = [
        "null".to_owned(),
        "5".to_owned(),
        "\"x\"".to_owned(),
        "true".to_owned(),
        "[]".to_owned(),
        r#"[["u03"]]"#.to_owned(),
        r#"[["u03"],"because"]"#.to_owned(),
        "{".to_owned(),
        "{}x".to_owned(),
        "{}{}".to_owned(),
        " ".to_owned(),
        "nul".to_owned(),
        "{,}".to_owned(),
        "{\"unitIds\":}".to_owned(),
        "{'unitIds':[]}".to_owned(),
        "{\"reason\":1e999}".to_owned(),
        "{\"reason\":\"\\ud800\"}".to_owned(),
        "\u{feff}{}".to_owned(),
        "{\"reason\":NaN}".to_owned(),
        "{\"reason\":\"hush a\nb\"}".to_owned(),
        "// {}".to_owned(),
        deep("[", 30_000),
        deep("{\"a\":", 10_000),
        format!("{{\"unitIds\":{}", deep("[", 30_000)),
        format!("{{\"reason\":{}{}}}", deep("[", 5_000), deep("]", 5_000)),
    ];
    for operation in with_bodies() {
        for text in &texts {
            stage
                .refused(with_text(stage.event(operation), text), BAD, &["body"])
                .await;
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_400_and_base64_is_only_a_wrapping() {
    let stage = Stage::set().await;
    for operation in with_bodies() {
        let event = stage.event(operation);
        let good = event["body"].as_str().unwrap().as_bytes().to_vec();
        let answer = stage.platform.send(with_bytes(event.clone(), &good)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        stage.restore();
        for bad in [
            &b"\xff\xfe"[..],
            b"{\"reason\":\"\xc3\x28\"}",
            b"{\"reason\":\"\xed\xa0\x80\"}",
            b"{}\x80",
            b"\xff\xfe{\x00}\x00",
        ] {
            stage
                .refused(with_bytes(event.clone(), bad), BAD, &["UTF-8"])
                .await;
        }
    }
}

#[tokio::test]
async fn a_name_that_is_there_twice_is_refused_and_named() {
    let stage = Stage::set().await;
    for (operation, text, name) in [
        (
            Operation::ReleaseUnits,
            r#"{"unitIds":["u03"],"unitIds":["u03"]}"#,
            "unitIds",
        ),
        (
            Operation::ReclaimUnits,
            r#"{"unitIds":["u00"],"dryRun":true,"dryRun":false}"#,
            "dryRun",
        ),
        (
            Operation::EndReservation,
            r#"{"reason":"hush a","reason":"hush b"}"#,
            "reason",
        ),
        (
            Operation::PutNode,
            r#"{"ownerOrgId":"o","gpuModelId":"m","units":[{"id":"u","gpus":1,"gpus":2}]}"#,
            "gpus",
        ),
    ] {
        stage
            .refused(with_text(stage.event(operation), text), BAD, &[name])
            .await;
    }
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_and_named_on_every_route() {
    let stage = Stage::set().await;
    for route in ROUTES {
        let event = stage.event(route.operation);
        for name in [
            "x", "dryrun", "DryRun", "dry_run", "Limit", "%64ryrun", "unitIds",
        ] {
            let plain = name.replace("%64", "d");
            let event = with_query(event.clone(), &format!("{name}=true"));
            stage
                .refused(event, BAD, &["query parameter", &plain])
                .await;
        }
        for known in route.query {
            let event = with_query(event.clone(), &format!("{known}=1&{known}=1"));
            stage.refused(event, BAD, &[known]).await;
        }
        if !route.query.contains(&"dryRun") {
            let event = with_query(event.clone(), "dryRun=true");
            stage.refused(event, BAD, &["dryRun"]).await;
        }
        let long = format!("{}=1", "y".repeat(4_000));
        stage.refused(with_query(event, &long), BAD, &["yyy"]).await;
    }
}

#[tokio::test]
async fn a_dry_run_is_asked_for_in_exactly_one_way() {
    let stage = Stage::set().await;
    let event = stage.event(Operation::ReclaimUnits);
    for value in [
        "", "1", "0", "yes", "TRUE", "True", "true ", "%20true", "truetrue", "null", "%ff",
    ] {
        let event = with_query(event.clone(), &format!("dryRun={value}"));
        stage
            .refused(event, BAD, &["dryRun", "true or false"])
            .await;
    }
    stage
        .refused(with_query(event.clone(), "dryRun"), BAD, &["dryRun"])
        .await;
    for (query, body) in [("true", false), ("false", true)] {
        let text = json!({ "unitIds": ["u00"], "dryRun": body }).to_string();
        let event = with_query(with_text(event.clone(), &text), &format!("dryRun={query}"));
        stage
            .refused(event, BAD, &["dryRun", "query", "body"])
            .await;
    }
}

#[tokio::test]
async fn limits_filters_and_cursors_are_checked_on_every_list() {
    let stage = Stage::set().await;
    let lists = ROUTES.iter().filter(|route| route.query.contains(&"limit"));
    let mut count = 0;
    for route in lists {
        count += 1;
        let event = stage.event(route.operation);
        for limit in [
            "",
            "0",
            "101",
            "-1",
            "+5",
            "1.5",
            "abc",
            "1e1",
            "0x10",
            "99999999999999999999",
            "%31%20",
        ] {
            let event = with_query(event.clone(), &format!("limit={limit}"));
            stage.refused(event, BAD, &["limit", "1 to 100"]).await;
        }
        for cursor in [
            "",
            "x",
            "AAAA",
            "%00",
            "é",
            "====",
            &"A".repeat(40),
            &"A".repeat(5_000),
        ] {
            let event = with_query(event.clone(), &format!("cursor={cursor}"));
            stage.refused(event, BAD, &["cursor"]).await;
        }
    }
    assert_eq!(count, 7);
    for list in [Operation::ListReservations, Operation::ListOrgReservations] {
        let event = stage.event(list);
        for status in ["", "Active", "ended", "needs_review", "active,expired"] {
            let event = with_query(event.clone(), &format!("status={status}"));
            stage.refused(event, BAD, &["status", "active"]).await;
        }
    }
    let event = stage.event(Operation::ListOrgReservations);
    for role in ["", "Owner", "tenant", "owner,manager"] {
        let event = with_query(event.clone(), &format!("role={role}"));
        stage.refused(event, BAD, &["role", "audience"]).await;
    }
    let event = stage.event(Operation::ListAvailability);
    for tier in ["", "Spot", "reserved", "spot,verified"] {
        let event = with_query(event.clone(), &format!("tier={tier}"));
        stage.refused(event, BAD, &["tier", "spot"]).await;
    }
    for model in ["", "a%20b", "a%23b", &"m".repeat(129)] {
        let event = with_query(event.clone(), &format!("gpuModelId={model}"));
        stage.refused(event, BAD, &["gpuModelId", "1 to 128"]).await;
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_405_with_those_it_takes() {
    let stage = Stage::set().await;
    // One path may have the form of several routes: `create` could be the id of a key.
    let fits = |pattern: &str, path: &str| {
        let (pattern, path) = (pattern.split('/'), path.split('/'));
        let equal = |(wanted, given): (&str, &str)| wanted == given || wanted.starts_with('{');
        pattern.clone().count() == path.clone().count() && pattern.zip(path).all(equal)
    };
    let methods = [
        "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW", "get",
    ];
    for route in ROUTES {
        let path = route.path.replace('{', "x").replace('}', "");
        let others = ROUTES.iter().filter(|other| fits(other.path, &path));
        let allowed: BTreeSet<&str> = others.map(|other| other.method).collect();
        for method in methods.iter().filter(|method| !allowed.contains(**method)) {
            let with_key = HttpEvent::new(method, &path).by(&secret_of(&operator()));
            for request in [with_key, HttpEvent::new(method, &path)] {
                let refusal = (405, "method_not_allowed");
                let answer = stage.refused(request.build(), refusal, &[]).await;
                let named: BTreeSet<&str> = answer.header("allow").split(", ").collect();
                assert_eq!(named, allowed, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn if_match_is_one_version_or_a_star_and_only_where_it_is_understood() {
    let stage = Stage::set().await;
    let forms = [
        "",
        "7",
        "\"x\"",
        "W/\"7\"",
        "w/\"7\"",
        "\"7\",\"8\"",
        "\"7\", \"8\"",
        "\"7",
        "7\"",
        "\"\"",
        "\"0\"",
        "\"07\"",
        "\"-1\"",
        "\"+7\"",
        "\"7.0\"",
        "\" 7\"",
        "\"99999999999999999999\"",
        "'7'",
        "\"７\"",
        "*, \"7\"",
        "**",
        "\"*\"",
        "null",
    ];
    for route in ROUTES.iter().filter(|route| route.method != "GET") {
        let event = stage.event(route.operation);
        if route.if_match {
            for form in forms {
                let event = with_header(event.clone(), "if-match", form);
                stage.refused(event, BAD, &["If-Match", "\"7\""]).await;
            }
            let star = with_header(event, "If-Match", " * ");
            assert_eq!(stage.platform.send(star).await.status, 200);
            stage.restore();
        } else {
            for form in ["\"7\"", "*", "x"] {
                let event = with_header(event.clone(), "if-match", form);
                stage
                    .refused(event, BAD, &["If-Match", "leave it out"])
                    .await;
            }
        }
    }
    for operation in [
        Operation::ReleaseUnits,
        Operation::ReclaimUnits,
        Operation::EndReservation,
    ] {
        assert!(route(operation).if_match && route(operation).repeatable);
        let event = with_header(stage.event(operation), "if-match", "\"1\"");
        let answer = stage
            .refused(event, (412, "version_mismatch"), &["version 6"])
            .await;
        assert_eq!(answer.header("etag"), "\"6\"");
        assert_eq!(answer.json()["current"]["id"], *stage.fleet.reservation);
    }
}

#[tokio::test]
async fn an_idempotency_key_is_refused_rather_than_ignored() {
    let stage = Stage::set().await;
    let long = "k".repeat(256);
    for route in ROUTES.iter().filter(|route| route.method != "GET") {
        for value in ["once", "", "é", "a b", "a,b", "a#b", &long] {
            let event = with_header(stage.event(route.operation), "Idempotency-Key", value);
            let words = match (route.repeatable, value) {
                (true, "once") => continue,
                (true, _) => ["Idempotency-Key", "1 to 255 characters"],
                (false, _) => ["Idempotency-Key", "leave it out"],
            };
            stage.refused(event, BAD, &words).await;
        }
    }
}

#[tokio::test]
async fn odd_hosts_paths_and_headers_fail_no_call() {
    let stage = Stage::set().await;
    let event = stage.event(Operation::GetVm);
    for (name, value) in [
        ("host", "a b"),
        ("Host", "[::"),
        ("host", ""),
        ("host", "é"),
        ("x-forwarded-proto", "a b"),
        ("X-Forwarded-Proto", ""),
        ("x-any", "é\u{1}"),
        ("x-request-id", "mine"),
    ] {
        let answer = stage
            .platform
            .send(with_header(event.clone(), name, value))
            .await;
        assert_eq!(answer.status, 200, "{name}: {value}: {answer:?}");
        assert_ne!(answer.header("x-request-id"), "mine");
    }
    for path in [
        "",
        "x",
        ":x",
        "/v1/vms/a b",
        "/v1/vms/é",
        "/v1/vms/a?b",
        "/v1/vms/a#b",
        "/v1/vms/%",
    ] {
        let mut event = event.clone();
        event["rawPath"] = json!(path);
        stage.refused(event, (404, "not_found"), &[]).await;
    }
}

/// Written as they are they fit; encoded for their conversion they would be three times as long.
#[tokio::test]
async fn a_path_or_query_that_grows_too_long_is_refused_like_any_other() {
    let stage = Stage::set().await;
    let long = "{".repeat(22_000);
    for route in ROUTES {
        let event = stage.event(route.operation);
        stage
            .refused(with_query(event.clone(), &long), BAD, &["query"])
            .await;
        let mut lost = event;
        lost["rawPath"] = Value::from(format!("/v1/nodes/{long}"));
        stage.refused(lost, (404, "not_found"), &[]).await;
    }
}
