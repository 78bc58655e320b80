// What Jira answers at least, as far as the issues agent reads it. Anything else comes from another service.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import { Type } from '../../schema/type.ts'

const Text = Type.String({ minLength: 1 })
const Named = Type.Object({ name: Text })

const Document = Type.Object({
  type: Type.Literal('doc'),
  content: Type.Optional(Type.Array(Type.Object({ type: Text }))),
})
const Field = Type.Optional(Type.Union([Document, Type.Null()]))

/** An issue that another one links to. */
const Linked = Type.Optional(Type.Object({ key: Text, fields: Type.Optional(Type.Object({})) }))
const Link = Type.Object({
  type: Type.Object({ inward: Type.String(), outward: Type.String() }),
  inwardIssue: Linked,
  outwardIssue: Linked,
})
const Attachment = Type.Object({
  // A number in Jira's own examples, and a string on real sites.
  id: Type.Union([Text, Type.Integer()]),
  filename: Text,
  size: Type.Integer({ minimum: 0 }),
})

const fields = {
  summary: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  status: Type.Optional(Named),
  issuetype: Type.Optional(Named),
  issuelinks: Type.Optional(Type.Array(Link)),
}
/** An issue of a list, whose description is not read. */
const Listed = Type.Object({ id: Text, key: Text, fields: Type.Object(fields) })
const Issue = Type.Object({
  id: Text,
  key: Text,
  fields: Type.Object({ ...fields, description: Field, attachment: Type.Optional(Type.Array(Attachment)) }),
  changelog: Type.Optional(Type.Object({ histories: Type.Optional(Type.Array(Type.Object({}))) })),
})
/** An issue of which only the key and a property were asked for. */
const Marked = Type.Object({ key: Text, properties: Type.Optional(Type.Object({})) })

const NextPage = { nextPageToken: Type.Optional(Type.Union([Type.String(), Type.Null()])) }
const EntityProperty = Type.Object({ key: Text, value: Type.Unknown() })

export const Reply = {
  account: Type.Object({ displayName: Text }),
  permissions: Type.Object({
    permissions: Type.Record(Type.String(), Type.Object({ havePermission: Type.Boolean() })),
  }),
  server: Type.Object({ baseUrl: Type.String({ pattern: '^https?://[^/]' }) }),
  issue: Issue,
  issues: Type.Object({ issues: Type.Array(Listed), ...NextPage }),
  markedIssues: Type.Object({ issues: Type.Array(Marked), ...NextPage }),
  /** `issueErrors` has the issues that Jira could not look up at this time. */
  fetchedIssues: Type.Object({
    issues: Type.Array(Marked),
    issueErrors: Type.Optional(Type.Array(Type.Unknown())),
  }),
  comment: Type.Object({ id: Text }),
  comments: Type.Object({
    comments: Type.Array(Type.Object({ id: Text, created: Text, body: Field })),
    total: Type.Integer({ minimum: 0 }),
  }),
  commentsById: Type.Object({
    values: Type.Array(Type.Object({ id: Text, properties: Type.Optional(Type.Array(EntityProperty)) })),
  }),
  transitions: Type.Object({
    transitions: Type.Array(Type.Object({ id: Text, name: Text, to: Type.Object({ id: Text, name: Text }) })),
  }),
  fields: Type.Array(Type.Object({ id: Text, name: Type.String() })),
  created: Type.Object({ key: Text }),
  attached: Type.Array(Attachment, { minItems: 1 }),
}
