// issues: reads and writes issues of Jira Cloud.
//
//   settings: base_url (https://acme.atlassian.net), email, api_token
//   get_issue       sources: [{ name, ref: key }]
//   get_issue_tree  sources: [{ name, ref: key, depth?, limit? }]   its children down to `depth` (3), and the links of each
//   get_comments    sources: [{ name, ref: key, limit? }]           oldest first
//   search          sources: [{ name, ref: JQL, limit? }]           bounded JQL: `project = WEB and status = Open`
//   add_comment     target_entries: [{ name, ref, file }]           Markdown
//   transition      target_entries: [{ name, ref, to | file, comment? }]      name or id of a transition, or of a status
//   create_issue    target_entries: [{ name, file }]                dispatch.json; issues with a `key` exist already
//   update_issue    target_entries: [{ name, ref?, file }]          summary, description, labels, parent
//   update_fields   target_entries: [{ name, ref?, file }]          `fields`, by id or name
//   notify          { action: add_comment | transition, ref, message?, to? }
//
// dispatch.json: {issues: [{id?, key?, project, type, summary, description, labels, parent, fields}]}. `fields` have
// plain values: a choice is its text, a cascading choice is a list of two texts, a person is the id of an account, and
// a multi-line text is Markdown. Null empties a field. Permissions: Browse Projects, Create, Edit and Transition
// Issues, Add Comments. Scopes, if the token has scopes: read:jira-work, write:jira-work, and read:jira-user for
// `doctor`. A comment ends with a line that contains the idempotency key; a transition and a created issue contain it
// invisibly. A write whose reply was lost can therefore be found again.
//
// Its calls, all below /rest/api/3, are in lib/vendors/atlassian/jira-read.ts and jira-write.ts:
//   GET  issue/{key}              before and after most others; with the changelog, to find a transition again
//   POST search/jql               search, the children of a tree, and created issues that are looked for
//   GET  issue/{key}/comment      get_comments, and comments that are looked for
//   POST issue/{key}/comment      add_comment, and the comment of a transition
//   GET and POST issue/{key}/transitions
//   GET  field                    where issues of a file have `fields`
//   POST issue                    create_issue
//   PUT  issue/{key}              update_issue, update_fields
//   GET  myself, mypermissions    doctor
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import {
  AgentError,
  type AgentResult,
  agent,
  beforehand,
  entryOf,
  type JsonObject,
  Limit,
  needsOne,
  readText,
  Type,
  writeListing,
} from 'cadre'
import {
  type AdfNode,
  type AtlassianContext,
  AtlassianSettings,
  adfToMarkdown,
  type IssueDraft,
  jira,
  keysById,
  markdownToAdf,
  readKnownIssues,
  readNewIssues,
  stepsOf,
  wordOf,
} from 'cadre/vendors'

type Context = AtlassianContext

const COMMENT_MOST = 256 * 1024
const Text = Type.String({ minLength: 1 })
const Key = Type.String({ pattern: '^[A-Za-z0-9_-]+$', 'x-expected': 'the key or number of an issue' })
const To = Type.Union([Text, Type.Integer()])

export default agent({
  type: 'connector',
  version: '1.2.1',
  description: 'Reads and writes issues of Jira.',
  settings: AtlassianSettings,
  doctor: jira.examine,
  actions: {
    get_issue: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Key }),
      async run({ name, ref }, context) {
        const issue = await jira.getIssue(ref, context)
        await context.write(name, issue)
        const description = await adfToMarkdown(issue.fields.description)
        const brief = jira.briefOf(issue, context)
        return { text: `${brief.key} is ${brief.status}: ${brief.summary}`, data: { ...brief, description } }
      },
    },
    get_issue_tree: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Key, depth: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })), limit: Limit }),
      async run({ name, ref, depth = 3, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: await stepsOf(jira.treeOf(ref, depth, context)),
          brief: ({ issue, ...place }) => ({ ...jira.briefOf(issue, context), ...place }),
        })
        const { key, url, type, status } = data.items[0] as Record<string, string>
        return {
          text: `${data.items.length} issues in the tree of ${ref}`,
          data: { key, url, type, status, ...data } as JsonObject,
        }
      },
    },
    get_comments: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Key, limit: Limit }),
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          async page(start: number = 0) {
            const found = await jira.commentsPage(ref, start, 'created', context)
            const read = async (each: jira.JiraComment) => ({ ...each, text: await adfToMarkdown(each.body) })
            return { ...found, items: await Promise.all(found.items.map(read)) }
          },
          brief: ({ id, author, created, text }) => ({ id, author: author?.displayName ?? null, created, text }),
        })
        return { text: `${data.items.length} of ${data.total} comments of ${ref}`, data }
      },
    },
    search: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Text, limit: Limit }),
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: (cursor: string | undefined, wanted) =>
            jira.searchPage(ref, { cursor, wanted, fields: ['*navigable'] }, context),
          brief: issue => jira.briefOf(issue, context),
        })
        return { text: `${data.items.length} issues${data.truncated ? ', and there are more' : ''}`, data }
      },
    },
    add_comment: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({ ref: Key, file: Text }),
      async run({ ref, file }, context) {
        return addComment(ref, await markdownToAdf(await readText(context, file, COMMENT_MOST)), context)
      },
      async find({ ref }, context) {
        const found = await jira.commented(ref, context)
        return found && jira.commentResult(await jira.getIssue(ref, context), found.id, context)
      },
    },
    transition: {
      direction: 'target',
      effect: 'once',
      entry: entryOf(
        { ref: Key, to: Type.Optional(To), file: Type.Optional(Text), comment: Type.Optional(Text) },
        needsOne('to', 'file'),
      ),
      async run(entry, context) {
        return transition(entry.ref, await wordOf(context, entry.to, entry.file), entry.comment, context)
      },
      async find(entry, context) {
        if (!(await jira.moved(entry.ref, await wordOf(context, entry.to, entry.file), context))) return null
        if (entry.comment !== undefined && !(await jira.commented(entry.ref, context))) return null
        return jira.moveResult(await jira.readWritten(entry.ref, context), context)
      },
    },
    create_issue: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({ file: Text }),
      async run({ file }, context) {
        const issues = await readNewIssues(context, file)
        // Issues that an earlier attempt created are kept, because it may have failed in the middle of the list.
        const again = issues.length > 1 && context.attempt > 1
        const done = again ? await beforehand(() => jira.created(issues, context)) : new Map<number, string>()
        const fields = await beforehand(() => jira.fieldsFor(issues, context))
        const keys = keysById(issues)
        const made: string[] = []
        for (const [at, issue] of issues.entries()) {
          const key = issue.key ?? done.get(at) ?? (await jira.create(issue, at, { fields, keys }, context))
          if (issue.id !== undefined) keys.set(`${issue.id}`, key)
          made.push(key)
        }
        return jira.issuesResult('created', await jira.readBack(made, context), context)
      },
      async find({ file }, context) {
        const issues = await readNewIssues(context, file)
        const done = await jira.created(issues, context)
        const made = issues.map(({ key }, at) => key ?? done.get(at))
        if (!made.every(key => key !== undefined)) return null
        return jira.issuesResult('created', await jira.readBack(made, context), context)
      },
    },
    update_issue: {
      direction: 'target',
      effect: 'idempotent',
      entry: entryOf({ ref: Type.Optional(Key), file: Text }),
      run: (entry, context) => update(entry, jira.mainFields, context),
    },
    update_fields: {
      direction: 'target',
      effect: 'idempotent',
      entry: entryOf({ ref: Type.Optional(Key), file: Text }),
      run: (entry, context) => update(entry, jira.ownFields, context),
    },
  },
  notify: {
    effect: 'once',
    entry: Type.Object(
      {
        action: Type.Enum(['add_comment', 'transition']),
        ref: Key,
        message: Type.Optional(Text),
        to: Type.Optional(To),
      },
      { anyOf: [{ properties: { action: { const: 'add_comment' } } }, { required: ['to'] }] },
    ),
    async run({ action, ref, message, to }, context) {
      if (action === 'transition') return transition(ref, `${to}`, message, context)
      return addComment(
        ref,
        message === undefined ? jira.plainDocument(context.event!.message) : await markdownToAdf(message),
        context,
      )
    },
  },
})

async function addComment(ref: string, document: AdfNode, context: Context): Promise<AgentResult> {
  const issue = await beforehand(() => jira.getIssue(ref, context))
  const { id } = await jira.comment(ref, document, context)
  return jira.commentResult(issue, id, context)
}

async function transition(ref: string, to: string, comment: string | undefined, context: Context) {
  const before = context.attempt > 1
  const issue = await beforehand(() => jira.getIssue(ref, context))
  if (!before || !(await beforehand(() => jira.moved(ref, to, context)))) await jira.move(issue, to, context)
  if (comment !== undefined && !(before && (await jira.commented(ref, context)))) {
    await jira.comment(ref, await markdownToAdf(comment), context)
  }
  return jira.moveResult(await jira.readWritten(ref, context), context)
}

/** Writes to each issue of the file the fields that `fieldsOf` returns. An issue without such fields is left alone. */
async function update(
  { ref, file }: { ref?: string | undefined; file: string },
  fieldsOf: (issue: IssueDraft, known: jira.Known, context: Context) => Promise<JsonObject>,
  context: Context,
): Promise<AgentResult> {
  const issues = await readKnownIssues(context, file, ref)
  const known = { fields: await jira.fieldsFor(issues, context), keys: keysById(issues) }
  const written: jira.Issue[] = []
  for (const issue of issues) {
    const key = issue.key!
    const fields = await fieldsOf(issue, known, context)
    if (Object.keys(fields).length > 0) written.push(await jira.edit(key, fields, context))
    else context.log(`${file} has no fields for ${key}`)
  }
  if (written.length > 0) return jira.issuesResult('updated', written, context)
  throw new AgentError(`[${context.place}] ${file} must have fields to write for at least one issue`, {
    code: 'invalid_request',
    sent: 'no',
  })
}
