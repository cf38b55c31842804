//! Every bound of the product, each with its reason.

/// Most characters of any id. Ids stand in keys, which the store limits to 1,024 bytes.
pub const ID_CHARS_MAX: usize = 128;

/// Most units one release or reclaim may name. The longest legal condition of a release stays under
/// the store's 4,096 bytes and 300 operators with this many.
pub const UNITS_PER_REQUEST_MAX: usize = 32;

/// Most units of one reservation: keeps its item within a few write units.
pub const UNITS_PER_RESERVATION_MAX: usize = 64;

/// Most units of one node. Today's largest machines have 16.
pub const UNITS_PER_NODE_MAX: usize = 128;

/// Most GPUs in one unit.
pub const GPUS_PER_UNIT_MAX: u16 = 64;

/// Most reservations that may be booked on one node at once. A report of new topology writes the
/// node and all of them in one transaction, which the store bounds at 100 items.
pub const BOOKINGS_PER_NODE_MAX: usize = 96;

/// Most units that all bookings of a node may name together: bounds the node item, which the store
/// limits to 400 KB, even where every id has its full length.
pub const BOOKED_UNITS_PER_NODE_MAX: usize = 1_024;

/// How far a reported `topologyGen` may lie ahead of the one known: one report that is far off must
/// not shut out all that come after it.
pub const TOPOLOGY_GEN_JUMP_MAX: u64 = 1_000_000;

/// Highest `topologyGen`: the highest whole number that every JSON parser reads as it is.
pub const TOPOLOGY_GEN_MAX: u64 = (1 << 53) - 1;

/// Most orgs in `allowedOrgIds` or `managingOrgIds`. Making a reservation writes a link for each of
/// them in the same transaction, which the store bounds at 100 items.
pub const ORGS_PER_LIST_MAX: usize = 32;

/// Most characters of a `reason` or a `contractRef`.
pub const REASON_CHARS_MAX: usize = 512;

/// Most characters of a VM's name.
pub const VM_NAME_CHARS_MAX: usize = 128;

/// Most characters of an API key's name.
pub const KEY_NAME_CHARS_MAX: usize = 128;

/// Longest life that may be asked for an API key, in seconds: ten years, which any clock can count.
/// A key that is to live on is made without an end.
pub const KEY_LIFE_SECONDS_MAX: u32 = 10 * 365 * 24 * 3_600;

/// Most bytes of a request body.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Most items on one page of a list.
pub const PAGE_ITEMS_MAX: usize = 100;

/// Items on a page when the caller does not say.
pub const PAGE_ITEMS_DEFAULT: usize = 50;

/// Candidates a placement tries before it says that there is no capacity.
pub const PLACEMENT_TRIES_MAX: usize = 5;

/// How long a termination order is given before the VM's machine is told again, in milliseconds.
pub const DRAIN_CHECK_AFTER_MS: i64 = 30_000;

/// How long a condemned VM may stay unconfirmed before it counts as stuck, in milliseconds, where
/// the platform's configuration does not say.
pub const STUCK_AFTER_MS: i64 = 600_000;

/// How long the last record of an audit trail may be on its way before it counts as lost, in
/// milliseconds: as long as the table's stream keeps a change. Then the trail is looked at.
pub const AUDIT_LOST_AFTER_MS: i64 = 86_400_000;

/// Most hints that a purchase by model takes from the market's index. It looks at no other nodes.
pub const MARKET_HINTS_MAX: usize = 100;

/// Nodes that a purchase by model reads at once, before it looks at more: most end with the first.
pub const MARKET_NODES_AT_ONCE: usize = 10;

/// Nodes on which a purchase by model writes boundaries of terms that have come, to free what is
/// due to be free; on the others it takes units as they are.
pub const MARKET_NODES_SETTLED_MAX: usize = 16;

/// Most reservations that a purchase by model reads with those nodes: one batch of the store.
pub const MARKET_RESERVATIONS_AT_ONCE: usize = 100;

/// Most GPU models on one page of what is free: each takes a handful of requests.
pub const AVAILABILITY_MODELS_MAX: usize = 10;

/// Most custodians that are counted for one model; where there are more, the counts are lower
/// bounds and say so.
pub const AVAILABILITY_CUSTODIANS_MAX: usize = 200;
