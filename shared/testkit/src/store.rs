//! All ports of the store under one name, for suites that run over any store.

use app::ports::{
    ChangeTopology, CondemnVm, CountAttempt, FindDue, FindMarket, ListKeys, ListModels, ListNodes,
    ListOrgReservations, ListReservations, ListVms, LoadCustodians, LoadKey, LoadNode,
    LoadReservations, LoadVms, LookAgain, MoveCustody, Once, PlaceVm, PutAudit, PutKey, PutNode,
    ReadAudit, ReclaimUnits, ReleaseUnits, RevokeKey, SettleVm,
};

/// The ports of keys.
pub trait Keyring: LoadKey + PutKey + ListKeys + RevokeKey {}
impl<T: LoadKey + PutKey + ListKeys + RevokeKey> Keyring for T {}

/// The ports of nodes.
pub trait Registry:
    LoadNode + PutNode + FindMarket + ListNodes + ListModels + LoadCustodians
{
}
impl<T> Registry for T where
    T: LoadNode + PutNode + FindMarket + ListNodes + ListModels + LoadCustodians
{
}

/// The ports of reservations and their audit trail.
pub trait Reservations:
    LoadReservations
    + ListReservations
    + ListOrgReservations
    + ReleaseUnits
    + ReclaimUnits
    + MoveCustody
    + ChangeTopology
    + FindDue
    + LookAgain
    + Once
    + ReadAudit
    + PutAudit
{
}
impl<T> Reservations for T where
    T: LoadReservations
        + ListReservations
        + ListOrgReservations
        + ReleaseUnits
        + ReclaimUnits
        + MoveCustody
        + ChangeTopology
        + FindDue
        + LookAgain
        + Once
        + ReadAudit
        + PutAudit
{
}

/// The ports of VMs.
pub trait Machines: LoadVms + ListVms + PlaceVm + SettleVm + CondemnVm + CountAttempt {}
impl<T: LoadVms + ListVms + PlaceVm + SettleVm + CondemnVm + CountAttempt> Machines for T {}

/// A whole store: every port that a use case may ask of one.
pub trait Store: Keyring + Registry + Reservations + Machines {}
impl<T: Keyring + Registry + Reservations + Machines> Store for T {}
