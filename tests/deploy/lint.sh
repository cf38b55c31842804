#!/usr/bin/env bash
# The template by two tools that know what CloudFormation and SAM take: no error, no warning.
# Needs Python with pip; the tools go into target/, at these versions.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=target/lint-tools
wanted='cfn-lint==1.58.0 aws-sam-cli==1.170.0'
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    # shellcheck disable=SC2086 # two words are two packages
    "$tools/bin/pip" install --quiet --disable-pip-version-check $wanted
    printf '%s' "$wanted" >"$tools/installed"
fi

export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1
echo "cfn-lint"
# Warnings fail it as errors do.
"$tools/bin/cfn-lint" --non-zero-exit-code informational infra/template.yaml
echo "sam validate --lint"
"$tools/bin/sam" validate --lint --template infra/template.yaml

# What the tools say of a template that is wrong, so that their silence means something.
broken=target/lint-tools/broken.yaml
sed 's/BillingMode: PAY_PER_REQUEST/BillingMode: PAY_PER_REQEST/' infra/template.yaml >"$broken"
if "$tools/bin/cfn-lint" "$broken" >/dev/null 2>&1; then
    echo "cfn-lint takes a template that is wrong" >&2
    exit 1
fi
rm -f "$broken"

# The table alone, as a restore begins with it.
infra/table.sh >target/lint-tools/table.yaml
"$tools/bin/cfn-lint" --non-zero-exit-code informational target/lint-tools/table.yaml
echo "the template is sound"
