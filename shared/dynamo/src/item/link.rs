//! Items that list others: they hold a key and little else, and are never changed.

use app::ports::{Part, StoreResult};
use domain::{NodeId, Reservation, ReservationId};

use super::{Item, fresh};
use crate::keys::{Key, PK, SK, Subject};

/// The value of the attribute `type`.
const KIND: &str = "link";
/// The node of the reservation that the link is to.
const NODE: &str = "node";

/// The item of a link.
pub(crate) fn encode(key: &Key) -> Item {
    fresh(key, KIND).item()
}

/// The links to a reservation of each org that has a part in it.
pub(crate) fn of_parties(reservation: &Reservation) -> Vec<Item> {
    let audience = reservation.audience.iter().map(|org| (Part::Audience, org));
    let managers = reservation.managers.iter().map(|org| (Part::Manager, org));
    let owner = [(Part::Owner, &reservation.node_owner)];
    let links = audience.chain(managers).chain(owner).map(|(part, org)| {
        let mut writer = fresh(&Key::reservation_link(org, part, &reservation.id), KIND);
        writer.text(NODE, &reservation.node);
        writer.item()
    });
    links.collect()
}

/// The reservation that the item is a link to.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is no such link.
pub(crate) fn decode_reservation(item: &Item) -> StoreResult<(ReservationId, NodeId)> {
    let id = decode(item, |subject| match subject {
        Subject::ReservationLink(_, _, id) => Some(id),
        _ => None,
    })?;
    Ok((id, super::open(item, KIND)?.id(NODE)?))
}

/// What the item is a link to.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is no link.
pub(crate) fn decode<T>(item: &Item, wanted: impl FnOnce(Subject) -> Option<T>) -> StoreResult<T> {
    let reader = super::open(item, KIND)?;
    let (pk, sk) = (reader.text(PK)?, reader.text(SK)?);
    let subject = Subject::parse(&pk, &sk).and_then(wanted);
    subject.ok_or_else(|| reader.corrupt(SK, "a link of this list"))
}
