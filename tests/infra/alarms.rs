//! The alarms, each on a metric that is told, and the dashboard.

use std::collections::BTreeSet;

use metrics::{Kind, Metric, TABLE};
use serde_json::{Value, json};

use crate::{Findings, expect, folders, logical, of_type, properties};

/// The namespace of the platform's own metrics.
const OWN: &str = "Relet/${AWS::StackName}";

/// Metrics with an alarm that the dashboard does without.
const NOT_SHOWN: [&str; 2] = [
    "DestinationDeliveryFailures",
    "ApproximateAgeOfOldestMessage",
];

/// What an alarm is on, and when it goes off.
struct Alarm {
    name: String,
    namespace: &'static str,
    metric: &'static str,
    dimensions: Vec<(&'static str, Value)>,
    statistic: &'static str,
    period_secs: u64,
    threshold: u64,
    periods: u64,
    /// Whether somebody is woken.
    pages: bool,
    /// What a period without a value counts as.
    missing: &'static str,
    below: bool,
}

impl Alarm {
    fn on(name: &str, namespace: &'static str, metric: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            namespace,
            metric,
            dimensions: Vec::new(),
            statistic: "Sum",
            period_secs: 60,
            threshold: 0,
            periods: 1,
            pages: false,
            missing: "notBreaching",
            below: false,
        }
    }

    fn own(name: &str, metric: &'static str) -> Self {
        Self::on(name, OWN, metric)
    }

    fn of_function(name: &str, metric: &'static str, function: &str) -> Self {
        let function = json!({ "Ref": format!("{function}Function") });
        Self::on(name, "AWS/Lambda", metric).by("FunctionName", function)
    }

    fn of_queue(name: &str, metric: &'static str, queue: &str) -> Self {
        let queue = json!({ "Fn::GetAtt": [queue, "QueueName"] });
        let alarm = Self::on(name, "AWS/SQS", metric).by("QueueName", queue);
        alarm.statistic("Maximum")
    }

    fn of_table(name: &str, metric: &'static str) -> Self {
        let alarm = Self::on(name, "AWS/DynamoDB", metric);
        alarm
            .by("TableName", json!({ "Ref": "Table" }))
            .over(10, 300, 1)
    }

    fn by(mut self, dimension: &'static str, value: Value) -> Self {
        self.dimensions.push((dimension, value));
        self
    }

    fn statistic(mut self, statistic: &'static str) -> Self {
        self.statistic = statistic;
        self
    }

    fn over(mut self, threshold: u64, period_secs: u64, periods: u64) -> Self {
        self.threshold = threshold;
        self.period_secs = period_secs;
        self.periods = periods;
        self
    }

    fn under(self, threshold: u64, period_secs: u64, periods: u64) -> Self {
        let mut alarm = self.over(threshold, period_secs, periods);
        alarm.below = true;
        alarm
    }

    fn missing(mut self, missing: &'static str) -> Self {
        self.missing = missing;
        self
    }

    fn pages(mut self) -> Self {
        self.pages = true;
        self
    }

    /// Its properties, but for what it says.
    fn properties(&self, description: &Value) -> Value {
        let none = json!({ "Ref": "AWS::NoValue" });
        let told = json!({ "Fn::If": ["HasAlarmTopic", [{ "Ref": "AlarmTopicArn" }], none] });
        let told = if self.pages {
            json!({ "Fn::If": ["HasPageTopic", [{ "Ref": "PageTopicArn" }], told] })
        } else {
            told
        };
        let compared = match self.below {
            true => "LessThanThreshold",
            false => "GreaterThanThreshold",
        };
        let namespace = match self.namespace {
            OWN => json!({ "Fn::Sub": OWN }),
            other => json!(other),
        };
        let mut expected = json!({
            "AlarmName": { "Fn::Sub": format!("${{AWS::StackName}}-{}", self.name) },
            "AlarmDescription": description,
            "AlarmActions": told,
            "OKActions": told,
            "Namespace": namespace,
            "MetricName": self.metric,
            "Period": self.period_secs,
            "ComparisonOperator": compared,
            "Threshold": self.threshold,
            "EvaluationPeriods": self.periods,
            "DatapointsToAlarm": self.periods,
            "TreatMissingData": self.missing,
        });
        if !self.dimensions.is_empty() {
            let each = self.dimensions.iter();
            let each = each.map(|(name, value)| json!({ "Name": name, "Value": value }));
            expected["Dimensions"] = each.collect();
        }
        let statistic = match self.statistic.starts_with('p') {
            true => "ExtendedStatistic",
            false => "Statistic",
        };
        expected[statistic] = json!(self.statistic);
        expected
    }
}

fn alarms() -> Vec<Alarm> {
    let mapping = json!({ "Ref": "StreamMapping" });
    let api = json!({ "Ref": "HttpApi" });
    let visible = "ApproximateNumberOfMessagesVisible";
    let age = "ApproximateAgeOfOldestMessage";
    let delivered = "OnFailureDestinationDeliveredEventCount";
    let iterator = |name| Alarm::of_function(name, "IteratorAge", "Stream").statistic("Maximum");
    let mut alarms = vec![
        iterator("StreamAgeAlarm").over(60_000, 60, 3),
        iterator("StreamAgePageAlarm").over(900_000, 60, 1).pages(),
        // A mapping that reads tells so every minute, and be it 0.
        Alarm::on("StreamUnreadAlarm", "AWS/Lambda", "PolledEventCount")
            .by("EventSourceMappingUUID", mapping.clone())
            .statistic("SampleCount")
            .under(1, 300, 3)
            .missing("breaching")
            .pages(),
        Alarm::on("FailedRecordsAlarm", "AWS/Lambda", delivered)
            .by("EventSourceMappingUUID", mapping)
            .pages(),
        Alarm::of_function("LostRecordsAlarm", "DestinationDeliveryFailures", "Stream").pages(),
        Alarm::of_queue("OrdersDeadLetterAlarm", visible, "OrdersDeadLetterQueue").pages(),
        Alarm::of_queue("OrdersAgeAlarm", age, "OrdersQueue")
            .over(1_200, 60, 3)
            .pages(),
        Alarm::of_queue("SweepDeadLetterAlarm", visible, "SweepDeadLetterQueue"),
        Alarm::own("StuckAlarm", "stuck")
            .statistic("Maximum")
            .missing("ignore")
            .pages(),
        Alarm::own("AuditGapAlarm", "audit_gaps").pages(),
        Alarm::own("AuditTamperedAlarm", "audit_tampered").pages(),
        Alarm::own("OrdersNotCondemnedAlarm", "terminate_attempts")
            .by("outcome", json!("not_condemned"))
            .pages(),
        // Each run that ends tells it once.
        Alarm::own("SweepMissingAlarm", "due_lag")
            .statistic("SampleCount")
            .under(1, 300, 1)
            .missing("breaching")
            .pages(),
        Alarm::own("SweepLagAlarm", "due_lag")
            .statistic("Maximum")
            .over(300, 60, 5)
            .missing("ignore"),
        Alarm::own("SweepBacklogAlarm", "due_backlog")
            .statistic("Minimum")
            .over(0, 60, 15)
            .missing("ignore"),
        Alarm::own("ReclaimSlowAlarm", "reclaim_to_command")
            .statistic("p99")
            .over(10, 300, 3),
        Alarm::on("ApiErrorsAlarm", "AWS/ApiGateway", "5xx")
            .by("ApiId", api.clone())
            .over(5, 300, 1)
            .pages(),
        Alarm::on("ApiLatencyAlarm", "AWS/ApiGateway", "Latency")
            .by("ApiId", api)
            .statistic("p99")
            .over(1_000, 300, 3),
        Alarm::of_table("TableReadThrottlesAlarm", "ReadThrottleEvents"),
        Alarm::of_table("TableWriteThrottlesAlarm", "WriteThrottleEvents"),
    ];
    alarms.extend(for_each_of_many());
    alarms
}

/// Those that each index and each function has.
fn for_each_of_many() -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for index in dynamo::table::needed().indexes {
        let name = format!("{}IndexThrottlesAlarm", logical(&index.name));
        let alarm = Alarm::of_table(&name, "WriteThrottleEvents");
        alarms.push(alarm.by("GlobalSecondaryIndexName", json!(index.name)));
    }
    for folder in folders() {
        let function = logical(&folder);
        let (errors, throttles) = (
            format!("{function}ErrorsAlarm"),
            format!("{function}ThrottlesAlarm"),
        );
        alarms.push(Alarm::of_function(&errors, "Errors", &function).over(2, 300, 1));
        alarms.push(Alarm::of_function(&throttles, "Throttles", &function).over(0, 300, 2));
    }
    alarms
}

/// The names of all alarms.
pub(crate) fn names() -> BTreeSet<String> {
    alarms().into_iter().map(|alarm| alarm.name).collect()
}

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    let there = of_type(template, "AWS::CloudWatch::Alarm");
    let there: BTreeSet<String> = there.map(str::to_owned).collect();
    for odd in there.symmetric_difference(&names()) {
        found.push(format!("{odd}: is or is not an alarm"));
    }
    for alarm in alarms() {
        let name = &alarm.name;
        let there = properties(template, name);
        let told = &there["AlarmDescription"];
        let sound = |text: &&str| text.ends_with("; see docs/runbook.md") && text.len() > 40;
        let told = json!(told.as_str().filter(sound));
        let expected = alarm.properties(&told);
        expect(&mut found, name, &there, &expected);
        if told.is_null() {
            found.push(format!("{name}: says nothing, or not where to look"));
        }
    }
    dashboard(&mut found, template);
    found
}

/// Whether the product tells this metric with these dimensions; of such a kind, where it matters.
fn is_told(metric: &Metric, name: &str, dimensions: &[&str], statistic: &str) -> bool {
    let fits = match metric.kind {
        Kind::Histogram => statistic.starts_with('p'),
        Kind::Counter => statistic == "Sum",
        Kind::Gauge => ["Maximum", "Minimum", "SampleCount"].contains(&statistic),
    };
    metric.name == name && metric.dimensions == dimensions && fits
}

fn known(name: &str, dimensions: &[&str], statistic: &str) -> bool {
    TABLE
        .iter()
        .any(|metric| is_told(metric, name, dimensions, statistic))
}

/// The widgets are such as the service shows, and name what there is.
fn dashboard(found: &mut Findings, template: &Value) {
    let there = properties(template, "Dashboard");
    let body = there["DashboardBody"]["Fn::Sub"]
        .as_str()
        .unwrap_or_default();
    let expected = json!({
        "DashboardName": { "Fn::Sub": "${AWS::StackName}-${AWS::Region}" },
        "DashboardBody": { "Fn::Sub": body },
    });
    expect(found, "Dashboard", &there, &expected);
    let kind = &template["Resources"]["Dashboard"]["Type"];
    expect(
        found,
        "Dashboard.Type",
        kind,
        &json!("AWS::CloudWatch::Dashboard"),
    );
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let widgets = body["widgets"].as_array();
    let mut shown = BTreeSet::new();
    for widget in widgets.into_iter().flatten() {
        let properties = &widget["properties"];
        for line in properties["metrics"].as_array().into_iter().flatten() {
            let members = line.as_array().map_or(&[][..], Vec::as_slice);
            let statistic = members.last().and_then(|last| last["stat"].as_str());
            let statistic = statistic.or(properties["stat"].as_str());
            let parts: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
            let [namespace, metric, dimensions @ ..] = parts.as_slice() else {
                found.push(format!("Dashboard: {line} is no metric"));
                continue;
            };
            shown.insert((*metric).to_owned());
            let names: Vec<&str> = dimensions.iter().step_by(2).copied().collect();
            let own = *namespace == OWN;
            if own && !known(metric, &names, statistic.unwrap_or_default()) {
                found.push(format!("Dashboard: {line} is told by nobody in this form"));
            }
        }
    }
    for alarm in alarms() {
        if !shown.contains(alarm.metric) && !NOT_SHOWN.contains(&alarm.metric) {
            found.push(format!("Dashboard: does not show {}", alarm.metric));
        }
    }
}

#[test]
fn every_alarm_on_the_product_s_own_metrics_is_on_one_that_it_tells_in_that_form() {
    for alarm in alarms().into_iter().filter(|alarm| alarm.namespace == OWN) {
        let dimensions: Vec<&str> = alarm.dimensions.iter().map(|(name, _)| *name).collect();
        assert!(
            known(alarm.metric, &dimensions, alarm.statistic),
            "{}",
            alarm.name
        );
    }
}
