//! The first key of a deployed platform: an operator's, made by whoever may write to the table. All
//! other keys can be made with it over the API.

use app::grant::{Grant, Role};
use app::keys::{KeyRequest, MadeKey};
use app::ports::{Clock, Ids, PutKey, Random};
use aws_config::BehaviorVersion;
use domain::OrgId;
use domain::limits::KEY_NAME_CHARS_MAX;
use dynamo::{DynamoStore, Touch};
use runtime::{SystemClock, SystemIds};

use crate::failure::{Failure, run, start};
use crate::output::Output;

const DAY_SECS: u32 = 24 * 3_600;

/// What the key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The table it is for.
    pub table: String,
    /// The org it belongs to.
    pub org: OrgId,
    /// Its name.
    pub name: String,
    /// Days that it is good for; `None` until it is revoked.
    pub days: Option<u32>,
}

/// Makes the key, with the environment's credentials, and prints its secret: the one line of the
/// standard output, and nowhere else. The table holds the secret's SHA-256 alone.
///
/// # Errors
/// [`Failure::Start`] if the table cannot be reached; [`Failure::Run`] if it refuses, or the secret
/// cannot be printed.
pub async fn make(asked: Asked, output: &mut Output) -> Result<(), Failure> {
    let settings = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let store = DynamoStore::connect(&settings, &asked.table);
    let there = store.touch(Touch::Keys).await;
    there.map_err(|error| start(&format!("cannot use {}", asked.table), error))?;
    let MadeKey { key, secret } = put(&store, &SystemClock, &SystemIds, asked).await?;
    let printed = output.needed(secret.reveal());
    printed.map_err(|error| {
        let what = "the key is made, but nobody can know it";
        run(what, format!("{error}; revoke {} of {}", key.id, key.org))
    })?;
    tracing::info!(key_id = %key.id, org_id = %key.org, "operator key made");
    Ok(())
}

async fn put(
    store: &impl PutKey,
    clock: &impl Clock,
    fresh: &(impl Ids + Random),
    asked: Asked,
) -> Result<MadeKey, Failure> {
    if !(1..=KEY_NAME_CHARS_MAX).contains(&asked.name.chars().count()) {
        let text = format!("a name has 1 to {KEY_NAME_CHARS_MAX} characters");
        return Err(Failure::Start(text));
    }
    let request = KeyRequest {
        org: asked.org,
        name: asked.name,
        grant: Grant::Role(Role::Owner),
        operator: true,
        life_seconds: asked.days.map(|days| days.saturating_mul(DAY_SECS)),
    };
    let made = app::keys::make(store, clock, fresh, request).await;
    made.map_err(|error| run("cannot make a key", error.for_log()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::auth::authenticate;
    use testkit::{MemoryStore, SeededIds, TestClock};

    fn asked(name: &str, days: Option<u32>) -> Asked {
        Asked {
            table: "t".to_owned(),
            org: "relet".parse().unwrap(),
            name: name.to_owned(),
            days,
        }
    }

    #[tokio::test]
    async fn the_key_is_an_operator_s_until_its_days_are_over() {
        let (store, clock) = (MemoryStore::default(), TestClock::default());
        let made = put(&store, &clock, &SeededIds::new(1), asked("first", Some(2))).await;
        let MadeKey { key, secret } = made.unwrap();
        assert_eq!((key.org.as_str(), &*key.name), ("relet", "first"));
        let header = format!("Bearer {}", secret.reveal());
        let at = |days: i64| clock.now().plus_ms(days * 86_400_000);
        let known = authenticate(&store, Some(&header), at(1)).await.unwrap();
        assert!(known.caller.operator);
        assert!(authenticate(&store, Some(&header), at(2)).await.is_err());
        assert!(store.world().keys.len() == 1, "and it is listed");
    }

    #[tokio::test]
    async fn a_name_has_some_characters_and_not_too_many() {
        let (store, clock) = (MemoryStore::default(), TestClock::default());
        for name in [String::new(), "n".repeat(129)] {
            let made = put(&store, &clock, &SeededIds::new(1), asked(&name, None)).await;
            assert!(matches!(made, Err(Failure::Start(_))), "{name}");
        }
        assert!(store.world().keys.is_empty());
    }
}
