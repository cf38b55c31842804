//! The table, for engines that a process starts by itself: made as the template has it, which makes
//! it in the cloud.

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, StreamSpecification, StreamViewType,
    TimeToLiveSpecification,
};

use crate::error::store_error;
use crate::item::kept::TTL;
use crate::keys::{DUE_AT, DUE_INDEX, DUE_PK, MARKET_INDEX, MARKET_PK, ORG_INDEX, ORG_PK, PK, SK};

/// What makes a table, as the template has it. All key attributes are texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The names of all attributes that keys are made of.
    pub attributes: Vec<String>,
    /// Its partition key and its sort key.
    pub key: (String, String),
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The attribute by which items expire.
    pub ttl: String,
}

/// An index of keys alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its partition key and its sort key.
    pub key: (String, String),
}

/// The table that the store of this crate needs.
#[must_use]
pub fn needed() -> Definition {
    let pair = |partition: &str, sort: &str| (partition.to_owned(), sort.to_owned());
    let index = |name: &str, partition: &str, sort: &str| Index {
        name: name.to_owned(),
        key: pair(partition, sort),
    };
    Definition {
        attributes: [PK, SK, DUE_PK, DUE_AT, MARKET_PK, ORG_PK]
            .map(str::to_owned)
            .into(),
        key: pair(PK, SK),
        indexes: vec![
            index(DUE_INDEX, DUE_PK, DUE_AT),
            index(MARKET_INDEX, MARKET_PK, PK),
            index(ORG_INDEX, ORG_PK, PK),
        ],
        ttl: TTL.to_owned(),
    }
}

/// Makes the table if it is not there: on-demand, with a stream of both images.
///
/// # Errors
/// [`StoreError`] if the store cannot be reached or refuses.
pub async fn create(client: &Client, name: &str, table: &Definition) -> StoreResult<()> {
    let attributes: Result<Vec<_>, BuildError> =
        table.attributes.iter().map(|name| text(name)).collect();
    let indexes: Result<Vec<_>, BuildError> = table.indexes.iter().map(index).collect();
    let stream = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build();
    let made = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(attributes.map_err(unbuilt)?))
        .set_key_schema(Some(key_schema(&table.key).map_err(unbuilt)?))
        .set_global_secondary_indexes(Some(indexes.map_err(unbuilt)?))
        .stream_specification(stream.map_err(unbuilt)?)
        .send()
        .await;
    match made {
        Ok(_) => drop_by(client, name, &table.ttl).await,
        Err(error) => {
            let there = error
                .as_service_error()
                .is_some_and(|e| e.is_resource_in_use_exception());
            if there {
                Ok(())
            } else {
                Err(store_error(&error))
            }
        }
    }
}

/// Has items dropped by this attribute.
async fn drop_by(client: &Client, table: &str, attribute: &str) -> StoreResult<()> {
    let by = TimeToLiveSpecification::builder()
        .enabled(true)
        .attribute_name(attribute)
        .build();
    client
        .update_time_to_live()
        .table_name(table)
        .time_to_live_specification(by.map_err(unbuilt)?)
        .send()
        .await
        .map_err(|error| store_error(&error))?;
    Ok(())
}

fn text(name: &str) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder()
        .attribute_name(name)
        .attribute_type(ScalarAttributeType::S)
        .build()
}

fn key_schema((partition, sort): &(String, String)) -> Result<Vec<KeySchemaElement>, BuildError> {
    let element = |name: &str, kind: KeyType| {
        KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(kind)
            .build()
    };
    Ok(vec![
        element(partition, KeyType::Hash)?,
        element(sort, KeyType::Range)?,
    ])
}

fn index(index: &Index) -> Result<GlobalSecondaryIndex, BuildError> {
    let keys_only = Projection::builder()
        .projection_type(ProjectionType::KeysOnly)
        .build();
    GlobalSecondaryIndex::builder()
        .index_name(&index.name)
        .set_key_schema(Some(key_schema(&index.key)?))
        .projection(keys_only)
        .build()
}

fn unbuilt(error: BuildError) -> StoreError {
    StoreError::Corrupt(format!("a request could not be built: {error}"))
}
