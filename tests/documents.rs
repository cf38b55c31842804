//! What documents repeat of the code: the routes of each function, and the codes of errors.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use http_api::FunctionName;
use http_api::routes::ROUTES;
use relet_tests::root;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The parts of a line that stand between back-ticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// What a row of triggers names in full.
fn triggers(document: &str) -> BTreeSet<String> {
    let mut rows = document
        .lines()
        .filter(|line| line.starts_with("| trigger |"));
    let row = rows.next().expect("a row of triggers");
    quoted(row).map(str::to_owned).collect()
}

#[test]
fn every_function_names_the_routes_that_it_answers_and_no_others() {
    for function in FunctionName::ALL {
        let document = text(&format!("functions/{}/README.md", function.as_str()));
        let routes = ROUTES.iter().filter(|route| route.function == function);
        let mut expected: BTreeSet<String> = routes
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        if function == FunctionName::DEFAULT {
            expected.insert("$default".to_owned());
        }
        assert_eq!(triggers(&document), expected, "{function:?}");
    }
}

/// Statuses with the codes that stand behind them in a source: `404, "not_found"`.
fn codes(source: &str) -> BTreeSet<(u16, String)> {
    let dense: String = source.chars().filter(|c| !c.is_whitespace()).collect();
    let mut found = BTreeSet::new();
    for (at, _) in dense.match_indices(",\"") {
        let (before, behind) = (&dense[..at], &dense[at + 2..]);
        let status = before
            .get(at.saturating_sub(3)..)
            .and_then(|digits| digits.parse().ok())
            .filter(|status| (400..600).contains(status));
        let code = behind.split('"').next().unwrap_or_default();
        let snake = |c: char| c.is_ascii_lowercase() || c == '_';
        if let Some(status) = status.filter(|_| !code.is_empty() && code.chars().all(snake)) {
            found.insert((status, code.to_owned()));
        }
    }
    found
}

#[test]
fn the_list_of_errors_has_every_code_with_its_status_and_no_others() {
    let mut expected = codes(&text("shared/http/src/problem.rs"));
    expected.extend(codes(&text("shared/http/src/request.rs")));
    assert!(expected.len() > 20, "not where the codes are: {expected:?}");
    let document = text("docs/errors.md");
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let status = cells.next()?.parse().ok()?;
        let code = quoted(cells.next()?).next()?;
        Some((status, code.to_owned()))
    });
    assert_eq!(rows.collect::<BTreeSet<(u16, String)>>(), expected);
}

#[test]
fn codes_are_found_over_lines_and_nothing_else_is_one() {
    let source =
        "f(409, \"a_b\"); Self::new(\n    503,\n    \"c\",\n); g(7, \"d\"); h(404, \"E f\")";
    let expected = [(409, "a_b".to_owned()), (503, "c".to_owned())];
    assert_eq!(codes(source), expected.into());
}
