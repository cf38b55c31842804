//! Configuration: environment variables, read once at the start and never later.

use app::sweep::Rules;
use http_api::CursorKey;

/// A variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name}: {problem}")]
pub struct ConfigError {
    /// Its name.
    pub name: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Milliseconds that an API key is kept when the environment does not say.
const KEY_TTL_MS_DEFAULT: i64 = 5_000;

fn required(name: &'static str) -> Result<String, ConfigError> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or(ConfigError {
        name,
        problem: "is not set",
    })
}

/// The table's name: `RELET_TABLE`.
///
/// # Errors
/// [`ConfigError`] if it is not set.
pub fn table() -> Result<String, ConfigError> {
    required("RELET_TABLE")
}

/// The namespace of CloudWatch that metrics go to: `RELET_METRICS_NAMESPACE`, `Relet` if absent.
/// Deployments of one account need one each: a metric knows no other difference between them.
///
/// # Errors
/// [`ConfigError`] if CloudWatch has no such namespaces.
pub fn metrics_namespace() -> Result<String, ConfigError> {
    const NAME: &str = "RELET_METRICS_NAMESPACE";
    let Ok(namespace) = std::env::var(NAME) else {
        return Ok(metrics::NAMESPACE.to_owned());
    };
    if metrics::is_namespace(&namespace) {
        return Ok(namespace);
    }
    Err(ConfigError {
        name: NAME,
        problem: "is not 1 to 255 of A-Z a-z 0-9 . _ - / # :",
    })
}

/// The secret that cursors are sealed with: `RELET_CURSOR_SECRET`, at least 16 characters.
///
/// # Errors
/// [`ConfigError`] if it is not set or too short.
pub fn cursor_key() -> Result<CursorKey, ConfigError> {
    const NAME: &str = "RELET_CURSOR_SECRET";
    let secret = required(NAME)?;
    let short = ConfigError {
        name: NAME,
        problem: "has fewer than 16 characters",
    };
    if secret.len() < 16 {
        return Err(short);
    }
    CursorKey::new(secret.as_bytes()).map_err(|_| short)
}

/// How long API keys are kept, in milliseconds: `RELET_KEY_TTL_MS`, at most 5,000, 5,000 if absent.
///
/// # Errors
/// [`ConfigError`] if it is no number.
pub fn key_ttl_ms() -> Result<i64, ConfigError> {
    const NAME: &str = "RELET_KEY_TTL_MS";
    match std::env::var(NAME) {
        Err(_) => Ok(KEY_TTL_MS_DEFAULT),
        Ok(text) => text.parse().map_err(|_| ConfigError {
            name: NAME,
            problem: "is not a number of milliseconds",
        }),
    }
}

/// The bounds of the sweep; how long a condemned VM may stay unconfirmed before it counts as stuck,
/// in milliseconds, comes from `RELET_STUCK_AFTER_MS`, 600,000 if absent.
///
/// # Errors
/// [`ConfigError`] if it is no number above 0.
pub fn sweep_rules() -> Result<Rules, ConfigError> {
    const NAME: &str = "RELET_STUCK_AFTER_MS";
    let mut rules = Rules::default();
    if let Ok(text) = std::env::var(NAME) {
        let given = text.parse().ok().filter(|ms| *ms > 0);
        rules.stuck_after_ms = given.ok_or(ConfigError {
            name: NAME,
            problem: "is not a number of milliseconds above 0",
        })?;
    }
    Ok(rules)
}

/// The URL of the queue of termination orders: `RELET_QUEUE_URL`.
///
/// # Errors
/// [`ConfigError`] if it is not set.
pub fn queue_url() -> Result<String, ConfigError> {
    required("RELET_QUEUE_URL")
}

/// The VM controller's base URL and the secret that orders are signed with:
/// `RELET_CONTROLLER_URL`, `RELET_CONTROLLER_SECRET`.
///
/// # Errors
/// [`ConfigError`] if either is not set.
pub fn controller() -> Result<(String, String), ConfigError> {
    Ok((
        required("RELET_CONTROLLER_URL")?,
        required("RELET_CONTROLLER_SECRET")?,
    ))
}
