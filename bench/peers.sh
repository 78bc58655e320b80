#!/bin/sh
# Measures cadre beside another engine at the work of many small runs that each fetch and store something.
#
#   sh bench/peers.sh restate
#
# The peer is installed from npm into a folder that is removed at the end. Where it cannot be had, nothing is measured.
set -eu
[ "${1:-}" = restate ] || { echo 'usage: sh bench/peers.sh restate' >&2; exit 2; }
here="$(cd "$(dirname "$0")" && pwd)"
folder="$(mktemp -d "${TMPDIR:-/tmp}/cadre-peers.XXXXXX")"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent @restatedev/restate-server @restatedev/restate-sdk >/dev/null 2>&1 || { echo 'restate: not measured, npm could not install it'; exit 0; }
cp "$here/peers/restate-service.mjs" .
bun "$here/peers/restate.ts" "$folder"
