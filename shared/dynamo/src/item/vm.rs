//! The item of a VM.

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::vm::Sentence;
use domain::{Tier, Vm, VmStatus, WriteId};

use super::{Item, Reader, UPDATED, Writer, fresh, open};
use crate::keys::{Key, ORG_PK, PK, SK, Subject, org_pk};

/// The value of the attribute `type`.
pub(crate) const KIND: &str = "vm";
const ORG: &str = "org";
const NAME: &str = "name";
pub(crate) const STATUS: &str = "status";
pub(crate) const STATUS_REASON: &str = "why";
const TIER: &str = "tier";
const MODEL: &str = "model";
const GPUS: &str = "gpus";
const NODE: &str = "node";
const UNITS: &str = "units";
const RESERVATION: &str = "res";
pub(crate) const SENTENCE: &str = "sentence";
pub(crate) const ATTEMPTS: &str = "attempts";
pub(crate) const STUCK: &str = "stuck";
const CREATED: &str = "created";
/// The write that placed or settled the VM last: by it a write whose reply was lost knows itself.
pub(crate) const WRITE: &str = "wr";
/// Before the number of a place: a token of the last attempt counted there, for the same purpose.
pub(crate) const COUNTED: &str = "ct";

const SENTENCE_RESERVATION: &str = "r";
const SENTENCE_VERSION: &str = "v";
const SENTENCE_AT: &str = "at";

/// The item of a VM that `write` makes.
pub(crate) fn encode(vm: &Vm, write: &WriteId) -> Item {
    let mut writer = fresh(&Key::vm(&vm.id), KIND);
    writer.text(ORG, &vm.org);
    writer.text(ORG_PK, org_pk(&vm.org));
    writer.text(NAME, &vm.name);
    writer.text(STATUS, vm.status.as_str());
    writer.maybe_text(STATUS_REASON, vm.status_reason.as_ref());
    writer.text(TIER, vm.tier.as_str());
    writer.text(MODEL, &vm.gpu_model);
    writer.number(GPUS, vm.gpu_count);
    writer.text(NODE, &vm.node);
    writer.set(UNITS, &vm.units);
    writer.maybe_text(RESERVATION, vm.reservation.as_ref());
    if let Some(sentence) = &vm.sentence {
        writer.put(SENTENCE, encode_sentence(sentence));
    }
    writer.number(ATTEMPTS, vm.attempts);
    writer.maybe_text(STUCK, vm.stuck_at);
    writer.time(CREATED, vm.created_at);
    writer.time(UPDATED, vm.updated_at);
    writer.text(WRITE, write.as_str());
    writer.item()
}

/// The stored form of a sentence.
pub(crate) fn encode_sentence(sentence: &Sentence) -> AttributeValue {
    let mut writer = Writer::default();
    writer.maybe_text(SENTENCE_RESERVATION, sentence.reservation.as_ref());
    writer.number(SENTENCE_VERSION, sentence.version);
    writer.time(SENTENCE_AT, sentence.at);
    writer.map()
}

/// Reads the item of a VM.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one.
pub(crate) fn decode(item: &Item) -> StoreResult<Vm> {
    let reader = open(item, KIND)?;
    let subject = Subject::parse(&reader.text(PK)?, &reader.text(SK)?);
    let Some(Subject::Vm(id)) = subject else {
        return Err(reader.corrupt(PK, "a VM's"));
    };
    Ok(Vm {
        id,
        org: reader.id(ORG)?,
        name: reader.text(NAME)?,
        status: reader.parsed(STATUS, "a status", VmStatus::parse)?,
        status_reason: reader.maybe_text(STATUS_REASON)?,
        tier: reader.parsed(TIER, "a tier", Tier::parse)?,
        gpu_model: reader.id(MODEL)?,
        gpu_count: reader.number(GPUS)?,
        node: reader.id(NODE)?,
        units: reader.ids(UNITS)?,
        reservation: reader.maybe_id(RESERVATION)?,
        sentence: decode_sentence(&reader)?,
        attempts: reader.number(ATTEMPTS)?,
        stuck_at: reader.maybe_time(STUCK)?,
        created_at: reader.time(CREATED)?,
        updated_at: reader.time(UPDATED)?,
    })
}

fn decode_sentence(reader: &Reader<'_>) -> StoreResult<Option<Sentence>> {
    let Some(sentence) = reader.maybe_map(SENTENCE)? else {
        return Ok(None);
    };
    Ok(Some(Sentence {
        reservation: sentence.maybe_id(SENTENCE_RESERVATION)?,
        version: sentence.version(SENTENCE_VERSION)?,
        at: sentence.time(SENTENCE_AT)?,
    }))
}

/// Whether `write` placed or settled this VM last.
pub(crate) fn written_by(item: &Item, write: &WriteId) -> bool {
    matches!(item.get(WRITE), Some(AttributeValue::S(there)) if there == write.as_str())
}
