// What Confluence answers at least, as far as the wiki agent reads it. Anything else comes from another service.
// https://developer.atlassian.com/cloud/confluence/rest/v2/intro/

import { Type } from '../../schema/type.ts'

const Text = Type.String({ minLength: 1 })
const OptionalText = Type.Optional(Type.String())
const Digits = Type.String({ pattern: '^[0-9]+$' })
const Stored = Type.Object({ value: Type.String() })
const Links = Type.Optional(Type.Object({ webui: OptionalText, base: OptionalText, next: OptionalText }))

const page = {
  id: Digits,
  status: Text,
  title: Type.String(),
  version: Type.Object({ number: Type.Integer(), message: Type.Optional(Type.Union([Type.String(), Type.Null()])) }),
  _links: Links,
}

const Attachment = Type.Object({
  id: Text,
  title: Text,
  fileSize: Type.Integer({ minimum: 0 }),
  version: page.version,
  _links: Links,
})

export const Reply = {
  account: Type.Object({ displayName: Text }),
  users: Type.Object({ results: Type.Array(Type.Object({ accountId: Text, displayName: OptionalText })) }),
  /** A page that was written: its content is not read. */
  page: Type.Object(page),
  /** A page whose content was asked for. */
  pageWithBody: Type.Object({ ...page, body: Type.Object({ storage: Stored }) }),
  pages: Type.Object({
    results: Type.Array(Type.Object({ ...page, body: Type.Optional(Type.Object({ storage: Type.Optional(Stored) })) })),
    _links: Links,
  }),
  spaces: Type.Object({ results: Type.Array(Type.Object({ id: Digits, key: Text })) }),
  found: Type.Object({ results: Type.Array(Type.Object({ title: Type.String() })), _links: Links }),
  attachments: Type.Object({ results: Type.Array(Attachment), _links: Links }),
  /** Uploads go through the older API, whose attachments have other fields. */
  uploaded: Type.Object({ results: Type.Array(Type.Object({ id: Text, title: Text }), { minItems: 1 }) }),
}
