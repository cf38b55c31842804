//! The first key of a deployed platform, made at its table.

use std::fs::OpenOptions;
use std::process::{Output, Stdio};

use app::auth::authenticate;
use app::ports::{Clock as _, ListKeys as _};
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use runtime::SystemClock;
use testkit::engine::{Engine, TABLE};

use crate::support::relet;

/// Runs `relet operator-key` against the table of an engine.
async fn operator_key(engine: &Engine, args: &[&str]) -> Output {
    operator_key_to(engine, args, Stdio::piped()).await
}

async fn operator_key_to(engine: &Engine, args: &[&str], stdout: Stdio) -> Output {
    let mut command = relet();
    command.arg("operator-key").args(args);
    for (name, value) in [
        ("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint()),
        ("AWS_REGION", "local"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ] {
        command.env(name, value);
    }
    command.stdout(stdout);
    let ran = tokio::task::spawn_blocking(move || command.output()).await;
    ran.unwrap().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// All that the table holds.
async fn held(engine: &Engine) -> ScanOutput {
    let scan = engine.client().scan().table_name(TABLE);
    scan.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_s_key_is_made_at_the_table_and_its_secret_is_printed_once() {
    let engine = Engine::start().await;
    let args = ["--table", TABLE, "--org", "relet", "--expires-in-days", "7"];
    let output = operator_key(&engine, &args).await;
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    let [secret] = stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("one line: {stdout}");
    };
    let (header, now) = (format!("Bearer {secret}"), SystemClock.now());
    let known = authenticate(&engine.store(), Some(&header), now).await;
    let caller = known.unwrap().caller;
    assert!(caller.operator && caller.org.as_str() == "relet");
    assert!(
        stderr.contains(caller.key.as_str()),
        "it says which: {stderr}"
    );
    assert!(!stderr.contains(secret), "and not the secret");
    let held = held(&engine).await;
    assert!(
        !format!("{held:?}").contains(&secret[4..]),
        "nor does the table"
    );

    let again = texts(&operator_key(&engine, &args).await).0;
    assert_ne!(again, stdout, "another one");
    let org = "relet".parse().unwrap();
    let listed = engine.store().list_keys(&org, None, 10).await.unwrap();
    assert_eq!(listed.items.len(), 2, "both are listed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_printed_is_a_failure_that_names_it() {
    let engine = Engine::start().await;
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["--table", TABLE, "--org", "relet"];
    let output = operator_key_to(&engine, &args, full.into()).await;
    let stderr = texts(&output).1;
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let org = "relet".parse().unwrap();
    let made = engine.store().list_keys(&org, None, 10).await.unwrap();
    let id = made.items[0].id.as_str();
    assert!(
        stderr.contains(&format!("revoke {id} of relet")),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_table_or_with_a_wrong_flag_no_key_is_made() {
    let engine = Engine::start().await;
    for (args, said) in [
        (&["--table", "elsewhere", "--org", "relet"][..], "elsewhere"),
        (&["--table", TABLE, "--org", "a b"], "--org"),
        (&["--table", TABLE], "--org"),
        (&["--table", TABLE, "--org", "relet", "--name", ""], "name"),
        (
            &["--table", TABLE, "--org", "relet", "--expires-in-days", "0"],
            "--expires-in-days",
        ),
    ] {
        let output = operator_key(&engine, args).await;
        let (stdout, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stdout.is_empty(), "{stdout}");
        let last = stderr.lines().last().unwrap();
        assert!(
            last.starts_with("relet: ") && last.contains(said),
            "{stderr}"
        );
    }
    let held = held(&engine).await;
    assert_eq!(held.count(), 0);
}
