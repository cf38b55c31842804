#![doc = include_str!("../README.md")]

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use lambda_http::http::Method;
use lambda_http::{Error, Request, Response, run, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let settings = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let client = Client::new(&settings);
    let table = std::env::var("RELET_TABLE")?;
    run(service_fn(|request| answer(&client, &table, request))).await
}

async fn answer(client: &Client, table: &str, request: Request) -> Result<Response<String>, Error> {
    let body = match request.method() {
        &Method::GET => "hello".to_owned(),
        _ => update(client, table).await?,
    };
    Ok(Response::new(body))
}

/// One conditional write, as small as one of its kind can be.
async fn update(client: &Client, table: &str) -> Result<String, Error> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let reply = client
        .update_item()
        .table_name(table)
        .key("PK", text("BARE"))
        .key("SK", text("BARE"))
        .update_expression("ADD calls :one")
        .condition_expression("attribute_not_exists(#type)")
        .expression_attribute_names("#type", "type")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .return_values(ReturnValue::AllNew)
        .send()
        .await?;
    let calls = reply
        .attributes()
        .and_then(|item| item.get("calls")?.as_n().ok());
    Ok(calls.cloned().unwrap_or_default())
}
