// Published teams, as they are passed between hub, daemon and command line.

import type { Static } from 'typebox'
import { named, nullable } from '../schema.ts'
import { Type } from '../type.ts'
import { AnyText, Time } from './parts.ts'

export const PackageFile = Type.Object({ path: AnyText, content_base64: AnyText })
export type PackageFile = Static<typeof PackageFile>

/** Who signed a version (lib/wire/package-signature.ts): a public key, and its signature in base64url. */
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

export const Download = named('team_files', {
  name: AnyText,
  version: AnyText,
  sha256: AnyText,
  files: Type.Array(PackageFile),
  signature: Signature,
})
export type Download = Static<typeof Download>
