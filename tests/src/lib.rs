#![doc = include_str!("../README.md")]

mod tree;

pub use tree::{root, tracked};

/// Makes a test over each store out of functions that take one, and one over an engine elsewhere,
/// which runs where `RELET_CONTRACT_ENDPOINT` names its address.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(testkit::MemoryStore::default()).await;
            })+
        }

        mod engine {
            $(#[tokio::test]
            async fn $name() {
                let engine = testkit::engine::Engine::start().await;
                super::$name(engine.store()).await;
            })+
        }

        mod elsewhere {
            $(#[tokio::test]
            #[ignore = "needs RELET_CONTRACT_ENDPOINT, the address of an engine"]
            async fn $name() {
                super::$name(testkit::engine::elsewhere().await).await;
            })+
        }
    };
}
