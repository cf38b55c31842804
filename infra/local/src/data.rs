//! What the platform keeps beside its table: a folder of small files, or the same in memory.
//!
//! A file is replaced by writing a new one and renaming it, so that a process killed at any moment
//! leaves either the old content or the new one, never a part.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::failure::{Failure, start};

/// The file with the table.
const TABLE: &str = "relet.db";
/// The file whose lock says that a platform runs on the folder.
const LOCK: &str = "lock";

/// The place where the platform keeps what must outlive it.
#[derive(Debug)]
pub struct Data {
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A folder, and the lock on it, which the system drops with the process.
    Folder {
        root: PathBuf,
        _lock: File,
    },
    Memory(Mutex<BTreeMap<String, Vec<u8>>>),
}

impl Data {
    /// Keeps everything in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self {
            place: Place::Memory(Mutex::default()),
        }
    }

    /// Keeps everything in a folder, made if it is not there, that no other process may use.
    ///
    /// # Errors
    /// [`Failure::Start`] if it cannot be written, or another platform runs on it.
    pub fn folder(root: &Path) -> Result<Self, Failure> {
        let unwritable = |error| start(&format!("cannot write to {}", root.display()), error);
        make_folder(root).map_err(unwritable)?;
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(root.join(LOCK))
            .map_err(unwritable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::Start(format!(
                "another relet runs on {}: stop it, or name another folder with --data",
                root.display()
            )),
            TryLockError::Error(error) => unwritable(error),
        })?;
        Ok(Self {
            place: Place::Folder {
                root: root.to_owned(),
                _lock: lock,
            },
        })
    }

    /// The file that the table is to be in; `None` for a table in memory.
    #[must_use]
    pub fn table_file(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Folder { root, .. } => Some(root.join(TABLE)),
            Place::Memory(_) => None,
        }
    }

    /// Whether what is kept outlives the process.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self.place, Place::Folder { .. })
    }

    /// The content of a file; `None` if there is none of that name.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match &self.place {
            Place::Memory(files) => Ok(locked(files).get(name).cloned()),
            Place::Folder { root, .. } => match std::fs::read(root.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// Replaces a file, whole.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match &self.place {
            Place::Memory(files) => {
                locked(files).insert(name.to_owned(), bytes.to_vec());
                Ok(())
            }
            Place::Folder { root, .. } => replace(&root.join(name), bytes),
        }
    }

    /// Takes a file away, if it is there.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match &self.place {
            Place::Memory(files) => {
                locked(files).remove(name);
                Ok(())
            }
            Place::Folder { root, .. } => remove(&root.join(name)),
        }
    }

    /// The names of the files in a folder of this name, folder included.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{folder}/");
        match &self.place {
            Place::Memory(files) => {
                let files = locked(files);
                let names = files.keys().filter(|name| name.starts_with(&prefix));
                Ok(names.cloned().collect())
            }
            Place::Folder { root, .. } => {
                let entries = match std::fs::read_dir(root.join(folder)) {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                    Err(error) => return Err(error),
                };
                let names: io::Result<Vec<String>> = entries
                    .map(|entry| Ok(prefix.clone() + &entry?.file_name().to_string_lossy()))
                    .collect();
                let mut names = names?;
                // What a killed process left half written.
                names.retain(|name| !name.ends_with(HALF_WRITTEN));
                names.sort();
                Ok(names)
            }
        }
    }
}

/// How the names of files end that are not complete yet.
const HALF_WRITTEN: &str = ".new";

fn locked(
    files: &Mutex<BTreeMap<String, Vec<u8>>>,
) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens the file that is to become the one at `path`, empty, readable by its owner alone.
fn open_new(path: &Path) -> io::Result<(File, PathBuf)> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        make_folder(folder)?;
    }
    let mut half = path.as_os_str().to_owned();
    half.push(HALF_WRITTEN);
    let half = PathBuf::from(half);
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&half)?;
    Ok((file, half))
}

/// Replaces the file at `path`, whole, readable by its owner alone.
///
/// # Errors
/// As the file system has it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, half) = open_new(path)?;
    file.write_all(bytes)?;
    drop(file);
    std::fs::rename(&half, path)
}

/// Makes sure that [`replace`] will work, and takes away what is there from earlier.
///
/// # Errors
/// As the file system has it.
pub fn clear(path: &Path) -> io::Result<()> {
    open_new(path)?;
    remove(path)
}

/// Takes a file away, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_the_memory_keep_the_same() {
        let folder = tempfile::tempdir().unwrap();
        for data in [
            Data::memory(),
            Data::folder(&folder.path().join("d")).unwrap(),
        ] {
            assert_eq!(data.read("a/b").unwrap(), None);
            assert_eq!(data.names("a").unwrap(), [""; 0]);
            data.write("a/c", b"1").unwrap();
            data.write("a/b", b"2").unwrap();
            data.write("a/b", b"3").unwrap();
            assert_eq!(data.read("a/b").unwrap(), Some(b"3".to_vec()));
            assert_eq!(data.names("a").unwrap(), ["a/b", "a/c"]);
            data.remove("a/b").unwrap();
            data.remove("a/b").unwrap();
            assert_eq!(data.names("a").unwrap(), ["a/c"]);
        }
    }

    #[test]
    fn a_folder_is_for_one_platform_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = Data::folder(folder.path()).unwrap();
        let refused = Data::folder(folder.path()).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(
            refused.to_string().contains("another relet runs"),
            "{refused}"
        );
        drop(first);
        assert!(Data::folder(folder.path()).is_ok());
    }
}
