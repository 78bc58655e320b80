// The hub's tables of published teams: what their team.yml declares, and their files.

import type { JsonObject } from '../../lib/json.ts'
import type { ConcurrencyKey } from '../../lib/wire/concurrency.ts'
import type { Environments, Needs } from '../../lib/wire/needs.ts'
import type { Field } from '../../lib/wire/records/forms.ts'
import type { PackageFile, PackageSignature } from '../../lib/wire/records/packages.ts'
import type { TriggerKind } from '../../lib/wire/records/trigger-words.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

export function packageTables(
  { table, index, uniqueIndex, primaryKey, id, text, int, json }: Columns,
  { scopes }: ReturnType<typeof tenancyTables>,
) {
  const packages = table(
    'packages',
    {
      id: id(),
      scope_id: int()
        .notNull()
        .references(() => scopes.id, { onDelete: 'cascade' }),
      /** `@scope/name`. */
      name: text().notNull(),
      version: text().notNull(),
      description: text().notNull(),
      sha256: text().notNull(),
      bytes: int().notNull(),
      signature: json<PackageSignature>(),
      /** What its team.yml declares, for checking a dispatch. */
      inputs: json<Field[]>().notNull(),
      /** What its teams need of a daemon; null: it was published before that was stored. */
      needs: json<Needs>(),
      /** The key that its runs hold; null: none. */
      concurrency: json<ConcurrencyKey>(),
      /** In which environments its team.yml says that it runs; null: in any, or it was published before that was stored. */
      environments: json<Environments>(),
      /** What its team.yml says may start it; null: it was published before that was stored, and says nothing. */
      triggers: json<{ name: string; kind: TriggerKind; fields: JsonObject }[]>(),
      /** The names of the packages that it calls. */
      dependencies: json<string[]>().notNull(),
      published_at: int().notNull(),
      published_by: int().notNull(),
      yanked_at: int(),
    },
    row => [uniqueIndex('packages_version').on(row.name, row.version), index('packages_scope').on(row.scope_id)],
  )

  const packageFiles = table(
    'package_files',
    {
      package_id: int()
        .notNull()
        .references(() => packages.id, { onDelete: 'cascade' }),
      files: json<PackageFile[]>().notNull(),
    },
    row => [primaryKey({ columns: [row.package_id] })],
  )

  return { packages, packageFiles }
}
