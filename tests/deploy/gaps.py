"""What the emulator cannot do, each with a probe. A gap that has closed ends the run: what stands in
for it here is then to give way to the real thing. `README.md` says what stands in.
"""

import json
import time

from botocore.exceptions import ClientError

from cloud import Failed, until
from poison import broken

ACCOUNT = "000000000000"


def stream_failures(cloud, names, story, path):
    """Whether the emulator's mapping goes by `batchItemFailures` of a stream."""
    functions, items = cloud.client("lambda"), cloud.client("dynamodb")
    began = int(time.time() * 1000)
    s3 = cloud.client("s3")
    functions.update_event_source_mapping(UUID=names["mapping"], Enabled=True)
    story.complete(path)
    kept = len(objects(s3, names["failures"]))
    item = broken("broken-again")
    items.put_item(TableName=names["table"], Item=item)

    # The function's own log tells that it was handed the record and did not finish it.
    refused = lambda: cloud.logged(names["stream"], "record not finished", began)
    until("the function has refused the record", refused, 60)
    items.delete_item(TableName=names["table"], Key={n: item[n] for n in ("PK", "SK")})
    story.call("owner", "POST", f"{path}/reclaim", {"unitIds": ["u4"]})
    story.complete(path)
    return len(objects(s3, names["failures"])) > kept


def objects(s3, bucket):
    """The objects of a bucket."""
    return s3.list_objects_v2(Bucket=bucket).get("Contents", [])


def embedded_metrics(cloud, _names, _story, _path):
    """Whether the emulator reads metrics out of the functions' logs, so that alarms could ring."""
    metrics = cloud.client("cloudwatch").list_metrics()["Metrics"]
    return any(metric["Namespace"].startswith("Relet") for metric in metrics)


def scaling_is_a_number(cloud, names):
    """Whether the emulator makes a number of the parameter that bounds the mapping of the queue. It
    is set by hand where not: with a text there, the emulator does not read the queue at all.
    """
    functions = cloud.client("lambda")
    # As it is sent: the SDK would make a number of it.
    sent = []
    heard = lambda response_dict, **_: sent.append(response_dict["body"])
    functions.meta.events.register("before-parse.lambda.GetEventSourceMapping", heard)
    functions.get_event_source_mapping(UUID=names["orders_mapping"])
    most = json.loads(sent[0])["ScalingConfig"]["MaximumConcurrency"]
    if isinstance(most, int):
        return True
    functions.update_event_source_mapping(
        UUID=names["orders_mapping"], ScalingConfig={"MaximumConcurrency": int(most)}
    )
    return False


def batches_need_no_more(cloud, names):
    """Whether a batch is sent by the right to send a message, as on AWS, where there is no right of
    its own for it. The roles of both senders are given what the emulator asks for where not.
    """
    closed = []
    for function in (names["stream"], names["sweep"]):
        sender, role = cloud.as_role_of(function, "sqs")
        try:
            # No message of the product's is an empty list of them: refused for that, or before.
            sender.send_message_batch(QueueUrl=names["orders"], Entries=[])
            closed.append(function)
        except ClientError as error:
            if "AccessDenied" not in error.response["Error"]["Code"]:
                closed.append(function)
        statement = {"Effect": "Allow", "Action": "sqs:SendMessageBatch", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        cloud.client("iam").put_role_policy(
            RoleName=role, PolicyName="batches-on-the-emulator", PolicyDocument=policy
        )
    return bool(closed)


def leading_keys(cloud, names):
    """Whether a role that may read keys alone is refused an item that is none."""
    reader, _ = cloud.as_role_of(names["release"], "dynamodb")
    other = {"PK": {"S": "VM#none"}, "SK": {"S": "VM"}}
    try:
        reader.get_item(TableName=names["table"], Key=other)
        return False
    except ClientError:
        return True


def session_is_its_role(cloud, names):
    """Whether a condition on `aws:PrincipalArn` sees the role behind a session, as on AWS. The
    bucket's policy is told the session where not.
    """
    writer, role = cloud.as_role_of(names["stream"], "s3")
    bucket, key = names["failures"], "aws/lambda/probe"
    try:
        writer.put_object(Bucket=bucket, Key=key, Body=b"")
        return True
    except ClientError:
        pass
    s3 = cloud.client("s3")
    policy = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    for statement in policy["Statement"]:
        allowed = statement.get("Condition", {}).get("ArnNotEquals")
        if allowed:
            session = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/test"
            allowed["aws:PrincipalArn"] = [allowed["aws:PrincipalArn"], session]
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    writer.put_object(Bucket=bucket, Key=key, Body=b"")
    return False


# By what is tried before the story, and what after it.
BEFORE = {
    "numbers of parameters stay text in a mapping's scaling": scaling_is_a_number,
    "batches of messages need a right that AWS does not know": batches_need_no_more,
    "conditions on leading keys are not looked at": leading_keys,
    "conditions on a principal see the session and not its role": session_is_its_role,
}
AFTER = {
    "mappings of streams ignore `batchItemFailures`": stream_failures,
    "metrics in logs are not read, so alarms never ring": embedded_metrics,
}


def probe(gaps, *on):
    """Tries each gap. One that has closed ends the run."""
    for what, works in gaps.items():
        if works(*on):
            raise Failed(f"no gap any more, so take it off the list: {what}")
        print(f"    gap, as known: {what}", flush=True)
