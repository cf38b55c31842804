//! Keys: the only place where the texts of primary and index keys are made and read.
//!
//! Ids never hold a `#`, so a `#` in a key always stands between two parts.

use app::auth::KeyDigest;
use app::idempotency::IdempotencyKey;
use app::ports::Part;
use domain::{GpuModelId, KeyId, NodeId, OrgId, ReservationId, Version, VmId};

/// Partition key of the table.
pub(crate) const PK: &str = "PK";
/// Sort key of the table.
pub(crate) const SK: &str = "SK";
/// Partition key of the index [`DUE_INDEX`].
pub(crate) const DUE_PK: &str = "duePk";
/// Sort key of the index [`DUE_INDEX`]: when the item is to be looked at.
pub(crate) const DUE_AT: &str = "dueAt";
/// Partition key of the index [`MARKET_INDEX`].
pub(crate) const MARKET_PK: &str = "marketPk";
/// Partition key of the index [`ORG_INDEX`].
pub(crate) const ORG_PK: &str = "orgPk";

/// The index of what is to be looked at, and when.
pub(crate) const DUE_INDEX: &str = "due";
/// The index of custodians that may have units of a model to sell.
pub(crate) const MARKET_INDEX: &str = "market";
/// The index of an org's VMs.
pub(crate) const ORG_INDEX: &str = "org";

/// Shards of [`DUE_INDEX`]: the ends of many terms may fall on one instant.
pub(crate) const DUE_SHARDS: u64 = 16;
/// Shards of each model in [`MARKET_INDEX`]: one model may be most of a fleet.
pub(crate) const MARKET_SHARDS: u64 = 8;

/// Partition of the links to all nodes.
const NODES: &str = "NODES";
/// Partition of the links to all GPU models.
const MODELS: &str = "MODELS";

/// Sorts after every character of an id.
const PAST_ALL_IDS: char = '~';
/// Sorts before every character of an id.
const BEFORE_ALL_IDS: char = '!';

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Partition key.
    pub(crate) pk: String,
    /// Sort key.
    pub(crate) sk: String,
}

impl Key {
    /// Of a node.
    pub(crate) fn node(id: &NodeId) -> Self {
        Self {
            pk: format!("NODE#{id}"),
            sk: "NODE".to_owned(),
        }
    }

    /// Of a reservation.
    pub(crate) fn reservation(node: &NodeId, id: &ReservationId) -> Self {
        Self {
            pk: format!("NODE#{node}"),
            sk: format!("RES#{id}"),
        }
    }

    /// Of a VM.
    pub(crate) fn vm(id: &VmId) -> Self {
        Self {
            pk: format!("VM#{id}"),
            sk: "VM".to_owned(),
        }
    }

    /// Of an answer kept for a call.
    pub(crate) fn kept(org: &OrgId, key: &IdempotencyKey) -> Self {
        Self {
            pk: format!("IDEM#{org}#{}", key.as_str()),
            sk: "IDEM".to_owned(),
        }
    }

    /// Of an API key.
    pub(crate) fn api_key(digest: &KeyDigest) -> Self {
        Self {
            pk: format!("KEY#{}", digest.as_str()),
            sk: "KEY".to_owned(),
        }
    }

    /// Of the entry that an API key has in the list of its org.
    pub(crate) fn key_link(org: &OrgId, id: &KeyId) -> Self {
        Self {
            pk: of_org_pk(org),
            sk: format!("KEY#{id}"),
        }
    }

    /// Of the link to a node among all nodes, or among those of its owner.
    pub(crate) fn node_link(owner: Option<&OrgId>, node: &NodeId) -> Self {
        Self {
            pk: nodes_pk(owner),
            sk: format!("NODE#{node}"),
        }
    }

    /// Of the link to a reservation among those that an org has this part in.
    pub(crate) fn reservation_link(org: &OrgId, part: Part, id: &ReservationId) -> Self {
        Self {
            pk: of_org_pk(org),
            sk: format!("{}{id}", part_prefix(part)),
        }
    }

    /// Of the link to a GPU model.
    pub(crate) fn model(model: &GpuModelId) -> Self {
        Self {
            pk: models_pk(),
            sk: format!("MODEL#{model}"),
        }
    }

    /// Of nothing, among items of this kind: no id is empty.
    pub(crate) fn nothing(kind: &str) -> Self {
        Self {
            pk: format!("{kind}#"),
            sk: "NOTHING".to_owned(),
        }
    }

    /// Of an audit record.
    pub(crate) fn audit(id: &ReservationId, version: Version, beside: Option<&VmId>) -> Self {
        let own = audit_version(version);
        Self {
            pk: audit_pk(id),
            sk: match beside {
                None => own,
                Some(vm) => format!("{own}#VM#{vm}"),
            },
        }
    }
}

/// What a primary key is the key of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A node.
    Node(NodeId),
    /// A reservation of a node.
    Reservation(NodeId, ReservationId),
    /// A VM.
    Vm(VmId),
    /// An API key, by the digest of its secret.
    ApiKey(String),
    /// The entry of an API key in the list of its org.
    KeyLink(OrgId, KeyId),
    /// An answer kept for a call, by its org and its idempotency key.
    Kept(OrgId, String),
    /// A link to a node: among all, or among those of this owner.
    NodeLink(Option<OrgId>, NodeId),
    /// A link to a reservation: of an org, by the part that it has.
    ReservationLink(OrgId, Part, ReservationId),
    /// A link to a GPU model.
    Model(GpuModelId),
    /// An audit record: of a reservation, a version, and a VM for one beside the version's own.
    Audit(ReservationId, Version, Option<VmId>),
}

impl Subject {
    /// Reads a primary key; `None` if it is the key of nothing.
    pub(crate) fn parse(pk: &str, sk: &str) -> Option<Self> {
        if pk == NODES {
            return Some(Subject::NodeLink(None, node_of_link(sk)?));
        }
        if pk == MODELS {
            let model = GpuModelId::parse(sk.strip_prefix("MODEL#")?);
            return Some(Subject::Model(model.ok()?));
        }
        let (kind, id) = pk.split_once('#')?;
        match (kind, sk) {
            ("ORG", _) => of_org(OrgId::parse(id).ok()?, sk),
            ("NODE", "NODE") => Some(Subject::Node(NodeId::parse(id).ok()?)),
            ("NODE", _) => {
                let reservation = ReservationId::parse(sk.strip_prefix("RES#")?).ok()?;
                Some(Subject::Reservation(NodeId::parse(id).ok()?, reservation))
            }
            ("VM", "VM") => Some(Subject::Vm(VmId::parse(id).ok()?)),
            ("IDEM", "IDEM") => {
                let (org, key) = id.split_once('#')?;
                Some(Subject::Kept(OrgId::parse(org).ok()?, key.to_owned()))
            }
            ("KEY", "KEY") => Some(Subject::ApiKey(id.to_owned())),
            ("AUDIT", _) => {
                let reservation = ReservationId::parse(id).ok()?;
                let (version, beside) = parse_audit(sk)?;
                Some(Subject::Audit(reservation, version, beside))
            }
            _ => None,
        }
    }
}

/// What a sort key is the key of in the partition of an org.
fn of_org(org: OrgId, sk: &str) -> Option<Subject> {
    for part in Part::ALL {
        if let Some(id) = sk.strip_prefix(part_prefix(part)) {
            let id = ReservationId::parse(id).ok()?;
            return Some(Subject::ReservationLink(org, part, id));
        }
    }
    if let Some(id) = sk.strip_prefix("KEY#") {
        return Some(Subject::KeyLink(org, KeyId::parse(id).ok()?));
    }
    Some(Subject::NodeLink(Some(org), node_of_link(sk)?))
}

fn node_of_link(sk: &str) -> Option<NodeId> {
    NodeId::parse(sk.strip_prefix("NODE#")?).ok()
}

fn parse_audit(sk: &str) -> Option<(Version, Option<VmId>)> {
    let rest = sk.strip_prefix("V#")?;
    let (digits, beside) = match rest.split_once("#VM#") {
        None => (rest, None),
        Some((digits, vm)) => (digits, Some(VmId::parse(vm).ok()?)),
    };
    let decimal = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    let version = Version::stored(digits.parse().ok().filter(|_| decimal)?)?;
    Some((version, beside))
}

/// Partition key of a node and its reservations.
pub(crate) fn node_pk(id: &NodeId) -> String {
    format!("NODE#{id}")
}

/// Partition key of what hangs on an org: links to nodes and reservations, entries of API keys.
pub(crate) fn of_org_pk(org: &OrgId) -> String {
    format!("ORG#{org}")
}

/// Partition key of the links to nodes: of all, or of those of this owner.
pub(crate) fn nodes_pk(owner: Option<&OrgId>) -> String {
    owner.map_or(NODES.to_owned(), of_org_pk)
}

/// Partition key of the links to GPU models.
pub(crate) fn models_pk() -> String {
    MODELS.to_owned()
}

/// First and last sort key of links to nodes after `after`.
pub(crate) fn nodes_after(after: Option<&NodeId>) -> (String, String) {
    range("NODE#", after.map(NodeId::as_str))
}

/// What the sort keys of links to reservations start with.
fn part_prefix(part: Part) -> &'static str {
    match part {
        Part::Audience => "RES#a#",
        Part::Manager => "RES#m#",
        Part::Owner => "RES#o#",
    }
}

/// First and last sort key of links to reservations after `after`.
pub(crate) fn org_reservations_after(
    part: Part,
    after: Option<&ReservationId>,
) -> (String, String) {
    range(part_prefix(part), after.map(ReservationId::as_str))
}

/// First and last sort key of links to models after `after`.
pub(crate) fn models_after(after: Option<&GpuModelId>) -> (String, String) {
    range("MODEL#", after.map(GpuModelId::as_str))
}

/// Partition key of a reservation's audit trail.
pub(crate) fn audit_pk(id: &ReservationId) -> String {
    format!("AUDIT#{id}")
}

/// Sort key of the record of a version: of one width, so that texts sort as versions do, and before
/// the records beside it.
pub(crate) fn audit_version(version: Version) -> String {
    format!("V#{:020}", version.get())
}

/// First and last sort key of a node's reservations after `after`.
pub(crate) fn reservations_after(after: Option<&ReservationId>) -> (String, String) {
    range("RES#", after.map(ReservationId::as_str))
}

/// First and last partition key of VMs after `after`: the sort key of [`ORG_INDEX`].
pub(crate) fn vms_after(after: Option<&VmId>) -> (String, String) {
    range("VM#", after.map(VmId::as_str))
}

/// First and last sort key of an org's API keys after `after`.
pub(crate) fn keys_after(after: Option<&KeyId>) -> (String, String) {
    range("KEY#", after.map(KeyId::as_str))
}

fn range(prefix: &str, after: Option<&str>) -> (String, String) {
    let from = match after {
        None => prefix.to_owned(),
        Some(after) => format!("{prefix}{after}{BEFORE_ALL_IDS}"),
    };
    (from, format!("{prefix}{PAST_ALL_IDS}"))
}

/// Partition key of [`DUE_INDEX`] for a reservation or a node, by its id.
pub(crate) fn due_pk(id: &str) -> String {
    due_shard_pk(shard(id, DUE_SHARDS))
}

/// Partition key of a shard of [`DUE_INDEX`].
pub(crate) fn due_shard_pk(shard: u64) -> String {
    format!("DUE#{shard}")
}

/// Partition key of [`MARKET_INDEX`] for a node of this model and its reservations.
pub(crate) fn market_pk(model: &GpuModelId, node: &NodeId) -> String {
    market_shard_pk(model, shard(node.as_str(), MARKET_SHARDS))
}

/// Partition key of a shard of [`MARKET_INDEX`].
pub(crate) fn market_shard_pk(model: &GpuModelId, shard: u64) -> String {
    format!("MARKET#{model}#{shard}")
}

/// Partition key of [`ORG_INDEX`] for the VMs of an org.
pub(crate) fn org_pk(org: &OrgId) -> String {
    format!("ORG#{org}#VM")
}

/// The shard of an id: FNV-1a, because it must be the same in every build for ever.
pub(crate) fn shard(id: &str, shards: u64) -> u64 {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) % shards
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "[A-Za-z0-9._:-]{1,128}";

    proptest! {
        #[test]
        fn every_key_reads_back_as_what_it_was_made_of(
            a in ID, b in ID, version in 1_u64.., beside in proptest::option::of(ID),
        ) {
            let version = Version::stored(version).unwrap();
            let beside = beside.map(|vm| VmId::parse(&vm).unwrap());
            let node = NodeId::parse(&a).unwrap();
            let reservation = ReservationId::parse(&b).unwrap();
            let vm = VmId::parse(&a).unwrap();
            let (org, model) = (OrgId::parse(&b).unwrap(), GpuModelId::parse(&b).unwrap());
            let key = KeyId::parse(&a).unwrap();
            let audit = Key::audit(&reservation, version, beside.as_ref());
            let cases = [
                (Key::node(&node), Subject::Node(node.clone())),
                (
                    Key::reservation(&node, &reservation),
                    Subject::Reservation(node.clone(), reservation.clone()),
                ),
                (Key::vm(&vm), Subject::Vm(vm.clone())),
                (Key::key_link(&org, &key), Subject::KeyLink(org.clone(), key.clone())),
                (audit, Subject::Audit(reservation.clone(), version, beside)),
                (
                    Key::kept(&org, &IdempotencyKey::parse("a/b+c=").unwrap()),
                    Subject::Kept(org.clone(), "a/b+c=".to_owned()),
                ),
                (Key::node_link(None, &node), Subject::NodeLink(None, node.clone())),
                (
                    Key::node_link(Some(&org), &node),
                    Subject::NodeLink(Some(org.clone()), node.clone()),
                ),
                (
                    Key::reservation_link(&org, Part::Manager, &reservation),
                    Subject::ReservationLink(org.clone(), Part::Manager, reservation.clone()),
                ),
                (Key::model(&model), Subject::Model(model.clone())),
            ];
            for (key, subject) in cases {
                prop_assert_eq!(Subject::parse(&key.pk, &key.sk), Some(subject));
            }
        }

        #[test]
        fn a_range_starts_right_after_the_id_it_names(a in ID, b in ID) {
            let (from, to) = reservations_after(Some(&ReservationId::parse(&a).unwrap()));
            let other = Key::reservation(
                &NodeId::parse("n").unwrap(),
                &ReservationId::parse(&b).unwrap(),
            );
            prop_assert_eq!(b > a, from <= other.sk && other.sk <= to);
        }

        #[test]
        fn audit_keys_sort_as_the_chain_runs(v in 1_u64..u64::MAX, vm in ID) {
            let id = ReservationId::parse("r").unwrap();
            let own = Key::audit(&id, Version::stored(v).unwrap(), None).sk;
            let vm = VmId::parse(&vm).unwrap();
            let beside = Key::audit(&id, Version::stored(v).unwrap(), Some(&vm)).sk;
            let next = Key::audit(&id, Version::stored(v + 1).unwrap(), None).sk;
            prop_assert!(own < beside && beside < next);
        }
    }

    #[test]
    fn keys_of_nothing_are_not_read() {
        for (pk, sk) in [
            ("NODE#n", "VM"),
            ("NODE#", "NODE"),
            ("VM#a#b", "VM"),
            ("AUDIT#r", "V#1"),
            ("AUDIT#r", "V#00000000000000000000"),
            ("ORG#o", "VM#v"),
            ("NODES", "NODE"),
            ("NODES", "NODE#"),
            ("NODES#", "NODE#n"),
            ("MODELS", "NODE#n"),
            ("ORG#", "NODE#n"),
            ("ORG#o", "NODE"),
            ("ORG#o", "RES#r"),
            ("ORG#o", "RES#x#r"),
            ("ORG#o", "RES#a#"),
            ("KEY#", "NOTHING"),
            ("X#r", "X"),
            ("", ""),
        ] {
            assert_eq!(Subject::parse(pk, sk), None, "{pk} {sk}");
        }
    }
}
