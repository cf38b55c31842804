#![doc = include_str!("../README.md")]

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::Error> {
    let service = runtime::bootstrap::service().await?;
    runtime::bootstrap::serve_http(http_api::handlers::release(service)).await
}
