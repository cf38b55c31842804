//! The item of a reservation.

use app::ports::StoreResult;
use domain::invariants::check_reservation;
use domain::{Reservation, Status, Term, UnitSet};

use super::{Item, UPDATED, VERSION, fresh, open, slots, sound, stamp};
use crate::keys::{Key, MARKET_PK, PK, SK, Subject, market_pk};

/// The value of the attribute `type`.
pub(crate) const KIND: &str = "reservation";
pub(crate) const OWNER: &str = "owner";
const MODEL: &str = "model";
pub(crate) const UNITS: &str = "units";
pub(crate) const RELEASED: &str = "released";
pub(crate) const AUDIENCE: &str = "audience";
pub(crate) const MANAGERS: &str = "managers";
pub(crate) const STARTS: &str = "starts";
pub(crate) const ENDS: &str = "ends";
pub(crate) const STATUS: &str = "status";
const TOPOLOGY: &str = "topo";
const CONTRACT_REF: &str = "ref";
const REASON: &str = "why";
const CREATED: &str = "created";
pub(crate) const LAST: &str = "last";
/// What [`MARKET_PK`] becomes with the first release: an update cannot read the model and the node
/// to make it up, but it can copy an attribute.
pub(crate) const MARKET_KEY: &str = "marketKey";

/// The item of a reservation.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it breaks an invariant.
pub(crate) fn encode(reservation: &Reservation) -> StoreResult<Item> {
    let key = Key::reservation(&reservation.node, &reservation.id);
    sound(&key.sk, &check_reservation(reservation))?;
    let mut writer = fresh(&key, KIND);
    writer.text(OWNER, &reservation.node_owner);
    writer.text(MODEL, &reservation.gpu_model);
    writer.set(UNITS, reservation.units.iter());
    writer.set(RELEASED, &reservation.released);
    writer.set(AUDIENCE, &reservation.audience);
    writer.set(MANAGERS, &reservation.managers);
    writer.time(STARTS, reservation.term.starts);
    writer.maybe_text(ENDS, reservation.term.ends);
    writer.text(STATUS, reservation.status);
    writer.number(TOPOLOGY, reservation.topology_gen);
    writer.maybe_text(CONTRACT_REF, reservation.contract_ref.as_ref());
    writer.maybe_text(REASON, reservation.reason.as_ref());
    writer.time(CREATED, reservation.created_at);
    writer.time(UPDATED, reservation.updated_at);
    writer.put(slots::SLOTS, slots::encode(&reservation.slots));
    writer.number(VERSION, reservation.version);
    writer.put(LAST, stamp::action(&reservation.last_action));
    stamp::put_recent(&mut writer, &reservation.recent);
    let market = market_pk(&reservation.gpu_model, &reservation.node);
    writer.text(MARKET_KEY, &market);
    if !reservation.released.is_empty() {
        writer.text(MARKET_PK, &market);
    }
    stamp::put_due(&mut writer, reservation.id.as_str(), reservation.due_at);
    Ok(writer.item())
}

/// Reads the item of a reservation.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one, or breaks an invariant.
pub(crate) fn decode(item: &Item) -> StoreResult<Reservation> {
    let reader = open(item, KIND)?;
    let subject = Subject::parse(&reader.text(PK)?, &reader.text(SK)?);
    let Some(Subject::Reservation(node, id)) = subject else {
        return Err(reader.corrupt(PK, "a reservation's"));
    };
    let units = UnitSet::from_set(reader.ids(UNITS)?);
    let reservation = Reservation {
        id,
        node,
        node_owner: reader.id(OWNER)?,
        gpu_model: reader.id(MODEL)?,
        units: units.ok_or_else(|| reader.corrupt(UNITS, "a set of units"))?,
        released: reader.ids(RELEASED)?,
        audience: reader.ids(AUDIENCE)?,
        managers: reader.ids(MANAGERS)?,
        term: Term {
            starts: reader.time(STARTS)?,
            ends: reader.maybe_time(ENDS)?,
        },
        status: reader.parsed(STATUS, "a status", Status::parse)?,
        topology_gen: reader.number(TOPOLOGY)?,
        contract_ref: reader.maybe_text(CONTRACT_REF)?,
        reason: reader.maybe_text(REASON)?,
        created_at: reader.time(CREATED)?,
        updated_at: reader.time(UPDATED)?,
        slots: slots::decode(&reader)?,
        version: reader.version(VERSION)?,
        last_action: stamp::decode_action(&reader.map(LAST)?)?,
        recent: stamp::recent(&reader)?,
        due_at: stamp::due(&reader)?,
    };
    sound(reader.what(), &check_reservation(&reservation))?;
    Ok(reservation)
}
