//! What sets functions off, and where it goes when they fail: the stream's mapping, the queue's,
//! the schedule, the queues, the bucket, the secrets.

use app::sweep::Rules;
use serde_json::{Value, json};

use crate::functions::timeout;
use crate::{Findings, expect, of_type, properties, sentence};

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    mappings(&mut found, template);
    schedule(&mut found, template);
    queues(&mut found, template);
    bucket(&mut found, template);
    secrets(&mut found, template);
    found
}

fn arn(resource: &str) -> Value {
    json!({ "Fn::GetAtt": [resource, "Arn"] })
}

/// A whole resource but for its tags.
fn is(found: &mut Findings, template: &Value, name: &str, kind: &str, expected: Value) {
    let mut there = template["Resources"][name].clone();
    there["Properties"] = properties(template, name);
    let expected = json!({ "Type": kind, "Properties": expected });
    expect(found, name, &there, &expected);
}

/// The same that stays when its stack goes.
fn stays(found: &mut Findings, template: &Value, name: &str, kind: &str, expected: Value) {
    let mut there = template["Resources"][name].clone();
    there["Properties"] = properties(template, name);
    let expected = json!({
        "Type": kind,
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": expected,
    });
    expect(found, name, &there, &expected);
}

fn mappings(found: &mut Findings, template: &Value) {
    let kind = "AWS::Lambda::EventSourceMapping";
    let there: Vec<&str> = of_type(template, kind).collect();
    if there != ["OrdersMapping", "StreamMapping"] {
        found.push(format!("mappings: are {there:?}"));
    }
    let stream = json!({
        "FunctionName": { "Ref": "StreamFunction" },
        "EventSourceArn": { "Fn::GetAtt": ["Table", "StreamArn"] },
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 100,
        "MaximumBatchingWindowInSeconds": 0,
        "MaximumRetryAttempts": 10,
        "MaximumRecordAgeInSeconds": 21_600,
        "BisectBatchOnFunctionError": true,
        "ParallelizationFactor": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "DestinationConfig": { "OnFailure": { "Destination": arn("FailedRecordsBucket") } },
        "MetricsConfig": { "Metrics": ["EventCount"] },
    });
    is(found, template, "StreamMapping", kind, stream);
    let orders = json!({
        "FunctionName": { "Ref": "TerminateFunction" },
        "EventSourceArn": arn("OrdersQueue"),
        "BatchSize": 10,
        "MaximumBatchingWindowInSeconds": 0,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": { "MaximumConcurrency": { "Ref": "TerminateConcurrency" } },
    });
    is(found, template, "OrdersMapping", kind, orders);
}

fn schedule(found: &mut Findings, template: &Value) {
    let schedule = json!({
        "Description": "Every minute, to the minute",
        "ScheduleExpression": "rate(1 minute)",
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "Target": {
            "Arn": arn("SweepFunction"),
            "RoleArn": arn("SweepScheduleRole"),
            "Input": "{}",
            "DeadLetterConfig": { "Arn": arn("SweepDeadLetterQueue") },
            "RetryPolicy": { "MaximumEventAgeInSeconds": 120, "MaximumRetryAttempts": 2 },
        },
    });
    is(
        found,
        template,
        "SweepSchedule",
        "AWS::Scheduler::Schedule",
        schedule,
    );
    let invoked = json!({
        "FunctionName": { "Ref": "SweepFunction" },
        "Qualifier": "$LATEST",
        "MaximumEventAgeInSeconds": 60,
        "MaximumRetryAttempts": 0,
    });
    let kind = "AWS::Lambda::EventInvokeConfig";
    is(found, template, "SweepInvokeConfig", kind, invoked);
    let statement = |sid: &str, action: &str, resource: &str| {
        let on = arn(resource);
        json!({ "Sid": sid, "Effect": "Allow", "Action": [action], "Resource": on })
    };
    let account = json!({ "Ref": "AWS::AccountId" });
    let role = json!({
        "AssumeRolePolicyDocument": { "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Principal": { "Service": "scheduler.amazonaws.com" },
            "Action": "sts:AssumeRole",
            "Condition": { "StringEquals": { "aws:SourceAccount": account } },
        }] },
        "Policies": [{ "PolicyName": "sweep-schedule", "PolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                statement("StartSweep", "lambda:InvokeFunction", "SweepFunction"),
                statement("KeepFailedStarts", "sqs:SendMessage", "SweepDeadLetterQueue"),
            ],
        } }],
    });
    is(found, template, "SweepScheduleRole", "AWS::IAM::Role", role);
}

fn queues(found: &mut Findings, template: &Value) {
    let kind = "AWS::SQS::Queue";
    let there: Vec<&str> = of_type(template, kind).collect();
    let all = [
        "OrdersDeadLetterQueue",
        "OrdersQueue",
        "SweepDeadLetterQueue",
    ];
    if there != all {
        found.push(format!("queues: are {there:?}"));
    }
    let orders = json!({
        "VisibilityTimeout": 6 * timeout("terminate"),
        "MessageRetentionPeriod": 345_600,
        "SqsManagedSseEnabled": true,
        "RedrivePolicy": {
            "deadLetterTargetArn": arn("OrdersDeadLetterQueue"),
            "maxReceiveCount": 10,
        },
    });
    is(found, template, "OrdersQueue", kind, orders);
    let dead = json!({ "MessageRetentionPeriod": 1_209_600, "SqsManagedSseEnabled": true });
    for name in ["OrdersDeadLetterQueue", "SweepDeadLetterQueue"] {
        is(found, template, name, kind, dead.clone());
    }
    let queues = [
        "OrdersQueue",
        "OrdersDeadLetterQueue",
        "SweepDeadLetterQueue",
    ];
    let policy = json!({
        "Queues": queues.map(|name| json!({ "Ref": name })),
        "PolicyDocument": { "Version": "2012-10-17", "Statement": [{
            "Sid": "EncryptedInTransit",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:SendMessage",
            "Resource": queues.map(arn),
            "Condition": { "Bool": { "aws:SecureTransport": "false" } },
        }] },
    });
    is(
        found,
        template,
        "QueuePolicy",
        "AWS::SQS::QueuePolicy",
        policy,
    );
}

fn bucket(found: &mut Findings, template: &Value) {
    let days = json!({ "Ref": "FailedRecordRetentionDays" });
    let bucket = json!({
        "BucketEncryption": { "ServerSideEncryptionConfiguration": [
            { "ServerSideEncryptionByDefault": { "SSEAlgorithm": "AES256" } },
        ] },
        "LifecycleConfiguration": { "Rules": [{
            "Id": "Expire",
            "Status": "Enabled",
            "ExpirationInDays": days,
            "NoncurrentVersionExpiration": { "NoncurrentDays": days },
            "AbortIncompleteMultipartUpload": { "DaysAfterInitiation": 1 },
        }] },
        "OwnershipControls": { "Rules": [{ "ObjectOwnership": "BucketOwnerEnforced" }] },
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": true,
            "BlockPublicPolicy": true,
            "IgnorePublicAcls": true,
            "RestrictPublicBuckets": true,
        },
        "VersioningConfiguration": { "Status": "Enabled" },
    });
    stays(
        found,
        template,
        "FailedRecordsBucket",
        "AWS::S3::Bucket",
        bucket,
    );
    let objects = json!({ "Fn::Sub": "${FailedRecordsBucket.Arn}/*" });
    let policy = json!({
        "Bucket": { "Ref": "FailedRecordsBucket" },
        "PolicyDocument": { "Version": "2012-10-17", "Statement": [
            {
                "Sid": "EncryptedInTransit",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [arn("FailedRecordsBucket"), objects],
                "Condition": { "Bool": { "aws:SecureTransport": "false" } },
            },
            {
                "Sid": "WrittenByTheMappingAlone",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:PutObject",
                "Resource": objects,
                "Condition": { "ArnNotEquals": { "aws:PrincipalArn": arn("StreamRole") } },
            },
        ] },
    });
    let kind = "AWS::S3::BucketPolicy";
    is(found, template, "FailedRecordsBucketPolicy", kind, policy);
}

fn secrets(found: &mut Findings, template: &Value) {
    let kind = "AWS::SecretsManager::Secret";
    for name in ["CursorSecret", "ControllerSecret"] {
        let told = &template["Resources"][name]["Properties"]["Description"];
        let secret = json!({
            "Description": sentence(told),
            "GenerateSecretString": { "PasswordLength": 48, "ExcludePunctuation": true },
        });
        stays(found, template, name, kind, secret);
    }
}

#[test]
fn a_sweep_has_time_to_end_by_itself() {
    let most = i64::try_from(timeout("sweep") * 1_000);
    assert!(most.is_ok_and(|most| most > Rules::default().run_ms_max + 10_000));
}
