"""The demo story, told by the Python client that is generated from docs/openapi.json.

Called as: story.py FOLDER-OF-THE-CLIENT READY-FILE DOCUMENT. Every answer is looked at; the first
that is not as it should be ends the story with an error.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from relet_client import AuthenticatedClient, Client, models  # noqa: E402
from relet_client.api.api_keys import create_key, get_caller, list_keys, revoke_key  # noqa: E402
from relet_client.api.capacity import end_reservation, reclaim_units, release_units  # noqa: E402
from relet_client.api.market import (  # noqa: E402
    create_vm,
    get_vm,
    list_availability,
    list_vms,
    terminate_vm,
)
from relet_client.api.nodes import (  # noqa: E402
    confirm_termination,
    get_node,
    list_nodes,
    list_terminations,
    put_node,
    put_topology,
)
from relet_client.api.reservations import (  # noqa: E402
    create_reservation,
    get_reservation,
    list_audit_records,
    list_org_reservations,
    list_reservations,
    reaffirm_reservation,
)
from relet_client.api.service import get_api_document, get_health  # noqa: E402

READY = json.loads(Path(sys.argv[2]).read_text())
DOCUMENT = json.loads(Path(sys.argv[3]).read_text())
NODE = "client-node"


def caller(key):
    return AuthenticatedClient(base_url=READY["url"], token=key, raise_on_unexpected_status=True)


def good(answer, status=200):
    """The body of an answer that had to go well."""
    assert answer.status_code == status, (answer.status_code, answer.content)
    assert answer.headers["x-request-id"], answer.headers
    return answer.parsed


def refused(answer, status, code):
    """The body of an answer that had to be this refusal."""
    assert answer.status_code == status, (answer.status_code, answer.content)
    assert isinstance(answer.parsed, models.Problem), answer.parsed
    assert answer.parsed.code == code, answer.parsed
    assert answer.parsed.error, answer.parsed
    assert answer.parsed.request_id == answer.headers["x-request-id"], answer.parsed
    return answer.parsed


def until(what, holds):
    """Waits for what the platform does by itself, 20 seconds at most."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, f"not within 20 seconds: {what}"
        time.sleep(0.05)


operator, owner, manager, tenant, buyer = (
    caller(READY["keys"][part]) for part in ("operator", "owner", "manager", "audience", "stranger")
)


def org_of(client):
    return good(get_caller.sync_detailed(client=client)).organization_id


OWNER, MANAGER, TENANT, BUYER = (org_of(each) for each in (owner, manager, tenant, buyer))


def buy(client, org, tier, unit, reservation=None):
    body = models.CreateVmRequest(name="overnight", tier=tier, node_id=NODE, unit_ids=[unit])
    if reservation is not None:
        body.reservation_id = reservation
    return create_vm.sync_detailed(org, client=client, body=body)


def states():
    node = good(get_node.sync_detailed(NODE, client=owner))
    return {unit.id: unit.state.value for unit in node.units}


def service():
    nobody = Client(base_url=READY["url"])
    assert good(get_health.sync_detailed(client=nobody)).status.value == "ok"
    served = get_api_document.sync_detailed(client=nobody)
    assert json.loads(served.content) == DOCUMENT, "the document that is served is another"
    refused(get_caller.sync_detailed(client=caller("or_mistyped")), 401, "unauthorized")


def register():
    units = [models.UnitRequest(id=f"u{number}", gpus=1) for number in range(4)]
    body = models.PutNodeRequest(owner_org_id=OWNER, gpu_model_id="h100-sxm", units=units)
    refused(put_node.sync_detailed(NODE, client=owner, body=body), 404, "not_found")
    node = good(put_node.sync_detailed(NODE, client=operator, body=body))
    assert [unit.state.value for unit in node.units] == ["free"] * 4, node
    listed = good(list_nodes.sync_detailed(client=owner))
    assert NODE in [each.id for each in listed.items], listed


def reserve():
    body = models.CreateReservationRequest(
        reserved_unit_ids=["u0", "u1", "u2"],
        allowed_org_ids=[TENANT],
        managing_org_ids=[MANAGER],
        reason="hush: third quarter",
    )
    made = [
        good(create_reservation.sync_detailed(
            NODE, client=owner, body=body, idempotency_key="story-1"
        ))
        for _ in range(2)
    ]
    assert made[0] == made[1], "the same call again is answered the same way"
    taken = create_reservation.sync_detailed(NODE, client=owner, body=body)
    refused(taken, 409, "units_already_reserved")
    reservation = made[0]
    assert reservation.status is models.ReservationStatus.ACTIVE, reservation
    assert states() == {"u0": "reserved", "u1": "reserved", "u2": "reserved", "u3": "free"}
    page = good(list_reservations.sync_detailed(
        NODE, client=manager, status=models.ReservationStatus.ACTIVE
    ))
    assert [each.id for each in page.items] == [reservation.id], page
    page = good(list_org_reservations.sync_detailed(TENANT, client=tenant, limit=1))
    assert len(page.items) == 1, page
    return reservation.id


def sell(reservation):
    good(buy(tenant, TENANT, models.Tier.VERIFIED, "u0", reservation))
    refused(buy(buyer, BUYER, models.Tier.SPOT, "u1"), 409, "insufficient_capacity")
    body = models.ReleaseUnitsRequest(unit_ids=["u1", "u2"], reason="hush: idle")
    hidden = release_units.sync_detailed(NODE, reservation, client=buyer, body=body)
    refused(hidden, 404, "not_found")
    done = good(release_units.sync_detailed(NODE, reservation, client=manager, body=body))
    assert done.released_unit_ids == ["u1", "u2"], done
    refused(buy(buyer, BUYER, models.Tier.COMMUNITY, "u1"), 409, "insufficient_capacity")
    vm = good(buy(buyer, BUYER, models.Tier.SPOT, "u1"))
    assert vm.unit_ids == ["u1"] and vm.tier is models.Tier.SPOT, vm
    page = good(list_availability.sync_detailed(client=buyer, tier=models.Tier.SPOT))
    free = {each.gpu_model_id: each.free.spot.gpus for each in page.items}
    assert free["h100-sxm"] >= 2, free
    listed = good(list_vms.sync_detailed(BUYER, client=buyer))
    assert vm.id in [each.id for each in listed.items], listed
    return vm.id


def take_back(reservation, vm):
    body = models.ReclaimUnitsRequest(unit_ids=["u1"], reason="hush: needed")
    plan = reclaim_units.sync_detailed(NODE, reservation, client=manager, body=body, dry_run=True)
    assert good(plan).would_terminate == [vm], plan
    seen = plan.headers["etag"]
    done = good(reclaim_units.sync_detailed(
        NODE, reservation, client=manager, body=body, if_match=seen
    ))
    assert done.terminated == [vm] and done.released_unit_ids == ["u2"], done
    stale = reclaim_units.sync_detailed(
        NODE, reservation, client=manager, body=body, if_match=seen
    )
    assert refused(stale, 412, "version_mismatch").current.released_unit_ids == ["u2"], stale
    # Until it is confirmed; the platform may have been first, since no machine here has the VM.
    waiting = good(list_terminations.sync_detailed(NODE, client=owner)).items
    assert [each.vm_id for each in waiting] in ([vm], []), waiting
    nothing = models.EmptyRequest()
    gone = good(confirm_termination.sync_detailed(NODE, vm, client=owner, body=nothing))
    assert gone.status is models.VmStatus.TERMINATED, gone
    assert good(get_vm.sync_detailed(vm, client=buyer)).status is models.VmStatus.TERMINATED
    good(buy(tenant, TENANT, models.Tier.VERIFIED, "u1", reservation))


def trail(reservation):
    records, cursor = [], {}
    while True:
        page = good(list_audit_records.sync_detailed(
            NODE, reservation, client=manager, limit=2, **cursor
        ))
        records.extend(page.items)
        if not page.next_cursor:
            return records
        cursor = {"cursor": page.next_cursor}


def audit(reservation, vm):
    wanted = {"reservation.created", "reservation.released", "reservation.reclaimed",
              "vm.condemned", "vm.terminated"}
    until(
        "the audit trail is whole",
        lambda: wanted <= {record.type_.value for record in trail(reservation)},
    )
    records = trail(reservation)
    links = [record.prev_hash for record in records[1:]]
    assert links == [record.hash_ for record in records[:-1]], "the chain is broken"
    condemned = [record for record in records if record.type_.value == "vm.condemned"]
    assert [record.vm_ids for record in condemned] == [[vm]], condemned


def end(reservation):
    body = models.ReasonRequest(reason="hush: over")
    hidden = end_reservation.sync_detailed(NODE, reservation, client=owner, body=body)
    refused(hidden, 404, "not_found")
    done = good(end_reservation.sync_detailed(NODE, reservation, client=operator, body=body))
    assert done.status is models.ReservationStatus.CANCELLED, done
    seen = good(get_reservation.sync_detailed(NODE, reservation, client=tenant))
    assert seen.status is models.ReservationStatus.CANCELLED, seen
    not_now = reaffirm_reservation.sync_detailed(NODE, reservation, client=operator, body=body)
    refused(not_now, 409, "reservation_not_in_review")
    assert set(states().values()) == {"free"}, states()
    running = good(list_vms.sync_detailed(TENANT, client=tenant)).items
    assert {vm.status for vm in running} == {models.VmStatus.RUNNING}, "workloads keep running"
    for vm in running:
        stopped = good(terminate_vm.sync_detailed(
            vm.id, client=tenant, body=models.EmptyRequest()
        ))
        assert stopped.status is models.VmStatus.TERMINATING, stopped
    units = [models.UnitRequest(id="u0", gpus=8)]
    report = models.PutTopologyRequest(topology_gen=2, units=units)
    node = good(put_topology.sync_detailed(NODE, client=owner, body=report))
    assert node.topology_gen == 2, node


def keys():
    body = models.CreateKeyRequest(name="build server", role=models.Role.VIEWER)
    made = good(create_key.sync_detailed(TENANT, client=operator, body=body))
    fresh = caller(made.key)
    assert good(get_caller.sync_detailed(client=fresh)).role is models.Role.VIEWER
    listed = good(list_keys.sync_detailed(TENANT, client=operator)).items
    assert made.id in [key.id for key in listed], listed
    refused(create_key.sync_detailed(TENANT, client=fresh, body=body), 403, "forbidden")
    good(revoke_key.sync_detailed(TENANT, made.id, client=operator), 204)
    until(
        "the revoked key is out of use",
        lambda: get_caller.sync_detailed(client=fresh).status_code == 401,
    )


service()
register()
reservation = reserve()
vm = sell(reservation)
take_back(reservation, vm)
audit(reservation, vm)
end(reservation)
keys()
print("every call of the story, all 26 operations, was answered as it should be")
