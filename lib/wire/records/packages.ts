// Published teams, as they are passed between hub, daemon and command line.

import type { Static } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AnyText, NullableText, Time } from '../parts.ts'

export const PackageFile = Type.Object({ path: AnyText, content_base64: AnyText })
export type PackageFile = Static<typeof PackageFile>

/** Who signed a version (lib/wire/records/package-signature.ts): a public key, and its signature in base64url. */
export const PackageSignature = named('team_signature', { key: AnyText, value: AnyText })
export type PackageSignature = Static<typeof PackageSignature>

/** Absent: the hub is older than signatures. Null: the version was published without one. */
const Signature = Type.Optional(nullable(PackageSignature))

export const Package = named('team', {
  id: Type.Integer(),
  name: AnyText,
  version: AnyText,
  description: AnyText,
  sha256: AnyText,
  bytes: Type.Integer(),
  signature: Signature,
  published_at: Time,
  yanked_at: nullable(Time),
})
export type Package = Static<typeof Package>

export const Download = named('team_files', {
  name: AnyText,
  version: AnyText,
  sha256: AnyText,
  files: Type.Array(PackageFile),
  signature: Signature,
})
export type Download = Static<typeof Download>

/** What a version reaches, with everything that it calls. */
export const Reach = named('team_reach', {
  writes: Type.Array(
    Type.Object({
      /** Names of the phases from the top team down. */
      phase: Type.Array(AnyText),
      agent: AnyText,
      action: NullableText,
      effect: Type.Enum(['idempotent', 'once', 'by entry']),
      /** The `url` of the entry as written. Where other agents write is in the settings of daemons. */
      to: NullableText,
      /** Settings that authorize it. */
      credentials: Type.Array(AnyText),
    }),
  ),
  commands: Type.Array(AnyText, { description: 'Commands of `exec`, each after the names of its phases' }),
  hosts: Type.Array(AnyText, { description: 'Origins of the URLs that are written out in its files' }),
  secrets: Type.Array(AnyText, { description: 'Named secrets that it uses' }),
  accounts: Type.Optional(
    Type.Array(AnyText, {
      description: 'Agents in whose name it sends requests of http, to any path of their systems',
    }),
  ),
  unseen: Type.Optional(
    Type.Array(AnyText, {
      description: 'Characters in its files that are not seen as what they are, with their places',
    }),
  ),
  agents: Type.Array(Type.Object({ name: AnyText, credentials: Type.Array(AnyText) })),
})
export type Reach = Static<typeof Reach>
