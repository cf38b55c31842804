//! The file that keeps a URL and its key: readable by its owner alone, replaced as a whole.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};
use crate::redact::Secret;

/// Most bytes of the file: it holds a URL and a key.
const BYTES_MAX: u64 = 64 * 1024;

/// Permissions of anyone but the owner.
const OTHERS: u32 = 0o077;

/// What the file keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The base URL.
    pub url: String,
    /// The key for it, and for no other URL.
    pub key: Secret,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    url: String,
    api_key: String,
}

/// Where the file is, by these variables: `XDG_CONFIG_HOME`, else `HOME`.
#[must_use]
pub fn path(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        env(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(folder?.join("orl").join("config.json"))
}

/// Reads the file; `None` if there is none.
///
/// # Errors
/// If others may read it, or it is not what [`write()`] wrote.
pub fn read(path: &Path) -> Result<Option<Kept>, Failure> {
    // A pipe would be waited on for ever.
    let opened = match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => Err(io::Error::other("it is no file")),
        Ok(_) => File::open(path),
        Err(error) => Err(error),
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, "read", &error)),
    };
    // Asked of the open file: what is read is what was looked at.
    let about = file
        .metadata()
        .map_err(|error| unusable(path, "read", &error))?;
    let mode = about.permissions().mode();
    if mode & OTHERS != 0 {
        let what = format!(
            "{} has a key in it and others may read it (mode {:03o})",
            path.display(),
            mode & 0o777
        );
        let hint = format!("chmod 600 {}", path.display());
        return Err(Failure::new(Exit::Auth, what).hint(hint));
    }
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| unusable(path, "read", &error))?;
    let content: Option<Content> = serde_json::from_str(&text).ok();
    let kept = content.and_then(|content| {
        let key = Secret::parse(&content.api_key)?;
        Some(Kept {
            url: content.url,
            key,
        })
    });
    match kept {
        Some(kept) => Ok(Some(kept)),
        // A parser's message could repeat a part of the key.
        None => {
            let what = format!("{} is not a config file of orl", path.display());
            Err(Failure::local(what).hint("orl auth login writes it anew"))
        }
    }
}

/// Writes the file: whoever reads it finds the old one or the new one, whole.
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn write(path: &Path, kept: &Kept) -> Result<(), Failure> {
    let content = Content {
        url: kept.url.clone(),
        api_key: kept.key.reveal().to_owned(),
    };
    let text = serde_json::to_string_pretty(&content).unwrap_or_default();
    replace(path, &format!("{text}\n")).map_err(|error| unusable(path, "write", &error))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // Made with mode 0600 from the start: at no moment may others read it.
    let mut file = tempfile::Builder::new()
        .prefix(".config-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

/// Takes the file away; whether there was one.
///
/// # Errors
/// If it cannot be taken away.
pub fn remove(path: &Path) -> Result<bool, Failure> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unusable(path, "remove", &error)),
    }
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> Failure {
    Failure::local(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn kept() -> Kept {
        let key = Secret::parse("or_test-key-of-no-use").unwrap();
        Kept {
            url: "http://127.0.0.1:1".to_owned(),
            key,
        }
    }

    #[test]
    fn what_is_written_is_read_and_only_its_owner_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/config.json");
        assert_eq!(read(&path), Ok(None));
        write(&path, &kept()).unwrap();
        write(&path, &kept()).unwrap();
        assert_eq!(read(&path), Ok(Some(kept())));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "nothing is left over from writing");
        assert_eq!((remove(&path), remove(&path)), (Ok(true), Ok(false)));
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        write(&path, &kept()).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o777] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let failure = read(&path).unwrap_err();
            assert_eq!(failure.exit, Exit::Auth);
            let hint = failure.hint.unwrap();
            assert_eq!(hint, format!("chmod 600 {}", path.display()));
        }
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_and_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for text in ["", "{}", "or_secret", r#"{"url":"x","apiKey":"or_a b"}"#] {
            write(&path, &kept()).unwrap();
            std::fs::write(&path, text).unwrap();
            let failure = read(&path).unwrap_err();
            assert!(!failure.what.contains("or_"), "{failure:?}");
        }
    }

    #[test]
    fn the_folder_is_the_one_that_the_user_named_for_configuration() {
        let env = |xdg: &'static str, home: &'static str| {
            path(move |name| {
                let value = if name == "HOME" { home } else { xdg };
                Some(value.to_owned()).filter(|value| !value.is_empty())
            })
        };
        let expect = |text: &str| Some(PathBuf::from(text));
        assert_eq!(env("/x", "/h"), expect("/x/orl/config.json"));
        assert_eq!(env("", "/h"), expect("/h/.config/orl/config.json"));
        assert_eq!(env("relative", "/h"), expect("/h/.config/orl/config.json"));
        assert_eq!(env("", ""), None);
    }
}
