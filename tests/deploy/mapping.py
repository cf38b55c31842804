"""An event source mapping of a stream, by the rules that AWS documents for it.

The emulator's own mapping takes every answer of a function for a success: it does not look into
`batchItemFailures`, nor try again, nor divide a batch, nor write to a bucket. So a record that
cannot be handled is played here instead: the settings are those of the deployed mapping, the
records those of the table's stream, the function the deployed binary, the bucket the deployed
failure destination. What is done here and not by the emulator is the service's part alone.
"""

import json
import uuid
from datetime import datetime, timezone

from cloud import Failed


class Mapping:
    """The deployed mapping, from the end of the stream as it is now. `writer` is the bucket's client
    with the rights of the function's role, which a mapping writes by.
    """

    def __init__(self, cloud, settings, writer):
        self.functions = cloud.client("lambda")
        self.streams = cloud.client("dynamodbstreams")
        self.s3 = writer
        self.settings = settings
        self.stream = settings["EventSourceArn"]
        needed = {
            "BisectBatchOnFunctionError": True,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        }
        for name, value in needed.items():
            if settings.get(name) != value:
                raise Failed(f"the mapping's {name} is {settings.get(name)}, not {value}")
        if settings.get("MaximumRetryAttempts", -1) < 1:
            raise Failed("the mapping tries for ever: a record that cannot be handled blocks it")
        shards = self.streams.describe_stream(StreamArn=self.stream)["StreamDescription"]["Shards"]
        self.shard = shards[-1]["ShardId"]
        start = self.streams.get_shard_iterator(
            StreamArn=self.stream, ShardId=self.shard, ShardIteratorType="LATEST"
        )
        self.iterator = start["ShardIterator"]
        self.invocations = 0
        self.destined = []

    def records(self):
        """All records since the last call, as the service hands them to a function."""
        found = []
        while True:
            page = self.streams.get_records(ShardIterator=self.iterator, Limit=100)
            self.iterator = page["NextShardIterator"]
            if not page["Records"]:
                return found
            found += [self.event(record) for record in page["Records"]]

    def event(self, record):
        """A record of the stream as part of an event."""
        stream = dict(record["dynamodb"])
        stream["ApproximateCreationDateTime"] = stream["ApproximateCreationDateTime"].timestamp()
        return {**record, "dynamodb": stream, "eventSourceARN": self.stream}

    def deliver(self, records):
        """Delivers all of them, in batches; what fails for good goes to the destination."""
        size = self.settings["BatchSize"]
        for start in range(0, len(records), size):
            self.batch(records[start : start + size])

    def batch(self, records):
        """One batch: tried again from the record that failed, divided there, given up by one."""
        tries = 0
        while records:
            left = self.invoke(records)
            if not left:
                return
            if len(left) < len(records):
                # The checkpoint has moved: what is done is done.
                records = left
                tries = 0
                continue
            if len(records) > 1:
                # Dividing uses up no tries. The half with the failure goes first, in order.
                half = len(records) // 2
                self.batch(records[:half])
                records = records[half:]
                tries = 0
                continue
            tries += 1
            if tries > self.settings["MaximumRetryAttempts"]:
                self.give_up(records, tries)
                return

    def invoke(self, records):
        """Hands records to the function; those that are left, in order."""
        self.invocations += 1
        reply = self.functions.invoke(
            FunctionName=self.settings["FunctionArn"],
            Payload=json.dumps({"Records": records}).encode(),
        )
        body = json.loads(reply["Payload"].read() or b"null")
        if reply.get("FunctionError"):
            return records
        failed = {item["itemIdentifier"] for item in body["batchItemFailures"]}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        if not failed.issubset(numbers):
            return records
        for place, number in enumerate(numbers):
            if number in failed:
                return records[place:]
        return []

    def give_up(self, records, tries):
        """Writes a record of the failure into the bucket, the event within it, as the service does."""
        now = datetime.now(timezone.utc)
        first, last = records[0]["dynamodb"], records[-1]["dynamodb"]
        told = {
            "version": "1.0",
            "timestamp": now.isoformat(),
            "requestContext": {
                "requestId": str(uuid.uuid4()),
                "functionArn": self.settings["FunctionArn"],
                "condition": "RetryAttemptsExhausted",
                "approximateInvokeCount": tries,
            },
            "DDBStreamBatchInfo": {
                "shardId": self.shard,
                "startSequenceNumber": first["SequenceNumber"],
                "endSequenceNumber": last["SequenceNumber"],
                "batchSize": len(records),
                "streamArn": self.stream,
            },
            "payload": json.dumps({"Records": records}),
        }
        arn = self.settings["DestinationConfig"]["OnFailure"]["Destination"]
        bucket = arn.rsplit(":", 1)[1]
        day = now.strftime("%Y/%m/%d/%Y-%m-%dT%H.%M.%S")
        key = f"aws/lambda/{self.settings['UUID']}/{self.shard}/{day}-{uuid.uuid4()}"
        self.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(told).encode())
        self.destined.append((bucket, key))
