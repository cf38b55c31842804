//! The cast of the tests: one node, its orgs, a reservation, a VM, all with telling names.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use app::auth::{ApiKey, Permission, Principal, SecretKey};
use app::context::Context;
use app::grant::{Grant, Role};
use app::ports::Ids;
use domain::node::Register;
use domain::reservation::{Reserve, reserve};
use domain::stamp::Actor;
use domain::{
    Caller, Node, Reservation, Stamp, Tier, Timestamp, UnitId, UnitSet, Vm, VmStatus, WriteId,
};

/// The org that runs the platform.
pub const OPERATOR_ORG: &str = "org-operator";
/// The org that owns the node.
pub const OWNER_ORG: &str = "org-owner";
/// The org that manages the reservation.
pub const MANAGER_ORG: &str = "org-manager";
/// The org in the reservation's audience.
pub const AUDIENCE_ORG: &str = "org-audience";
/// An org with no part in the reservation.
pub const STRANGER_ORG: &str = "org-stranger";
/// The node.
pub const NODE: &str = "node-1";
/// The model of its GPUs.
pub const GPU_MODEL: &str = "h100-sxm";
/// The reservation.
pub const RESERVATION: &str = "res-1";

/// Takes a text of a test as an id of the type that is asked for.
#[must_use]
pub fn id<T: FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| unreachable!("{text:?} is an id"))
}

/// The instant that the fixtures are made at.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::from_unix_ms(1_782_907_200_000)
}

/// The name of the unit with this number: `u00`, `u01`, …
#[must_use]
pub fn unit(number: usize) -> UnitId {
    id(&format!("u{number:02}"))
}

/// The units with these numbers.
#[must_use]
pub fn units(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<UnitId> {
    numbers.into_iter().map(unit).collect()
}

/// The units with these numbers, at least one, as a caller names them.
#[must_use]
pub fn unit_set(numbers: impl IntoIterator<Item = usize>) -> UnitSet {
    UnitSet::from_set(units(numbers)).unwrap_or_else(|| unreachable!("at least one unit is named"))
}

/// A caller of this org. Its key is named after the org.
#[must_use]
pub fn caller(org: &str) -> Caller {
    Caller {
        org: id(org),
        key: id(&format!("key-{org}")),
        operator: org == OPERATOR_ORG,
    }
}

/// A platform operator.
#[must_use]
pub fn operator() -> Caller {
    caller(OPERATOR_ORG)
}

/// A caller of the node's owner org.
#[must_use]
pub fn owner() -> Caller {
    caller(OWNER_ORG)
}

/// A caller of the managing org.
#[must_use]
pub fn manager() -> Caller {
    caller(MANAGER_ORG)
}

/// A caller of the audience org.
#[must_use]
pub fn audience() -> Caller {
    caller(AUDIENCE_ORG)
}

/// A caller of an org with no part in anything.
#[must_use]
pub fn stranger() -> Caller {
    caller(STRANGER_ORG)
}

/// A write id out of a number: the same number, the same write.
#[must_use]
pub fn write(number: u64) -> WriteId {
    let digits = format!("{:012x}", number & 0xffff_ffff_ffff);
    WriteId::parse(&digits).unwrap_or_else(|| unreachable!("{digits} has 12 digits"))
}

/// Builds a [`Stamp`]: by whom and by which write first, then what differs from the ordinary.
#[derive(Debug, Clone)]
pub struct StampBuilder(Stamp);

impl StampBuilder {
    /// A stamp of `actor` by the write of this number, at the instant of the fixtures.
    #[must_use]
    pub fn new(actor: Actor, number: u64) -> Self {
        Self(Stamp {
            actor,
            write: write(number),
            request_id: format!("request-{number}"),
            reason: None,
            now: now(),
        })
    }

    /// At this instant.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.0.now = now;
        self
    }

    /// For this reason.
    #[must_use]
    pub fn because(mut self, reason: &str) -> Self {
        self.0.reason = Some(reason.to_owned());
        self
    }

    /// The stamp.
    #[must_use]
    pub fn build(self) -> Stamp {
        self.0
    }
}

/// The ordinary stamp of a caller.
#[must_use]
pub fn stamp(by: Caller, number: u64) -> Stamp {
    StampBuilder::new(Actor::Caller(by), number).build()
}

/// The ordinary stamp of the platform itself.
#[must_use]
pub fn system_stamp(number: u64) -> Stamp {
    StampBuilder::new(Actor::System, number).build()
}

/// The node with so many units of one GPU each, all in its pool.
#[must_use]
pub fn node(unit_count: usize) -> Node {
    let register = Register {
        id: id(NODE),
        owner: id(OWNER_ORG),
        gpu_model: id(GPU_MODEL),
        units: units(0..unit_count)
            .into_iter()
            .map(|unit| (unit, 1))
            .collect::<BTreeMap<_, _>>(),
        topology_gen: 1,
        stamp: stamp(operator(), 0xe001),
    };
    register.node()
}

/// The command that makes the reservation of these units, open-ended, by the node's owner.
#[must_use]
pub fn reserve_command(numbers: impl IntoIterator<Item = usize>) -> Reserve {
    Reserve {
        id: id(RESERVATION),
        units: unit_set(numbers),
        audience: [id(AUDIENCE_ORG)].into(),
        managers: [id(MANAGER_ORG)].into(),
        starts: None,
        ends: None,
        contract_ref: None,
        stamp: stamp(owner(), 0xe002),
    }
}

/// The reservation of these units of `node`, active, and the node after it.
#[must_use]
pub fn reserved(node: &Node, numbers: impl IntoIterator<Item = usize>) -> (Reservation, Node) {
    reserve_with(node, &reserve_command(numbers))
}

/// As [`reserved`], by a command that a test has changed.
#[must_use]
pub fn reserve_with(node: &Node, command: &Reserve) -> (Reservation, Node) {
    reserve(node, command).unwrap_or_else(|refusal| unreachable!("the units are free: {refusal}"))
}

/// A running VM of `org` on these units of the node, placed in the pool as far as it knows.
#[must_use]
pub fn vm(name: &str, tier: Tier, org: &str, numbers: impl IntoIterator<Item = usize>) -> Vm {
    let units = units(numbers);
    Vm {
        id: id(name),
        org: id(org),
        name: name.to_owned(),
        status: VmStatus::Running,
        status_reason: None,
        tier,
        gpu_model: id(GPU_MODEL),
        gpu_count: u32::try_from(units.len()).unwrap_or(u32::MAX),
        node: id(NODE),
        units,
        reservation: None,
        sentence: None,
        attempts: 0,
        stuck_at: None,
        created_at: now(),
        updated_at: now(),
    }
}

/// A running spot VM of the org with no part in the reservation.
#[must_use]
pub fn spot(name: &str, numbers: impl IntoIterator<Item = usize>) -> Vm {
    vm(name, Tier::Spot, STRANGER_ORG, numbers)
}

/// A call by this caller, who may do everything that a key can allow.
#[must_use]
pub fn context(caller: Caller, ids: &impl Ids) -> Context {
    Context {
        principal: Principal {
            caller,
            permissions: Permission::ALL.into(),
            role: None,
            expires_at: None,
        },
        request_id: ids.uuid(),
    }
}

/// A secret key that a number determines.
#[must_use]
pub fn secret(number: u8) -> SecretKey {
    SecretKey::from_random(&[number; 32])
}

/// A valid key of `caller` with these permissions.
#[must_use]
pub fn api_key(caller: &Caller, permissions: &[Permission]) -> ApiKey {
    let permissions = permissions.iter().copied().collect();
    granted(caller, Grant::Permissions(permissions))
}

/// A valid key of `caller` with this role.
#[must_use]
pub fn role_key(caller: &Caller, role: Role) -> ApiKey {
    granted(caller, Grant::Role(role))
}

fn granted(caller: &Caller, grant: Grant) -> ApiKey {
    ApiKey {
        id: caller.key.clone(),
        org: caller.org.clone(),
        name: format!("the key of {}", caller.org),
        prefix: "or_Prefix".to_owned(),
        grant,
        operator: caller.operator,
        created_at: now(),
        expires_at: None,
        revoked_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::invariants::check_all;
    use domain::reservation::Relation;

    #[test]
    fn the_cast_plays_its_parts() {
        let (reservation, node) = reserved(&node(8), 0..4);
        assert_eq!(check_all(&node, std::slice::from_ref(&reservation)), []);
        let parts = [operator(), owner(), manager(), audience(), stranger()];
        assert_eq!(
            parts.map(|caller| reservation.relation(&caller)),
            [
                Relation::Operator,
                Relation::Owner,
                Relation::Manager,
                Relation::Audience,
                Relation::Stranger
            ]
        );
        assert_eq!(now().to_string(), "2026-07-01T12:00:00.000Z");
    }
}
