//! The item of a node.

use std::collections::BTreeMap;

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::invariants::check_node;
use domain::{Booking, Node, ReservationId, Term, UnitId};

use super::{
    Item, Reader, UPDATED, VERSION, Writer, fresh, map, number, open, slots, sound, stamp,
};
use crate::keys::{Key, MARKET_PK, PK, SK, Subject, market_pk};

/// The value of the attribute `type`.
pub(crate) const KIND: &str = "node";
const OWNER: &str = "owner";
const MODEL: &str = "model";
const TOPOLOGY: &str = "topo";
/// The units that the node has, each with its GPUs.
pub(crate) const HARDWARE: &str = "units";
const BOOKINGS: &str = "bookings";
const CREATED: &str = "created";

const UNITS: &str = "u";
const STARTS: &str = "s";
const ENDS: &str = "e";
const HOLDS: &str = "h";

/// The item of a node.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it breaks an invariant.
pub(crate) fn encode(node: &Node) -> StoreResult<Item> {
    let key = Key::node(&node.id);
    sound(&key.pk, &check_node(node))?;
    let mut writer = fresh(&key, KIND);
    writer.text(OWNER, &node.owner);
    writer.text(MODEL, &node.gpu_model);
    writer.number(TOPOLOGY, node.topology_gen);
    let units = node.units.iter();
    writer.put(
        HARDWARE,
        map(units.map(|(unit, gpus)| (unit.to_string(), number(gpus)))),
    );
    writer.put(slots::SLOTS, slots::encode(&node.slots));
    let bookings = node.bookings.iter();
    let bookings = bookings.map(|(id, booking)| (id.to_string(), encode_booking(booking)));
    writer.put(BOOKINGS, map(bookings));
    writer.time(CREATED, node.created_at);
    writer.time(UPDATED, node.updated_at);
    writer.number(VERSION, node.version);
    stamp::put_recent(&mut writer, &node.recent);
    stamp::put_due(&mut writer, node.id.as_str(), node.due_at);
    writer.text(MARKET_PK, market_pk(&node.gpu_model, &node.id));
    Ok(writer.item())
}

fn encode_booking(booking: &Booking) -> AttributeValue {
    let mut writer = Writer::default();
    writer.set(UNITS, &booking.units);
    writer.time(STARTS, booking.term.starts);
    writer.maybe_text(ENDS, booking.term.ends);
    writer.flag(HOLDS, booking.holds);
    writer.map()
}

/// Reads the item of a node.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one, or breaks an invariant.
pub(crate) fn decode(item: &Item) -> StoreResult<Node> {
    let reader = open(item, KIND)?;
    let subject = Subject::parse(&reader.text(PK)?, &reader.text(SK)?);
    let Some(Subject::Node(id)) = subject else {
        return Err(reader.corrupt(PK, "a node's"));
    };
    let node = Node {
        id,
        owner: reader.id(OWNER)?,
        gpu_model: reader.id(MODEL)?,
        topology_gen: reader.number(TOPOLOGY)?,
        units: decode_units(&reader.map(HARDWARE)?)?,
        slots: slots::decode(&reader)?,
        bookings: decode_bookings(&reader.map(BOOKINGS)?)?,
        created_at: reader.time(CREATED)?,
        updated_at: reader.time(UPDATED)?,
        version: reader.version(VERSION)?,
        recent: stamp::recent(&reader)?,
        due_at: stamp::due(&reader)?,
    };
    sound(reader.what(), &check_node(&node))?;
    Ok(node)
}

fn decode_units(units: &Reader<'_>) -> StoreResult<BTreeMap<UnitId, u16>> {
    units
        .names()
        .map(|name| {
            let unit = UnitId::parse(name).map_err(|_| units.corrupt(name, "a unit"))?;
            Ok((unit, units.number(name)?))
        })
        .collect()
}

fn decode_bookings(bookings: &Reader<'_>) -> StoreResult<BTreeMap<ReservationId, Booking>> {
    bookings
        .names()
        .map(|name| {
            let id = ReservationId::parse(name);
            let id = id.map_err(|_| bookings.corrupt(name, "a reservation"))?;
            let booking = bookings.map(name)?;
            let term = Term {
                starts: booking.time(STARTS)?,
                ends: booking.maybe_time(ENDS)?,
            };
            let booking = Booking {
                units: booking.ids(UNITS)?,
                term,
                holds: booking.flag(HOLDS)?,
            };
            Ok((id, booking))
        })
        .collect()
}
