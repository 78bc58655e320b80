#!/bin/sh
# Writes the migrations of the hub's tables that are missing, one for SQLite and one for PostgreSQL. Without a name for
# them it must find nothing to write.
set -eu
name=${1:-}
before=$(git status --porcelain -- db/hub/migrations)
for dialect in sqlite postgres; do
  DIALECT=$dialect bunx drizzle-kit generate --config db/hub/drizzle-kit.config.ts --name "${name:-unnamed}"
  # The next migration is made from the newest snapshot alone.
  ls -r "db/hub/migrations/$dialect/meta/"*_snapshot.json | tail -n +2 | xargs rm -f
done
if [ -z "$name" ] && [ "$(git status --porcelain -- db/hub/migrations)" != "$before" ]; then
  echo 'the tables have no migration: remove the unnamed ones, and say what they add: bun run generate run_note' >&2
  exit 1
fi
