"""The story of the demo, told over the deployed HTTP API: every step goes through the gateway's
routes, the functions' own binaries, the table, its stream, the queue and the schedule.
"""

import json
import subprocess
from datetime import datetime, timedelta, timezone

from api import check
from cloud import Failed, until

NODE = "gpu-node-1"
# How long the short reservation lasts, in seconds.
SHORT_S = 5
# The schedule's minute, and time to spare.
SWEEP_MAX_S = 150
ORGS = {
    "owner": ("acme-datacenter", {"role": "owner"}),
    "manager": ("neocloud", {"role": "admin"}),
    "audience": ("tenant-labs", {"role": "member"}),
    "stranger": ("spot-buyer", {"role": "member"}),
    "agent": ("acme-datacenter", {"permissions": ["node.agent"]}),
}


class Story:
    """The story so far."""

    def __init__(self, api, controller, operator, verifier, folder):
        self.api = api
        self.controller = controller
        self.keys = {"operator": operator}
        self.verifier = verifier
        self.folder = folder

    def step(self, what):
        """Tells what comes next."""
        print(f"  {what}", flush=True)

    def call(self, by, method, path, body=None, status=200, **headers):
        """A call by somebody, to be answered with this status."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.expect(status, method, path, self.keys.get(by), body, sent)

    def doors(self):
        """What anyone may ask, and what nobody may."""
        self.step("The API is there, and closed to whoever has no key.")
        check("it says that it is well", self.call(None, "GET", "/healthz").status == 200)
        refused = self.call(None, "GET", "/v1/nodes", status=401)
        check("no key, no answer", refused["code"] == "unauthorized")
        nothing = self.call("operator", "GET", "/v1/no-such-thing", status=404)
        check("what no route matches is answered by a function", nothing["code"] == "not_found")
        who = self.call("operator", "GET", "/v1/whoami")
        check("the first key is an operator's", who["platformOperator"] is True)

    def people(self):
        """Everybody's key, made by the operator over the API."""
        self.step("The operator makes a key for each part.")
        for part, (org, grant) in ORGS.items():
            path = f"/v1/orgs/{org}/api-keys/create"
            made = self.call("operator", "POST", path, {"name": part, **grant})
            self.keys[part] = made["key"]
        who = self.call("manager", "GET", "/v1/whoami")
        check("the manager's key is of its org", who["organizationId"] == "neocloud")

    def reserve(self):
        """A node with eight units, four of them reserved; the reservation's path."""
        self.step("A node is registered; its owner reserves half of it.")
        node = {
            "ownerOrgId": ORGS["owner"][0],
            "gpuModelId": "h100-sxm",
            "units": [{"id": f"u{n}", "gpus": 1} for n in range(8)],
        }
        put = self.call("operator", "PUT", f"/v1/nodes/{NODE}", node)
        check("eight units, all free", [u["state"] for u in put["units"]] == ["free"] * 8)
        wanted = {
            "reservedUnitIds": ["u0", "u1", "u2", "u3"],
            "allowedOrgIds": [ORGS["audience"][0]],
            "managingOrgIds": [ORGS["manager"][0]],
        }
        path = f"/v1/nodes/{NODE}/reservations"
        made = self.call("owner", "POST", path, wanted)
        check("the reservation is active", made["status"] == "active")
        hidden = self.call("stranger", "GET", f"{path}/{made['id']}", status=404)
        check("a stranger does not see it", hidden["code"] == "not_found")
        return f"{path}/{made['id']}"

    def release(self, path):
        """Two units on the market; the same call again is the same call."""
        self.step("The manager releases two units to spot, and sends the call twice.")
        body = {"unitIds": ["u2", "u3"], "reason": "hush: idle until Monday"}
        first = self.call("manager", "POST", f"{path}/release", body, idempotency_key="r-1")
        again = self.call("manager", "POST", f"{path}/release", body, idempotency_key="r-1")
        check("both are on the market", first["releasedUnitIds"] == ["u2", "u3"])
        check("once, not twice", again.headers["etag"] == first.headers["etag"])

    def buy(self):
        """Two spot VMs of a stranger, one of which will take its time to stop."""
        self.step("A stranger buys them at spot; at another tier there is nothing to buy.")
        path = f"/v1/orgs/{ORGS['stranger'][0]}/vms/create"
        wanted = {"name": "batch", "tier": "spot", "nodeId": NODE}
        quick = self.call("stranger", "POST", path, {**wanted, "unitIds": ["u2"]})["id"]
        slow = self.call("stranger", "POST", path, {**wanted, "unitIds": ["u3"]})["id"]
        kept = {**wanted, "tier": "community", "unitIds": ["u2"]}
        refused = self.call("stranger", "POST", path, kept, status=409)
        check("not at the community tier", refused["code"] == "insufficient_capacity")
        self.controller.slow.add(slow)
        return quick, slow

    def reclaim(self, path, quick, slow):
        """The plan, then the reclaim, then what the stream, the queue and the machine make of it."""
        self.step("The manager reclaims both, by the plan of a dry run.")
        body = {"unitIds": ["u2", "u3"]}
        plan = self.call("manager", "POST", f"{path}/reclaim", {**body, "dryRun": True})
        check("the plan names both VMs", plan["wouldTerminate"] == sorted([quick, slow]))
        done = self.call(
            "manager", "POST", f"{path}/reclaim", body, if_match=plan.headers["etag"]
        )
        check("both are condemned", done["terminated"] == sorted([quick, slow]))

        self.step("Stream, queue and controller do the rest.")
        until("the controller is told of both", lambda: all(map(self.controller.told, (quick, slow))))
        check("every order was signed and understood", self.controller.refused == [])
        until("the VM that is gone is confirmed", lambda: self.vm(quick) == "terminated")
        check("the other is not", self.vm(slow) == "terminating")
        listed = self.call("agent", "GET", f"/v1/nodes/{NODE}/terminations")
        check("its node still hears of it", [i["vmId"] for i in listed["items"]] == [slow])
        taken = self.call(
            "audience",
            "POST",
            f"/v1/orgs/{ORGS['audience'][0]}/vms/create",
            {"name": "early", "tier": "community", "nodeId": NODE, "unitIds": ["u3"]},
            status=409,
        )
        check("its unit is nobody's yet", taken["code"] in ("unit_draining", "insufficient_capacity"))
        path = f"/v1/nodes/{NODE}/terminations/{slow}/confirm"
        self.call("agent", "POST", path)
        self.controller.slow.discard(slow)
        check("the node's agent confirms it", self.vm(slow) == "terminated")

    def vm(self, vm):
        """The state of a VM."""
        return self.call("stranger", "GET", f"/v1/vms/{vm}")["status"]

    def place(self, path):
        """The tenant on its own units again."""
        self.step("The tenant places its own workload on the units.")
        body = {
            "name": "launch",
            "tier": "community",
            "nodeId": NODE,
            "unitIds": ["u2", "u3"],
            "reservationId": path.rsplit("/", 1)[1],
        }
        made = self.call("audience", "POST", f"/v1/orgs/{ORGS['audience'][0]}/vms/create", body)
        check("it has them", made["unitIds"] == ["u2", "u3"])
        return made["id"]

    def end(self, path, tenant):
        """The reservation's end, which stops no workload."""
        self.step("The operator ends the reservation; the workload runs on.")
        self.call("manager", "POST", f"{path}/end", status=404)
        ended = self.call("operator", "POST", f"{path}/end", {"reason": "hush: moved"})
        check("it is cancelled", ended["status"] == "cancelled")
        vm = self.call("audience", "GET", f"/v1/vms/{tenant}")
        check("the workload runs", vm["status"] == "running")

    def version(self, path):
        """The version that a reservation is at."""
        etag = self.call("owner", "GET", path).headers["etag"]
        return int(etag.strip('"'))

    def trail(self, path):
        """A reservation's audit trail, all pages of it."""
        items, page = [], f"{path}/audit?limit=3"
        while True:
            body = self.call("owner", "GET", page).body
            items += body["items"]
            if not body.get("nextCursor"):
                return items
            page = f"{path}/audit?limit=3&cursor={body['nextCursor']}"

    def complete(self, path, wanted=()):
        """Waits until the trail has every version, then has it verified record by record."""
        version = self.version(path)

        def whole():
            trail = self.trail(path)
            own = {item["version"] for item in trail}
            types = {item["type"] for item in trail}
            return own == set(range(1, version + 1)) and types.issuperset(wanted) and trail

        trail = until(f"the trail of {path} has {version} versions and {wanted}", whole, 60)
        file = self.folder / "trail.json"
        file.write_text(json.dumps(trail))
        verify = [self.verifier, "audit", "verify", "--file", file, "--at-version", str(version)]
        told = subprocess.run(verify, capture_output=True, text=True, check=False)
        if told.returncode:
            raise Failed(f"{told.stdout}{told.stderr}")
        check(f"the audit trail is complete: {told.stdout.strip()}", "gap" not in told.stdout)
        return trail

    def short(self):
        """A reservation whose term is soon over."""
        self.step("A short reservation is made.")
        ends = datetime.now(timezone.utc) + timedelta(seconds=SHORT_S)
        wanted = {
            "reservedUnitIds": ["u6", "u7"],
            "allowedOrgIds": [ORGS["audience"][0]],
            "endsAt": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        made = self.call("owner", "POST", f"/v1/nodes/{NODE}/reservations", wanted)
        return f"/v1/nodes/{NODE}/reservations/{made['id']}"

    def expired(self, path):
        """Its end, which nothing but the sweep writes down here."""
        self.step("The schedule runs the sweep, which ends the short reservation.")
        ended = lambda: [r for r in self.trail(path) if r["type"] == "reservation.expired"]
        record = until("the sweep has written the end", ended, SWEEP_MAX_S, every=1)[0]
        check("the platform itself ended it", record["actor"]["kind"] == "system")
