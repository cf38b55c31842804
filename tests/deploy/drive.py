"""Deploys the template on an emulated AWS and plays the story over its HTTP API.

    drive.py <path of ministack> <path of relet> <folder for what is left behind>
"""

import subprocess
import sys
import traceback
from pathlib import Path

import contract
import gaps
import poison
from api import Api, check
from cloud import STACK, Cloud, Failed, deploy, package, physical
from controller import Controller
from story import NODE, ORGS, Story

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "infra" / "template.yaml"


def names_of(resources):
    """What the stack's parts are called."""
    return {
        "table": physical(resources, "AWS::DynamoDB::Table"),
        "mapping": physical(resources, "AWS::Lambda::EventSourceMapping", "^Stream"),
        "orders_mapping": physical(resources, "AWS::Lambda::EventSourceMapping", "^Orders"),
        "failures": physical(resources, "AWS::S3::Bucket"),
        **{name: f"{STACK}-{name}" for name in ("release", "stream", "sweep")},
        "orders": physical(resources, "AWS::SQS::Queue", "^OrdersQueue$"),
        "dead_letters": physical(resources, "AWS::SQS::Queue", "^OrdersDead"),
    }


def first_key(cloud, table, relet):
    """The first operator's key, made as a platform engineer makes it."""
    command = [relet, "operator-key", "--table", table, "--org", "relet"]
    made = subprocess.run(
        command, env=cloud.environment, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise Failed(f"no first key: {made.stderr}")
    return made.stdout.strip()


def play(cloud, controller, relet, folder):
    """All of it."""
    print("The template, deployed", flush=True)
    _, functions = package(cloud, TEMPLATE)
    resources, _ = deploy(cloud, {"Stage": "test", "VmControllerUrl": controller.url})
    check(f"{len(resources)} resources, {len(functions)} functions", len(functions) == 10)
    names = names_of(resources)
    gaps.probe(gaps.BEFORE, cloud, names)
    secrets = cloud.client("secretsmanager")
    secret = physical(resources, "AWS::SecretsManager::Secret", "^Controller")
    controller.secret = secrets.get_secret_value(SecretId=secret)["SecretString"].encode()

    operator = first_key(cloud, names["table"], relet)
    api = Api(cloud.port, physical(resources, "AWS::ApiGatewayV2::Api"))
    story = Story(api, controller, operator, relet, folder)
    story.doors()
    story.people()
    path = story.reserve()
    short = story.short()
    story.release(path)
    quick, slow = story.buy()
    story.reclaim(path, quick, slow)
    story.complete(path, {"reservation.reclaimed", "vm.condemned", "vm.terminated"})
    tenant = story.place(path)
    story.end(path, tenant)
    story.complete(path, {"reservation.ended"})
    story.expired(short)
    check("the sweep tells of it", cloud.logged(names["sweep"], '"expired":1'))

    wanted = {"reservedUnitIds": ["u4", "u5"], "allowedOrgIds": [ORGS["audience"][0]]}
    made = story.call("owner", "POST", f"/v1/nodes/{NODE}/reservations", wanted)
    other = f"/v1/nodes/{NODE}/reservations/{made['id']}"
    poison.stream(cloud, names, story, other)
    poison.orders(cloud, names["orders"], names["dead_letters"])
    gaps.probe(gaps.AFTER, cloud, names, story, other)


def main():
    """Starts what is needed, plays, and stops it again whatever came of it."""
    program, relet, folder = (Path(argument).resolve() for argument in sys.argv[1:4])
    folder.mkdir(parents=True, exist_ok=True)
    cloud = Cloud(program, folder)
    controller = Controller("")
    try:
        contract.run(cloud.endpoint, ROOT)
        play(cloud, controller, relet, folder)
    except Exception:
        traceback.print_exc()
        log = cloud.log.read_text(errors="replace").splitlines()
        print("The emulator's last words:", *log[-60:], sep="\n", file=sys.stderr)
        return 1
    finally:
        controller.stop()
        cloud.stop()
    print("Deployed, played, and taken down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
