//! Lists: whole, without repeats, in order; cursors that hold only where they were given.

use std::collections::BTreeSet;

use domain::Caller;
use http_api::routes::Operation;
use serde_json::json;
use testkit::MemoryStore;
use testkit::fixtures::{AUDIENCE_ORG, NODE, STRANGER_ORG, manager, owner, stranger};
use testkit::http::Platform;

use crate::{ask, get, good, post, stage};

/// All items of a list, page by page, by the text of a member.
pub(crate) async fn pages(
    platform: &Platform<MemoryStore>,
    by: &Caller,
    path: &str,
    limit: usize,
    member: &str,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = ask(platform, by, get(&format!("{path}?limit={limit}{cursor}"))).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let page = answer.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit, "{path}: {page}");
        found.extend(
            items
                .iter()
                .map(|item| item[member].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => {
                assert_eq!(items.len(), limit, "{path}: only the last page is short");
                cursor = format!("&cursor={next}");
            }
            None => return found,
        }
    }
}

#[tokio::test]
async fn lists_are_whole_and_without_repeats_at_every_page_size() {
    let (platform, fleet) = stage().await;
    let of_node = format!("/v1/nodes/{NODE}/reservations");
    for unit in ["u04", "u05", "u06", "u07"] {
        let body = json!({ "reservedUnitIds": [unit], "allowedOrgIds": [AUDIENCE_ORG] });
        assert_eq!(
            ask(&platform, &owner(), post(&of_node, &body)).await.status,
            200
        );
    }
    let trail = format!("{of_node}/{}/audit", fleet.reservation);
    let of_org = format!("/v1/orgs/{STRANGER_ORG}/vms");
    let cases = [
        (owner(), &of_node, 5),
        // The manager sees its own one among those that are hidden.
        (manager(), &of_node, 1),
        (stranger(), &of_node, 0),
        (manager(), &trail, 7),
        (stranger(), &of_org, 4),
    ];
    for (by, path, count) in cases {
        for limit in 1..=8 {
            let found = pages(&platform, &by, path, limit, "id").await;
            let each: BTreeSet<&String> = found.iter().collect();
            assert_eq!(
                (found.len(), each.len()),
                (count, count),
                "{path} by {limit}"
            );
            if *path != trail {
                assert!(found.is_sorted(), "{path}: in order of their ids");
            }
        }
    }
}

#[tokio::test]
async fn a_filter_holds_over_all_pages() {
    let (platform, fleet) = stage().await;
    let of_node = format!("/v1/nodes/{NODE}/reservations");
    good(&platform, &fleet, Operation::EndReservation).await;
    for unit in ["u04", "u06"] {
        let body = json!({ "reservedUnitIds": [unit], "allowedOrgIds": [AUDIENCE_ORG] });
        assert_eq!(
            ask(&platform, &owner(), post(&of_node, &body)).await.status,
            200
        );
    }
    for (status, count) in [
        ("active", 2),
        ("cancelled", 1),
        ("pending", 0),
        ("needs-review", 0),
    ] {
        let mut found = 0;
        let mut cursor = String::new();
        loop {
            let query = format!("{of_node}?status={status}&limit=1{cursor}");
            let page = ask(&platform, &owner(), get(&query)).await.json();
            let items = page["items"].as_array().unwrap();
            assert!(items.iter().all(|item| item["status"] == status), "{page}");
            found += items.len();
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, count, "{status}");
    }
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_alone_and_only_unchanged() {
    let (platform, fleet) = stage().await;
    let trail = format!("/v1/nodes/{NODE}/reservations/{}/audit", fleet.reservation);
    let page = ask(&platform, &owner(), get(&format!("{trail}?limit=2")))
        .await
        .json();
    let cursor = page["nextCursor"].as_str().unwrap();
    let fine = ask(
        &platform,
        &owner(),
        get(&format!("{trail}?limit=5&cursor={cursor}")),
    )
    .await;
    assert_eq!(fine.status, 200, "another limit goes on in the same list");
    let of_node = format!("/v1/nodes/{NODE}/reservations");
    for path in [&of_node, &format!("{of_node}?status=active")] {
        let mark = if path.contains('?') { '&' } else { '?' };
        let request = get(&format!("{path}{mark}cursor={cursor}"));
        let answer = ask(&platform, &owner(), request).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "bad_request"),
            "{path}"
        );
    }
    for place in 0..cursor.len() {
        let mut forged = cursor.to_owned();
        let other = if &cursor[place..=place] == "A" {
            "B"
        } else {
            "A"
        };
        forged.replace_range(place..=place, other);
        let answer = ask(
            &platform,
            &owner(),
            get(&format!("{trail}?cursor={forged}")),
        )
        .await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "bad_request"),
            "{forged}"
        );
    }
}
