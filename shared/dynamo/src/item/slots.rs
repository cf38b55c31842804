//! Slots: a map from unit to who is on it and who left it last.
//!
//! The versions of an arrival and of a departure stand beside the maps of the VM they belong to,
//! because an update sets them to a sum, which the store can do for a path but not within a value.

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::slot::Departed;
use domain::{Dying, Occupant, OrgId, ReservationId, Slot, Slots, Tier, UnitId, VmId};

use super::{Reader, Writer, map};

/// The attribute that holds the slots.
pub(crate) const SLOTS: &str = "slots";
/// GPUs of the unit.
const GPUS: &str = "g";
/// The occupant.
pub(crate) const OCCUPANT: &str = "v";
/// The version that the occupant's arrival made.
pub(crate) const ARRIVED: &str = "n";
/// The VM that left last.
pub(crate) const DEPARTED: &str = "p";
/// The version that its arrival had made.
pub(crate) const DEPARTED_ARRIVED: &str = "pa";
/// The version that its leaving made.
pub(crate) const LEFT: &str = "e";
/// Of an occupant or a departed VM: its id.
pub(crate) const VM: &str = "i";
/// Of an occupant or a departed VM: its tier.
pub(crate) const TIER: &str = "t";
/// Of an occupant: its org.
const ORG: &str = "o";
/// Of an occupant: why it dies whatever comes after.
pub(crate) const DYING: &str = "d";

const STOPPED: &str = "stop";
const EVICTED_PREFIX: &str = "by#";

/// The stored name of a tier: one letter, because it stands in every slot.
pub(crate) fn tier_letter(tier: Tier) -> &'static str {
    match tier {
        Tier::Community => "c",
        Tier::Verified => "v",
        Tier::Spot => "s",
    }
}

fn parse_tier(letter: &str) -> Option<Tier> {
    Tier::ALL
        .into_iter()
        .find(|tier| tier_letter(*tier) == letter)
}

/// The stored form of why a VM dies.
pub(crate) fn dying_text(dying: &Dying) -> String {
    match dying {
        Dying::Stopped => STOPPED.to_owned(),
        Dying::Evicted(by) => format!("{EVICTED_PREFIX}{by}"),
    }
}

fn parse_dying(text: &str) -> Option<Dying> {
    if text == STOPPED {
        return Some(Dying::Stopped);
    }
    let by = text.strip_prefix(EVICTED_PREFIX)?;
    Some(Dying::Evicted(ReservationId::parse(by).ok()?))
}

/// The stored form of an occupant, without the version of its arrival.
pub(crate) fn occupant(
    vm: &VmId,
    tier: Tier,
    org: &OrgId,
    dying: Option<&Dying>,
) -> AttributeValue {
    let mut writer = Writer::default();
    writer.text(VM, vm);
    writer.text(TIER, tier_letter(tier));
    writer.text(ORG, org);
    writer.maybe_text(DYING, dying.map(dying_text));
    writer.map()
}

/// The stored form of a VM that left, without the versions of its arrival and leaving.
pub(crate) fn departed(vm: &VmId, tier: Tier) -> AttributeValue {
    let mut writer = Writer::default();
    writer.text(VM, vm);
    writer.text(TIER, tier_letter(tier));
    writer.map()
}

/// The stored form of slots.
pub(crate) fn encode(slots: &Slots) -> AttributeValue {
    map(slots
        .iter()
        .map(|(unit, slot)| (unit.to_string(), encode_slot(slot))))
}

fn encode_slot(slot: &Slot) -> AttributeValue {
    let mut writer = Writer::default();
    writer.number(GPUS, slot.gpus);
    if let Some(there) = &slot.occupant {
        let value = occupant(&there.vm, there.tier, &there.org, there.dying.as_ref());
        writer.put(OCCUPANT, value);
        writer.number(ARRIVED, there.arrived);
    }
    if let Some(gone) = &slot.departed {
        writer.put(DEPARTED, departed(&gone.vm, gone.tier));
        writer.number(DEPARTED_ARRIVED, gone.arrived);
        writer.number(LEFT, gone.left);
    }
    writer.map()
}

/// Reads slots.
pub(crate) fn decode(item: &Reader<'_>) -> StoreResult<Slots> {
    let units = item.map(SLOTS)?;
    units
        .names()
        .map(|name| {
            let unit = UnitId::parse(name).map_err(|_| units.corrupt(name, "a unit"))?;
            Ok((unit, decode_slot(&units.map(name)?)?))
        })
        .collect()
}

fn decode_slot(slot: &Reader<'_>) -> StoreResult<Slot> {
    Ok(Slot {
        gpus: slot.number(GPUS)?,
        occupant: decode_occupant(slot)?,
        departed: decode_departed(slot)?,
    })
}

fn decode_occupant(slot: &Reader<'_>) -> StoreResult<Option<Occupant>> {
    let Some(there) = slot.maybe_map(OCCUPANT)? else {
        return match slot.maybe_version(ARRIVED)? {
            None => Ok(None),
            Some(_) => Err(slot.corrupt(ARRIVED, "beside an occupant")),
        };
    };
    Ok(Some(Occupant {
        vm: there.id(VM)?,
        tier: there.parsed(TIER, "a tier", parse_tier)?,
        org: there.id(ORG)?,
        dying: there.maybe_parsed(DYING, "a cause of death", parse_dying)?,
        arrived: slot.version(ARRIVED)?,
    }))
}

fn decode_departed(slot: &Reader<'_>) -> StoreResult<Option<Departed>> {
    let Some(gone) = slot.maybe_map(DEPARTED)? else {
        return Ok(None);
    };
    Ok(Some(Departed {
        vm: gone.id(VM)?,
        tier: gone.parsed(TIER, "a tier", parse_tier)?,
        arrived: slot.version(DEPARTED_ARRIVED)?,
        left: slot.version(LEFT)?,
    }))
}
