"""The emulated AWS: started on a free port of 127.0.0.1, given the packaged template, stopped."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
import zipfile
from pathlib import Path

import boto3
import yaml
from botocore.config import Config

REGION = "eu-central-1"
BUCKET = "packages"
STACK = "relet"


class Failed(Exception):
    """Something is not as it should be."""


def until(what, look, seconds=30, every=0.1):
    """Looks until it sees something that counts as true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(every)


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cloud:
    """The emulator's process and its clients."""

    def __init__(self, program, folder):
        self.folder = Path(folder)
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "ministack.log"
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        # What a program needs that works on this cloud with all rights.
        self.environment = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
        }
        settings = {
            **self.environment,
            "MINISTACK_REGION": REGION,
            # Every call is held against the policies of its role.
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
            "TMPDIR": str(self.folder / "tmp"),
        }
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.session = boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION
        )
        until("the emulator answers", self.answers, seconds=60)

    def answers(self):
        """Whether it takes requests."""
        if self.process.poll() is not None:
            raise Failed(f"the emulator ended:\n{self.log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"{self.endpoint}/_ministack/health", timeout=5):
                return True
        except OSError:
            return False

    def client(self, service, **credentials):
        """A client of one service, which tries each call once."""
        once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
        return self.session.client(
            service, endpoint_url=self.endpoint, config=once, **credentials
        )

    def logged(self, function, text, since_ms=0):
        """Whether a function has written a line with this text to its log."""
        pages = self.client("logs").get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{function}", startTime=since_ms
        )
        return any(text in event["message"] for page in pages for event in page["events"])

    def as_role_of(self, function, service):
        """A client of one service with the rights of a function's role; and the role's name."""
        settings = self.client("lambda").get_function_configuration(FunctionName=function)
        role = settings["Role"]
        given = self.client("sts").assume_role(RoleArn=role, RoleSessionName="test")
        credentials = given["Credentials"]
        client = self.client(
            service,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )
        return client, role.rsplit("/", 1)[1]

    def stop(self):
        """Ends the emulator and the functions that it runs: all are of its process group."""
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(timeout=10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Loader(yaml.SafeLoader):
    """Reads a template: short forms of functions become long ones."""


def long_form(loader, tag, node):
    """The long form of `!Ref x`, `!GetAtt a.b`, `!Sub …` and so on."""
    name = tag if tag in ("Ref", "Condition") else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        if tag == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {name: value}


Loader.add_multi_constructor("!", long_form)


def zipped(folder):
    """The zip that the build left beside a function's folder; nothing is zipped anew."""
    archive = folder.with_suffix(".zip")
    if not archive.is_file():
        raise Failed(f"{archive} is missing: run infra/build.sh first")
    content = archive.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        if read.namelist() != ["bootstrap"]:
            raise Failed(f"{archive} holds {read.namelist()}")
    return content


def without_tls(resource):
    """Takes out the statements by which what is not encrypted on its way is refused: on 127.0.0.1
    nothing is.
    """
    policy = resource["Properties"].get("PolicyDocument")
    if policy:
        kept = [s for s in policy["Statement"] if s.get("Sid") != "EncryptedInTransit"]
        policy["Statement"] = kept
        return bool(kept)
    return True


def package(cloud, path):
    """The template with its code in a bucket, as `sam package` leaves it; and its functions."""
    template = yaml.load(path.read_text(), Loader)
    s3 = cloud.client("s3")
    s3.create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    functions = {}
    resources = template["Resources"]
    template["Resources"] = {n: r for n, r in resources.items() if without_tls(r)}
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        folder = (path.parent / resource["Properties"]["CodeUri"]).resolve()
        key = f"{folder.name}.zip"
        s3.put_object(Bucket=BUCKET, Key=key, Body=zipped(folder))
        resource["Properties"]["CodeUri"] = {"Bucket": BUCKET, "Key": key}
        functions[folder.name] = name
    s3.put_object(Bucket=BUCKET, Key="template.json", Body=json.dumps(template).encode())
    return template, functions


def deploy(cloud, parameters):
    """Creates the stack out of the packaged template and waits for it; its resources by name."""
    stacks = cloud.client("cloudformation")
    stacks.create_stack(
        StackName=STACK,
        TemplateURL=f"{cloud.endpoint}/{BUCKET}/template.json",
        Parameters=[
            {"ParameterKey": name, "ParameterValue": value}
            for name, value in parameters.items()
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
    )

    def made():
        stack = stacks.describe_stacks(StackName=STACK)["Stacks"][0]
        status = stack["StackStatus"]
        if status == "CREATE_COMPLETE":
            return stack
        if status != "CREATE_IN_PROGRESS":
            events = stacks.describe_stack_events(StackName=STACK)["StackEvents"]
            failed = [
                f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}"
                for event in events
                if event["ResourceStatus"].endswith("FAILED")
            ]
            raise Failed(f"the stack is {status}: {failed}")
        return None

    stack = until("the stack is complete", made, seconds=120)
    resources = {}
    for page in stacks.get_paginator("list_stack_resources").paginate(StackName=STACK):
        for resource in page["StackResourceSummaries"]:
            resources[resource["LogicalResourceId"]] = resource
    outputs = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}
    return resources, outputs


def physical(resources, kind, pattern=""):
    """The physical id of the one resource of this type whose logical id fits the pattern."""
    found = [
        resource["PhysicalResourceId"]
        for name, resource in resources.items()
        if resource["ResourceType"] == kind and re.search(pattern, name)
    ]
    if len(found) != 1:
        raise Failed(f"{len(found)} resources of type {kind} fit {pattern!r}")
    return found[0]
