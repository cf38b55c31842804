#!/usr/bin/env bash
# Prints a template of the table alone, out of template.yaml: what a stack is begun with around a
# table that was restored. See "Restore from a backup" in README.md.
set -euo pipefail
cd "$(dirname "$0")"

cat <<'HEAD'
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  Stage:
    Type: String
    Default: production
  TableKmsKey:
    Type: String
    Default: owned
Conditions:
  HasManagedTableKey: !Equals [!Ref TableKmsKey, managed]
Resources:
HEAD
sed -n '/^  Table:$/,/^  # /p' template.yaml | sed '$d'
