//! Which platform is called, with which key, and where both come from: a flag, then the
//! environment, then the config file.

use std::path::{Path, PathBuf};

use reqwest::Url;

use crate::config::{self, Kept};
use crate::failure::{Exit, Failure};
use crate::redact::Secret;

/// The URL where nothing names one: the platform on this machine.
pub const URL_DEFAULT: &str = "http://127.0.0.1:8083";

/// The variable with the base URL.
pub const URL_VARIABLE: &str = "ORL_URL";
/// The variable with the key.
pub const KEY_VARIABLE: &str = "ORL_API_KEY";

/// Most bytes of a file with a key.
const KEY_FILE_BYTES_MAX: u64 = 4_096;

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// This flag.
    Flag(&'static str),
    /// This variable.
    Variable(&'static str),
    /// This config file.
    File(PathBuf),
    /// Nothing named it.
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Flag(name) => write!(f, "{name}"),
            Source::Variable(name) => write!(f, "{name}"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Default => write!(f, "the default"),
        }
    }
}

/// A setting with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

/// What the flags say.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--url`.
    pub url: Option<String>,
    /// `--api-key`.
    pub key: Option<String>,
    /// `--api-key-file`.
    pub key_file: Option<PathBuf>,
    /// `--insecure-http`.
    pub insecure_http: bool,
}

/// The platform to call.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The base URL, without a slash at its end.
    pub url: Setting<String>,
    /// The key, if there is one for this URL.
    pub key: Option<Setting<Secret>>,
    /// Where the config file is or would be.
    pub file: Option<PathBuf>,
    /// The URL of the config file's key, where that is another: the key stays at home then.
    pub key_elsewhere: Option<String>,
    /// Whether a key may go over plain HTTP to another machine.
    pub insecure_http: bool,
}

impl Settings {
    /// Resolves them. The config file is read only where flags and environment leave something
    /// open.
    ///
    /// # Errors
    /// If a value is of no use, or a file that is needed cannot be read.
    pub fn resolve(flags: Flags, env: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        Self::resolve_by(flags, env, config::read)
    }

    /// The same where the config file is about to be written anew: one that is of no use counts as
    /// none.
    ///
    /// # Errors
    /// As [`Settings::resolve`], but for the config file.
    pub fn resolve_past_the_file(
        flags: Flags,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        Self::resolve_by(
            flags,
            env,
            |path| Ok(config::read(path).unwrap_or_default()),
        )
    }

    fn resolve_by(
        flags: Flags,
        env: impl Fn(&str) -> Option<String>,
        read: impl Fn(&Path) -> Result<Option<Kept>, Failure>,
    ) -> Result<Self, Failure> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let file = config::path(set);
        let flagged = flags.url.map(|url| (url, Source::Flag("--url")));
        let url = flagged.or_else(|| Some((set(URL_VARIABLE)?, Source::Variable(URL_VARIABLE))));
        let key = match (flags.key, flags.key_file) {
            (Some(text), _) => Some(key(&text, Source::Flag("--api-key"))?),
            (None, Some(path)) => Some(key_file(&path)?),
            (None, None) => set(KEY_VARIABLE)
                .map(|text| key(&text, Source::Variable(KEY_VARIABLE)))
                .transpose()?,
        };
        let mut kept: Option<Kept> = None;
        if let (Some(path), true) = (&file, url.is_none() || key.is_none()) {
            kept = read(path)?;
        }
        let from_file = || Source::File(file.clone().unwrap_or_default());
        let (url, source) = match (url, &kept) {
            (Some(url), _) => url,
            (None, Some(kept)) => (kept.url.clone(), from_file()),
            (None, None) => (URL_DEFAULT.to_owned(), Source::Default),
        };
        let url = base_url(&url, &source)?;
        let fits = kept.as_ref().is_some_and(|kept| kept.url == url);
        let key_elsewhere = match &kept {
            Some(kept) if !fits && key.is_none() => Some(kept.url.clone()),
            _ => None,
        };
        let own = kept.filter(|_| fits).map(|kept| Setting {
            value: kept.key,
            source: from_file(),
        });
        Ok(Self {
            url: Setting { value: url, source },
            key: key.or(own),
            file,
            key_elsewhere,
            insecure_http: flags.insecure_http,
        })
    }

    /// The key, where a call needs one.
    ///
    /// # Errors
    /// If there is none, or it would go over a line that others can listen to.
    pub fn key_to_send(&self) -> Result<&Setting<Secret>, Failure> {
        let host = &self.url.value;
        let Some(key) = &self.key else {
            let what = format!("no API key for {host}");
            let hint = match &self.key_elsewhere {
                Some(other) => format!(
                    "the key in the config file is for {other} and is sent nowhere else; \
                     name another with --api-key-file or {KEY_VARIABLE}"
                ),
                None => format!("orl auth login, or set {KEY_VARIABLE}"),
            };
            return Err(Failure::new(Exit::Auth, what).hint(hint));
        };
        if is_open_line(host) && !self.insecure_http {
            let what = format!("{host} is plain HTTP: anyone on the way could read the API key");
            let hint = "use https://, or --insecure-http if the way there is safe";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(key)
    }

    /// The config file's path, where it is needed.
    ///
    /// # Errors
    /// If no variable says where it is.
    pub fn file(&self) -> Result<&Path, Failure> {
        self.file.as_deref().ok_or_else(no_place)
    }
}

/// Why there is no config file to be had.
pub(crate) fn no_place() -> Failure {
    Failure::local("neither XDG_CONFIG_HOME nor HOME says where to keep it")
}

fn key(text: &str, source: Source) -> Result<Setting<Secret>, Failure> {
    match Secret::parse(text) {
        Some(value) => Ok(Setting { value, source }),
        None => Err(Failure::usage(format!(
            "{source} is not an API key: or_… in one word"
        ))),
    }
}

fn key_file(path: &Path) -> Result<Setting<Secret>, Failure> {
    use std::io::Read as _;
    let failed = |error| Failure::local(format!("cannot read {}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(KEY_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    key(&text, Source::Flag("--api-key-file"))
}

/// A base URL: http or https, a host, nothing that does not belong there.
fn base_url(text: &str, source: &Source) -> Result<String, Failure> {
    let bad = |why: &str| {
        let what = format!("the URL from {source} {why}");
        Err(Failure::usage(what).hint("write it like https://api.example.com"))
    };
    let Ok(url) = Url::parse(text) else {
        return bad("is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return bad("is neither http:// nor https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("has a user or a password in it: a key is not given that way");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return bad("has a query or a fragment");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Whether a URL is of this machine.
#[must_use]
pub fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn is_open_line(url: &str) -> bool {
    url.starts_with("http://") && !is_loopback(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "or_test-key-of-no-use";

    fn resolve(flags: Flags, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        Settings::resolve(flags, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn with_file(test: impl Fn(&str)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orl/config.json");
        let key = Secret::parse("or_key-of-the-file").unwrap();
        let url = "https://file.example".to_owned();
        config::write(&path, &Kept { url, key }).unwrap();
        test(folder.path().to_str().unwrap());
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_file() {
        with_file(|folder| {
            let home = ("XDG_CONFIG_HOME", folder);
            let url = (URL_VARIABLE, "https://env.example/");
            let key = (KEY_VARIABLE, KEY);
            let flags = Flags {
                url: Some("https://flag.example".to_owned()),
                key: Some("or_of-the-flag".to_owned()),
                ..Flags::default()
            };
            let all = resolve(flags, &[home, url, key]).unwrap();
            assert_eq!(all.url.value, "https://flag.example");
            assert_eq!(all.key.unwrap().source, Source::Flag("--api-key"));
            let two = resolve(Flags::default(), &[home, url, key]).unwrap();
            assert_eq!(two.url.value, "https://env.example");
            assert_eq!(two.key.unwrap().source, Source::Variable(KEY_VARIABLE));
            let one = resolve(Flags::default(), &[home]).unwrap();
            assert_eq!(one.url.value, "https://file.example");
            assert!(matches!(one.key.unwrap().source, Source::File(_)));
            let none = resolve(Flags::default(), &[]).unwrap();
            assert_eq!((none.url.value.as_str(), none.key), (URL_DEFAULT, None));
        });
    }

    #[test]
    fn the_key_of_the_file_goes_to_its_own_platform_alone() {
        with_file(|folder| {
            let home = ("XDG_CONFIG_HOME", folder);
            let other = resolve(
                Flags::default(),
                &[home, (URL_VARIABLE, "https://b.example")],
            );
            let failure = other.unwrap().key_to_send().unwrap_err();
            assert_eq!(failure.exit, Exit::Auth);
            assert!(failure.hint.unwrap().contains("https://file.example"));
            let same = (URL_VARIABLE, "https://file.example/");
            assert!(
                resolve(Flags::default(), &[home, same])
                    .unwrap()
                    .key
                    .is_some()
            );
        });
    }

    #[test]
    fn a_key_goes_over_plain_http_only_on_this_machine_or_when_asked() {
        for (url, safe) in [
            ("http://127.0.0.1:8083", true),
            ("http://localhost", true),
            ("http://[::1]:1", true),
            ("https://api.example", true),
            ("http://api.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            let variables = [(URL_VARIABLE, url), (KEY_VARIABLE, KEY)];
            let refused = resolve(Flags::default(), &variables).unwrap();
            assert_eq!(refused.key_to_send().is_ok(), safe, "{url}");
            let asked = Flags {
                insecure_http: true,
                ..Flags::default()
            };
            assert!(resolve(asked, &variables).unwrap().key_to_send().is_ok());
        }
    }

    #[test]
    fn values_of_no_use_are_named_by_where_they_come_from_and_not_repeated() {
        for (variable, value) in [
            (URL_VARIABLE, "api.example"),
            (URL_VARIABLE, "ftp://api.example"),
            (URL_VARIABLE, "https://user:pass@api.example"),
            (URL_VARIABLE, "https://api.example?x"),
            (KEY_VARIABLE, "or_two words"),
        ] {
            let failure = resolve(Flags::default(), &[(variable, value)]).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.what.contains(variable), "{failure:?}");
            assert!(!failure.what.contains(value), "{failure:?}");
        }
    }
}
