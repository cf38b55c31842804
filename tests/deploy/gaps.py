"""What the emulator cannot do, each with a probe. A gap that has closed ends the run: what stands in
for it here is then to give way to the real thing. `README.md` says what stands in.
"""

import time

from cloud import until
from poison import broken


def stream_failures(cloud, names, story, path):
    """Whether the emulator's mapping goes by `batchItemFailures` of a stream."""
    functions, items = cloud.client("lambda"), cloud.client("dynamodb")
    s3 = cloud.client("s3")
    functions.update_event_source_mapping(UUID=names["mapping"], Enabled=True)
    story.complete(path)
    kept = len(objects(s3, names["failures"]))
    item = broken("broken-again")
    items.put_item(TableName=names["table"], Item=item)

    # The function's own log tells that it was handed the record and did not finish it.
    logs = cloud.client("logs")
    group = f"/aws/lambda/{names['stream']}"
    until(
        "the function has refused the record",
        lambda: any(
            "record not finished" in event["message"]
            for event in logs.filter_log_events(
                logGroupName=group, filterPattern='"record not finished"', startTime=names["began"]
            )["events"]
        ),
        60,
    )
    items.delete_item(TableName=names["table"], Key={n: item[n] for n in ("PK", "SK")})
    story.call("owner", "POST", f"{path}/reclaim", {"unitIds": ["u4"]})
    story.complete(path)
    return len(objects(s3, names["failures"])) > kept


def objects(s3, bucket):
    """The objects of a bucket."""
    return s3.list_objects_v2(Bucket=bucket).get("Contents", [])


def embedded_metrics(cloud, _names, _story, _path):
    """Whether the emulator reads metrics out of the functions' logs, so that alarms could ring."""
    metrics = cloud.client("cloudwatch").list_metrics(Namespace="Relet")["Metrics"]
    return bool(metrics)


GAPS = {
    "stream mappings ignore `batchItemFailures`": stream_failures,
    "metrics in logs are not read, so alarms never ring": embedded_metrics,
}


def probe(cloud, names, story, path):
    """Tries each gap; returns those that have closed."""
    names = {**names, "began": int(time.time() * 1000)}
    closed = []
    for what, works in GAPS.items():
        if works(cloud, names, story, path):
            closed.append(what)
        else:
            print(f"    gap, as known: {what}", flush=True)
    return closed
