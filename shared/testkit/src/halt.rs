//! A run that stops in the middle, as a function does that is killed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use futures_util::FutureExt as _;

use crate::doubles::lock;

#[derive(Debug)]
struct Points {
    passed: AtomicUsize,
    /// How many are passed before everything stands still.
    most: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
}

impl Default for Points {
    fn default() -> Self {
        Self {
            passed: AtomicUsize::new(0),
            most: AtomicUsize::new(usize::MAX),
            waiting: Mutex::default(),
        }
    }
}

/// Counts the points that calls pass, and lets none pass after as many as it is told. Its clones
/// count together.
#[derive(Debug, Clone, Default)]
pub struct Halt {
    points: Arc<Points>,
}

impl Halt {
    /// Passes, unless enough have passed: then not before all may again.
    pub(crate) async fn point(&self) {
        let passed = self.points.passed.fetch_add(1, Ordering::SeqCst);
        let most = || self.points.most.load(Ordering::SeqCst);
        std::future::poll_fn(|task| {
            if passed < most() {
                return Poll::Ready(());
            }
            lock(&self.points.waiting).push(task.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Runs `killed` until so many points have passed, then drops it there. Returns what it came to
    /// if it was done by then. Everything passes again afterwards.
    ///
    /// It must wait for nothing but calls that can be halted.
    pub fn kill_after<F: Future>(&self, points: usize, killed: F) -> Option<F::Output> {
        self.allow(points);
        let done = killed.now_or_never();
        self.allow(usize::MAX);
        done
    }

    /// Runs `slow` until so many points have passed, then `meanwhile`, then `slow` to its end.
    /// Returns what it came to, and whether it came so far without a pause.
    ///
    /// It must wait for nothing but calls that can be halted.
    pub async fn pause_after<F: Future>(
        &self,
        points: usize,
        slow: F,
        meanwhile: impl Future<Output = ()>,
    ) -> (F::Output, bool) {
        let mut slow = std::pin::pin!(slow);
        self.allow(points);
        let first = slow.as_mut().now_or_never();
        self.allow(usize::MAX);
        meanwhile.await;
        match first {
            Some(output) => (output, true),
            None => (slow.await, false),
        }
    }

    fn allow(&self, points: usize) {
        self.points.passed.store(0, Ordering::SeqCst);
        self.points.most.store(points, Ordering::SeqCst);
        for waiting in std::mem::take(&mut *lock(&self.points.waiting)) {
            waiting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_killed_has_come_as_far_as_its_points_and_no_further() {
        let halt = Halt::default();
        let run = |points| {
            let mut reached = 0;
            let whole = halt.kill_after(points, async {
                for _ in 0..3 {
                    halt.point().await;
                    reached += 1;
                }
            });
            (reached, whole.is_some())
        };
        assert_eq!(run(0), (0, false));
        assert_eq!(run(2), (2, false));
        assert_eq!(run(3), (3, true));
    }

    #[tokio::test]
    async fn what_is_paused_goes_on_after_what_happens_meanwhile() {
        let halt = Halt::default();
        let steps = Mutex::new(Vec::new());
        let step = |name| steps.lock().unwrap().push(name);
        let slow = async {
            halt.point().await;
            step("first");
            halt.point().await;
            step("last");
        };
        let paused = halt.pause_after(1, slow, async { step("meanwhile") }).await;
        assert_eq!(paused, ((), false));
        assert_eq!(*steps.lock().unwrap(), ["first", "meanwhile", "last"]);
    }
}
