//! API keys.

use app::auth::{ApiKey, Permission};
use app::grant::{Grant, Keeper, Role};
use app::ports::{Commit, LoadKey, PutKey, Write};
use aws_sdk_dynamodb::types::AttributeValue;
use domain::Caller;
use testkit::Store;
use testkit::engine::{Engine, TABLE};
use testkit::fixtures::{
    self, OWNER_ORG, api_key, id, manager, now, operator, owner, role_key, secret, stranger,
};

on_both!(
    a_key_is_read_back_as_it_was_put,
    a_key_that_comes_again_is_known_and_changes_nothing,
    no_secret_and_no_id_of_an_org_is_given_twice,
    an_orgs_keys_are_listed_in_order_of_their_ids_and_no_others,
    a_revoked_key_keeps_its_first_instant,
    keys_are_revoked_by_those_who_may,
    a_key_is_revoked_in_its_own_org_alone,
);

/// A key of this id, of the node's owner.
fn named(name: &str, role: Role) -> ApiKey {
    let caller = Caller {
        key: id(name),
        ..owner()
    };
    role_key(&caller, role)
}

async fn put(store: &impl Store, number: u8, key: &ApiKey) {
    let put = store.put_key(&secret(number).digest(), key).await;
    assert_eq!(put, Ok(Commit::Done), "{key:?}");
}

async fn a_key_is_read_back_as_it_was_put(store: impl Store) {
    let plain = api_key(&manager(), &Permission::ALL);
    let full = ApiKey {
        name: "\u{fc}".repeat(128),
        expires_at: Some(now().plus_ms(1)),
        revoked_at: Some(now()),
        ..role_key(&operator(), Role::Viewer)
    };
    let bare = api_key(&stranger(), &[]);
    for (number, key) in [(1, &plain), (2, &full), (3, &bare)] {
        put(&store, number, key).await;
    }
    for (number, key) in [(1, plain), (2, full), (3, bare)] {
        let found = store.load_key(&secret(number).digest()).await;
        assert_eq!(found, Ok(Some(key)));
    }
    assert_eq!(store.load_key(&secret(4).digest()).await, Ok(None));
}

async fn a_key_that_comes_again_is_known_and_changes_nothing(store: impl Store) {
    let key = named("key-1", Role::Admin);
    put(&store, 1, &key).await;
    let revoked = store.revoke_key(&key.org, &key.id, Keeper::Operator, now());
    let revoked = revoked.await;
    put(&store, 1, &key).await;
    let found = store.load_key(&secret(1).digest()).await.unwrap();
    assert_eq!(revoked, Ok(Write::Done(found.unwrap())), "it stays revoked");
}

async fn no_secret_and_no_id_of_an_org_is_given_twice(store: impl Store) {
    let key = named("key-1", Role::Viewer);
    put(&store, 1, &key).await;
    let other = named("key-2", Role::Owner);
    let put_other = store.put_key(&secret(1).digest(), &other).await;
    assert_eq!(put_other, Ok(Commit::Lost), "the secret is taken");
    let again = named("key-1", Role::Owner);
    let put_again = store.put_key(&secret(2).digest(), &again).await;
    assert_eq!(put_again, Ok(Commit::Lost), "the id is taken");
    assert_eq!(store.load_key(&secret(2).digest()).await, Ok(None));
    let listed = store.list_keys(&id(OWNER_ORG), None, 10).await.unwrap();
    assert_eq!(listed.items, std::slice::from_ref(&key));
    let elsewhere = ApiKey {
        org: id("org-elsewhere"),
        ..key
    };
    put(&store, 3, &elsewhere).await;
}

async fn an_orgs_keys_are_listed_in_order_of_their_ids_and_no_others(store: impl Store) {
    let none = store.list_keys(&id(OWNER_ORG), None, 10).await.unwrap();
    assert_eq!((none.items, none.next), (vec![], None));
    let names = ["a", "a-b", "b", "key-9", "key:1"];
    // Their digests are in another order.
    for (number, name) in (1..).zip(names) {
        put(&store, number, &named(name, Role::Member)).await;
    }
    let longer = ApiKey {
        org: id(&format!("{OWNER_ORG}-2")),
        ..named("other", Role::Owner)
    };
    put(&store, 9, &longer).await;
    let (org, of) = (id(OWNER_ORG), id("b"));
    let revoked = store.revoke_key(&org, &of, Keeper::Operator, now()).await;
    assert!(matches!(revoked, Ok(Write::Done(_))));
    for limit in 1..=6 {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = store.list_keys(&id(OWNER_ORG), after.as_ref(), limit).await;
            let page = page.unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let ids: Vec<&str> = found.iter().map(|key| key.id.as_str()).collect();
        assert_eq!(ids, names, "by {limit}");
        let revoked: Vec<bool> = found.iter().map(|key| key.revoked_at.is_some()).collect();
        assert_eq!(revoked, [false, false, true, false, false]);
    }
}

async fn a_revoked_key_keeps_its_first_instant(store: impl Store) {
    let key = named("key-1", Role::Member);
    put(&store, 1, &key).await;
    let revoked = ApiKey {
        revoked_at: Some(now()),
        ..key.clone()
    };
    for ms in [0, 1_000, -1_000] {
        let at = now().plus_ms(ms);
        let done = store.revoke_key(&key.org, &key.id, Keeper::Owner, at).await;
        assert_eq!(done, Ok(Write::Done(revoked.clone())));
    }
    let found = store.load_key(&secret(1).digest()).await;
    assert_eq!(found, Ok(Some(revoked)));
}

/// The store's condition says what [`Keeper::check`] says.
async fn keys_are_revoked_by_those_who_may(store: impl Store) {
    let permissions = Grant::Permissions([Permission::ReservationCapacity].into());
    let grants: Vec<Grant> = Role::ALL.into_iter().map(Grant::Role).collect();
    let mut number = 0;
    for grant in grants.into_iter().chain([permissions]) {
        for operator in [false, true] {
            for keeper in [Keeper::Operator, Keeper::Owner, Keeper::Admin] {
                number += 1;
                let key = ApiKey {
                    grant: grant.clone(),
                    operator,
                    ..named(&format!("key-{number}"), Role::Viewer)
                };
                put(&store, number, &key).await;
                let answer = store.revoke_key(&key.org, &key.id, keeper, now()).await;
                let revoked = ApiKey {
                    revoked_at: Some(now()),
                    ..key.clone()
                };
                let expected = match keeper.check(operator, grant.role()) {
                    Ok(()) => Write::Done(revoked),
                    Err(_) => Write::Refused(key),
                };
                assert_eq!(answer, Ok(expected), "{keeper:?}");
            }
        }
    }
}

async fn a_key_is_revoked_in_its_own_org_alone(store: impl Store) {
    let key = named("key-1", Role::Member);
    put(&store, 1, &key).await;
    for (org, name) in [("org-other", "key-1"), (OWNER_ORG, "key-2")] {
        let (other, of) = (id(org), id(name));
        let answer = store.revoke_key(&other, &of, Keeper::Operator, now()).await;
        assert_eq!(answer, Ok(Write::Absent), "{org} {name}");
    }
    let found = store.load_key(&secret(1).digest()).await;
    assert_eq!(found, Ok(Some(key)));
}

/// A key as it was stored before keys had names and were listed still works; put again it becomes
/// one that is listed and can be revoked.
#[tokio::test]
async fn a_key_of_before_keys_were_listed_works_and_becomes_one_that_is() {
    let engine = Engine::start().await;
    let store = engine.store();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let digest = secret(1).digest();
    let old = engine.client().put_item().table_name(TABLE);
    let old = old
        .item("PK", text(&format!("KEY#{}", digest.as_str())))
        .item("SK", text("KEY"))
        .item("type", text("key"))
        .item("id", text("key-old"))
        .item("org", text(OWNER_ORG))
        .item(
            "permissions",
            AttributeValue::Ss(vec!["vms:read".to_owned()]),
        );
    old.send().await.unwrap();
    let found = store.load_key(&digest).await.unwrap().unwrap();
    let works = (found.id.as_str(), found.grant, found.revoked_at);
    let reads = Grant::Permissions([Permission::VmsRead].into());
    assert_eq!(works, ("key-old", reads, None));

    let key = fixtures::role_key(&owner(), Role::Viewer);
    assert_eq!(store.put_key(&digest, &key).await, Ok(Commit::Done));
    let listed = app::ports::ListKeys::list_keys(&store, &key.org, None, 10).await;
    assert_eq!(listed.unwrap().items, [key]);
}
