//! Slots: which VM sits on which unit, and the one sentence that says who must die.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{OrgId, ReservationId, UnitId, VmId};
use crate::version::Version;

/// What a VM was bought as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Ordinary sale on shared hosts.
    Community,
    /// Ordinary sale on vetted hosts.
    Verified,
    /// Sale that the capacity's owner may take back at any time, without notice.
    Spot,
}

impl Tier {
    /// All tiers.
    pub const ALL: [Tier; 3] = [Tier::Community, Tier::Verified, Tier::Spot];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Community => "community",
            Tier::Verified => "verified",
            Tier::Spot => "spot",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text)
    }
}

/// Why an occupant dies whatever its custodian offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dying {
    /// Its own org, a manager of its units or an operator told it to stop.
    Stopped,
    /// This reservation condemned it before the unit changed hands.
    Evicted(ReservationId),
}

/// The VM on a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// Which VM.
    pub vm: VmId,
    /// What it was bought as.
    pub tier: Tier,
    /// Whose it is.
    pub org: OrgId,
    /// Set once it must die whatever comes after; never unset.
    pub dying: Option<Dying>,
    /// The custodian's version that its arrival made.
    pub arrived: Version,
}

/// The VM that left a unit last, kept so that a reclaim whose reply was lost can still name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departed {
    /// Which VM.
    pub vm: VmId,
    /// What it was bought as.
    pub tier: Tier,
    /// The custodian's version that its arrival made.
    pub arrived: Version,
    /// The custodian's version that its leaving made.
    pub left: Version,
}

/// One unit in the hands of its custodian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// GPUs in the unit.
    pub gpus: u16,
    /// The VM on it.
    pub occupant: Option<Occupant>,
    /// The VM that left it last under this custodian.
    pub departed: Option<Departed>,
}

impl Slot {
    /// An empty unit of so many GPUs.
    #[must_use]
    pub fn empty(gpus: u16) -> Self {
        Self {
            gpus,
            occupant: None,
            departed: None,
        }
    }

    /// Puts `occupant` here.
    pub(crate) fn seat(&mut self, occupant: Occupant) {
        self.occupant = Some(occupant);
    }

    /// Takes the occupant out, noting it as departed by the change that makes `left`.
    pub(crate) fn vacate(&mut self, left: Version) {
        if let Some(Occupant {
            vm, tier, arrived, ..
        }) = self.occupant.take()
        {
            self.departed = Some(Departed {
                vm,
                tier,
                arrived,
                left,
            });
        }
    }
}

/// Units in one custodian's hands. A unit is a key of exactly one such map in the whole system.
pub type Slots = BTreeMap<UnitId, Slot>;

/// Which of its units a custodian offers to spot.
#[derive(Debug, Clone, Copy)]
pub enum Offer<'a> {
    /// All of them: the public pool.
    All,
    /// Just these: an active reservation's released units.
    Only(&'a BTreeSet<UnitId>),
}

impl Offer<'_> {
    fn includes(self, unit: &UnitId) -> bool {
        match self {
            Offer::All => true,
            Offer::Only(units) => units.contains(unit),
        }
    }
}

/// A VM that is to be terminated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condemned {
    /// Its units in these slots.
    pub units: BTreeSet<UnitId>,
    /// What it was bought as.
    pub tier: Tier,
    /// Set where the slot itself says so.
    pub dying: Option<Dying>,
}

/// The sentence that defines eviction: **a spot VM on a unit that its custodian does not offer to
/// spot, or any VM whose slot says `dying`, is to be terminated.**
///
/// A VM over several units is condemned by any one of them and named once, with all its units here.
#[must_use]
pub fn condemned(slots: &Slots, offer: Offer<'_>) -> BTreeMap<VmId, Condemned> {
    let mut out: BTreeMap<VmId, Condemned> = BTreeMap::new();
    for (unit, occupant) in occupants(slots) {
        let withdrawn = occupant.tier == Tier::Spot && !offer.includes(unit);
        if withdrawn || occupant.dying.is_some() {
            let entry = out.entry(occupant.vm.clone()).or_insert_with(|| Condemned {
                units: BTreeSet::new(),
                tier: occupant.tier,
                dying: None,
            });
            entry.dying = entry.dying.take().or_else(|| occupant.dying.clone());
        }
    }
    for (unit, occupant) in occupants(slots) {
        if let Some(entry) = out.get_mut(&occupant.vm) {
            entry.units.insert(unit.clone());
        }
    }
    out
}

/// The occupied units with their occupants.
pub fn occupants(slots: &Slots) -> impl Iterator<Item = (&UnitId, &Occupant)> {
    slots
        .iter()
        .filter_map(|(unit, slot)| slot.occupant.as_ref().map(|o| (unit, o)))
}

/// Hands slots to another custodian by the change that makes its version `arrived`.
///
/// Whoever the old custodian had condemned carries that along as [`Dying`]: once condemned, always
/// condemned. `by` is the reservation that the sentence is booked on, where a slot does not say
/// yet.
#[must_use]
pub fn hand_over(slots: &Slots, offer: Offer<'_>, by: &ReservationId, arrived: Version) -> Slots {
    let sentenced = condemned(slots, offer);
    let moved = slots.iter().map(|(unit, slot)| {
        let occupant = slot.occupant.clone().map(|occupant| {
            let dying = sentenced.get(&occupant.vm).map(|sentence| {
                sentence
                    .dying
                    .clone()
                    .unwrap_or_else(|| Dying::Evicted(by.clone()))
            });
            Occupant {
                dying,
                arrived,
                ..occupant
            }
        });
        (
            unit.clone(),
            Slot {
                gpus: slot.gpus,
                occupant,
                departed: None,
            },
        )
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> UnitId {
        UnitId::parse(name).unwrap_or_else(|_| unreachable!("{name} is an id"))
    }

    fn seated(vm: &str, tier: Tier, dying: Option<Dying>) -> Slot {
        let occupant = Occupant {
            vm: VmId::parse(vm).unwrap_or_else(|_| unreachable!("{vm} is an id")),
            tier,
            org: OrgId::parse("org").unwrap_or_else(|_| unreachable!("an id")),
            dying,
            arrived: Version::FIRST,
        };
        Slot {
            gpus: 1,
            occupant: Some(occupant),
            departed: None,
        }
    }

    fn names(found: &BTreeMap<VmId, Condemned>) -> Vec<&str> {
        found.keys().map(VmId::as_str).collect()
    }

    #[test]
    fn spot_off_the_offer_and_the_dying_are_condemned_and_nobody_else() {
        let slots: Slots = [
            (unit("u1"), seated("spot-off", Tier::Spot, None)),
            (unit("u2"), seated("spot-on", Tier::Spot, None)),
            (unit("u3"), seated("tenant", Tier::Community, None)),
            (
                unit("u4"),
                seated("stopped", Tier::Verified, Some(Dying::Stopped)),
            ),
            (unit("u5"), Slot::empty(1)),
        ]
        .into();
        let offered = [unit("u2"), unit("u3")].into();
        assert_eq!(
            names(&condemned(&slots, Offer::Only(&offered))),
            ["spot-off", "stopped"]
        );
        assert_eq!(names(&condemned(&slots, Offer::All)), ["stopped"]);
    }

    #[test]
    fn a_vm_over_two_units_is_condemned_once_with_both_of_them() {
        let slots: Slots = [
            (unit("u1"), seated("wide", Tier::Spot, None)),
            (unit("u2"), seated("wide", Tier::Spot, None)),
        ]
        .into();
        let found = condemned(&slots, Offer::Only(&[unit("u2")].into()));
        assert_eq!(names(&found), ["wide"]);
        assert!(found.values().all(|c| c.units.len() == 2));
    }

    #[test]
    fn a_sentence_survives_a_change_of_hands() {
        let slots: Slots = [
            (unit("u1"), seated("wide", Tier::Spot, None)),
            (unit("u2"), seated("wide", Tier::Spot, None)),
            (unit("u3"), seated("safe", Tier::Spot, None)),
        ]
        .into();
        let by = ReservationId::parse("r").unwrap_or_else(|_| unreachable!("an id"));
        let offered = [unit("u2"), unit("u3")].into();
        let moved = hand_over(&slots, Offer::Only(&offered), &by, Version::FIRST);
        assert_eq!(names(&condemned(&moved, Offer::All)), ["wide"]);
    }
}
