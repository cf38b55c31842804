"""A record that the stream function cannot read: it ends up whole in the failure destination, and
what comes after it goes on. Orders that nobody can read end up in the queue's dead letters.
"""

import json

from botocore.exceptions import ClientError

from api import check
from cloud import Failed, until
from mapping import Mapping

NODE = "gpu-node-1"


def broken(name):
    """An item that says it is a reservation and is none."""
    return {
        "PK": {"S": f"NODE#{NODE}"},
        "SK": {"S": f"RES#{name}"},
        "type": {"S": "reservation"},
        "ver": {"S": "not a number"},
    }


def stop_mapping(functions, mapping):
    """Stops the emulator's own mapping and waits until it has stopped."""
    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    stopped = lambda: functions.get_event_source_mapping(UUID=mapping)["State"] == "Disabled"
    until("the mapping has stopped", stopped)


def stream(cloud, names, story, path):
    """A record that cannot be read, between two changes of a reservation."""
    table, mapping = names["table"], names["mapping"]
    print("  A record that nobody can read comes between two releases.", flush=True)
    functions, items = cloud.client("lambda"), cloud.client("dynamodb")
    story.complete(path)
    stop_mapping(functions, mapping)
    settings = functions.get_event_source_mapping(UUID=mapping)
    writer, _ = cloud.as_role_of(names["stream"], "s3")
    played = Mapping(cloud, settings, writer)
    story.call("owner", "POST", f"{path}/release", {"unitIds": ["u4"]})
    items.put_item(TableName=table, Item=broken("broken"))
    story.call("owner", "POST", f"{path}/release", {"unitIds": ["u5"]})
    items.delete_item(TableName=table, Key={n: broken("broken")[n] for n in ("PK", "SK")})
    records = played.records()
    check("the stream has all of them, in order", len(records) >= 4)
    other, _ = cloud.as_role_of(names["release"], "s3")
    try:
        other.put_object(Bucket=names["failures"], Key="aws/lambda/forged", Body=b"")
        raise Failed("any function may write into the failure destination")
    except ClientError as error:
        check("no other role writes there", error.response["Error"]["Code"] == "AccessDenied")
    played.deliver(records)

    check("one record was given up", len(played.destined) == 1)
    bucket, key = played.destined[0]
    stored = cloud.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    told = json.loads(stored)
    kept = json.loads(told["payload"])["Records"]
    check("it is the broken one, whole", [r["dynamodb"]["NewImage"] for r in kept] == [broken("broken")])
    check("exactly as it was in the stream", kept[0] in records)
    story.complete(path)
    tries = played.settings["MaximumRetryAttempts"]
    check(f"after {tries} more tries", told["requestContext"]["approximateInvokeCount"] == tries + 1)

    # Everything once more, as after a lost checkpoint: the same trail.
    before = story.trail(path)
    played.deliver([record for record in records if record not in kept])
    check("what comes twice changes nothing", story.trail(path) == before)


def orders(cloud, queue, dead_letters):
    """A message that is no order. The time that it stays hidden is cut short for the test."""
    print("  A message that is no order comes into the queue.", flush=True)
    sqs = cloud.client("sqs")
    named = ["RedrivePolicy", "VisibilityTimeout"]
    settings = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=named)["Attributes"]
    policy = json.loads(settings["RedrivePolicy"])
    check("the queue has dead letters", policy["deadLetterTargetArn"].endswith(dead_letters.rsplit("/", 1)[1]))
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "0"})
    sqs.send_message(QueueUrl=queue, MessageBody="no order")

    def arrived():
        found = sqs.receive_message(QueueUrl=dead_letters, WaitTimeSeconds=1)
        return found.get("Messages")

    found = until("the message is among the dead letters", arrived, 90)
    check("as it was sent", [message["Body"] for message in found] == ["no order"])
    restored = {"VisibilityTimeout": settings["VisibilityTimeout"]}
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=restored)
