//! API keys.

use std::sync::Arc;

use app::Error;
use app::grant::{Grant, Keeper, Role};
use app::keys::{self, KeyRequest};
use app::ports::{ListKeys, RevokeKey};
use testkit::fixtures::{STRANGER_ORG, id, now, operator, stranger};
use testkit::stage::Stage;

use super::{Case, told};

pub(super) const MAKE_KEY: Case = Case {
    name: "make key",
    operation: "TransactWriteItems",
    before: |_| Box::pin(async {}),
    call: |stage| {
        Box::pin(async move {
            let request = KeyRequest {
                org: id(STRANGER_ORG),
                name: "build server".to_owned(),
                grant: Grant::Role(Role::Member),
                operator: false,
                life_seconds: Some(60),
            };
            let (store, context) = (stage.store(), stage.context(operator()));
            let (clock, ids) = (stage.clock(), stage.ids());
            let made = keys::create(&store, clock, ids, &context, request).await?;
            Ok(format!("{:?} {}", made.key, made.secret.reveal()))
        })
    },
    meanwhile: &[
        told("it is revoked", |stage| {
            Box::pin(async move {
                let store = stage.store();
                let listed = store.list_keys(&id(STRANGER_ORG), None, 100).await;
                let listed = listed.map(|page| page.items).unwrap_or_default();
                let mut new = listed.iter().filter(|key| key.name == "build server");
                let Some(new) = new.next() else {
                    panic!("it is listed: {listed:?}")
                };
                let at = now().plus_ms(1);
                let gone = store.revoke_key(&new.org, &new.id, Keeper::Operator, at);
                assert!(gone.await.is_ok());
            })
        }),
        told("the org's other key is revoked", |stage| {
            Box::pin(async move {
                assert!(revoke(&stage, 1).await.is_ok());
            })
        }),
    ],
};

/// Has an operator revoke the stranger's key, so many milliseconds after the instant of the
/// fixtures.
async fn revoke(stage: &Arc<Stage>, ms: i64) -> Result<String, Error> {
    let (store, context) = (stage.store(), stage.context(operator()));
    let clock = testkit::TestClock::at(now().plus_ms(ms));
    let (org, key) = (id(STRANGER_ORG), stranger().key);
    let revoked = keys::revoke(&store, &clock, &context, &org, &key).await?;
    Ok(format!("{revoked:?}"))
}

pub(super) const REVOKE_KEY: Case = Case {
    name: "revoke key",
    operation: "UpdateItem",
    before: |_| Box::pin(async {}),
    call: |stage| Box::pin(async move { revoke(&stage, 1).await }),
    meanwhile: &[told("another revokes it, later", |stage| {
        Box::pin(async move {
            assert!(revoke(&stage, 2).await.is_ok());
        })
    })],
};
