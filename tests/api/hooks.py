"""What the document cannot say of a good request, so that the rest of it is tried out.

A cursor is sealed by the platform: good ones come out of lists alone. The units of a node have each
an id of their own, where JSON Schema can only ask that no two are equal in all. And where optional
headers are combined, this version of the tool counts the number 0 among the good values of every
header, whatever its pattern is. And what a query and a body say of the same thing has to agree.

Bad cursors, repeated units and bad conditions are sent as bad data from here all the same, and by
the tests in Rust.
"""

import re

import schemathesis

handed_out = set()
condition = re.compile(r'\*|"[1-9][0-9]{0,17}"')


def is_meant_well(case):
    return case.meta is None or case.meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_meant_well(case):
        return
    sent = case.headers.get("If-Match") if case.headers else None
    if sent is not None and not condition.fullmatch(str(sent)):
        del case.headers["If-Match"]
    if isinstance(case.query, dict) and case.query.get("cursor") not in handed_out:
        case.query.pop("cursor", None)
    if isinstance(case.body, dict) and "dryRun" in case.body and isinstance(case.query, dict):
        case.query.pop("dryRun", None)
    if isinstance(case.body, dict) and isinstance(case.body.get("units"), list):
        by_id = {unit["id"]: unit for unit in case.body["units"] if isinstance(unit, dict)}
        case.body["units"] = list(by_id.values())


@schemathesis.hook
def after_call(context, case, response):
    try:
        cursor = response.json().get("nextCursor")
    except (ValueError, AttributeError):
        return
    if cursor is not None:
        handed_out.add(cursor)
