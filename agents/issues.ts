// issues: reads and writes issues of Jira Cloud.
//
//   settings: base_url (https://acme.atlassian.net), email, api_token
//   get_issue        sources: [{ name, ref: key }]
//   get_issue_tree   sources: [{ name, ref: key, depth?, limit? }]   its children down to `depth` (3), and the links of each
//   get_comments     sources: [{ name, ref: key, limit? }]           oldest first
//   search           sources: [{ name, ref: JQL, limit? }]           bounded JQL: `project = WEB and status = Open`
//   get_attachments  sources: [{ name, ref: key, filename?, limit? }]          into files/<phase>/<name>/<file name>
//   add_comment      target_entries: [{ name, ref, file, public? }]  Markdown; `public: false` hides it from customers
//   add_attachment   target_entries: [{ name, ref, file, filename? }]
//   transition       target_entries: [{ name, ref, to | file, comment? }]      name or id of a transition, or of a status
//   create_issue     target_entries: [{ name, file }]                dispatch.json; issues with a `key` exist already
//   update_issue     target_entries: [{ name, ref?, file }]          summary, description, labels, parent
//   update_fields    target_entries: [{ name, ref?, file }]          `fields`, by id or name
//   notify           { action: add_comment | transition, ref, message?, to? }
//
// dispatch.json: {issues: [{id?, key?, project, type, summary, description, labels, parent, fields}]}. `fields` have
// plain values: a choice is its text, a cascading choice is a list of two texts, a person is the id of an account, and
// a multi-line text is Markdown. Null empties a field.
//
// A token with scopes needs the base_url https://api.atlassian.com/ex/jira/<cloud id>, and the scopes read:jira-work,
// write:jira-work, and read:jira-user for `doctor`. Permissions: Browse Projects, Create, Edit and Transition Issues, Add
// Comments, Create Attachments.
//
// What a repetition after a lost reply meets. Jira takes no identity of ours, so it is asked for what was written, for 60 s,
// and only then is it sent again. add_comment: the idempotency key in a property of the comment. transition: the status,
// and the key in the history. create_issue: the key in a property of the issue, in a search, which may lag by seconds, and
// at the newest numbers of the project, which do not. add_attachment: a newer file of the same name and content; one that
// the issue had before is not attached again. update_issue, update_fields: the same values. Comments are public unless `public: false` makes them internal notes of Jira Service Management.
//
// Its calls, all below /rest/api/3, are in lib/vendors/atlassian/jira-….ts:
//   GET  issue/{key}              before and after most others; with the changelog, to find a transition again
//   POST search/jql               search, the children of a tree, and created issues that are looked for
//   POST issue/bulkfetch          created issues that are looked for before the search knows them
//   GET  issue/{key}/comment      get_comments, and comments that are looked for, with POST comment/list
//   POST issue/{key}/comment      add_comment, and the comment of a transition
//   GET  attachment/content/{id}  get_attachments, and add_attachment where a file of that name and size exists
//   POST issue/{key}/attachments  add_attachment
//   GET and POST issue/{key}/transitions
//   GET  field                    where issues of a file have `fields`
//   POST issue                    create_issue
//   PUT  issue/{key}              update_issue, update_fields
//   GET  serverInfo               the address for people, where base_url is the gateway for tokens with scopes
//   GET  myself, mypermissions    doctor
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import { basename } from 'node:path'
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
  apiAddress,
  atlassianApi,
  filePath,
  foundAmong,
  type IssueDraft,
  jira,
  keysById,
  markdownToAdf,
  problemsOfSite,
  readKnownIssues,
  readNewIssues,
  stepsOf,
  wordOf,
} from 'cadre/vendors'

type Context = AtlassianContext

const COMMENT_MOST = 256 * 1024
const text = (description: string) => Type.String({ minLength: 1, description })
const Key = Type.String({
  pattern: '^[A-Za-z0-9_-]+$',
  'x-expected': 'the key or number of an issue',
  description: 'The key of the issue, such as WEB-12, or its number.',
})
const To = Type.Union([Type.String({ minLength: 1 }), Type.Integer()], {
  description: 'The name or id of a transition, or of the status that it leads to.',
})
const Dispatch = filePath('The path of a JSON file with issues: {"issues": [{"project": "WEB", "type": "Story", …}]}.')
const Filename = 'The name of the attachment'

export default agent({
  type: 'connector',
  version: '1.2.1',
  description: 'Reads and writes issues of Jira.',
  settings: AtlassianSettings,
  check: settings => problemsOfSite('jira', settings),
  addresses: settings => [apiAddress(settings)],
  account: atlassianApi,
  doctor: jira.examine,
  actions: {
    get_issue: {
      direction: 'source',
      effect: 'read',
      permissions: jira.needing(),
      description: 'Reads an issue. The file contains all of its fields, and `data` its description as Markdown.',
      example: { name: 'issue.json', ref: 'WEB-12' },
      entry: entryOf({ ref: Key }),
      data: jira.IssueData,
      async run({ name, ref }, context) {
        const issue = await jira.getIssue(ref, context)
        const web = await jira.webAddress(context)
        await context.write(name, issue)
        const description = await adfToMarkdown(issue.fields.description)
        const brief = jira.briefOf(issue, web)
        return { text: `${brief.key} is ${brief.status}: ${brief.summary}`, data: { ...brief, description } }
      },
    },
    get_issue_tree: {
      direction: 'source',
      effect: 'read',
      permissions: jira.needing(),
      description: 'Reads an issue with its children, their children, and the issues that each of them links to.',
      example: { name: 'tree.json', ref: 'WEB-12', depth: 2 },
      entry: entryOf({
        ref: Key,
        depth: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 10, description: 'The number of levels of children; the default is 3.' }),
        ),
        limit: Limit,
      }),
      data: jira.TreeData,
      async run({ name, ref, depth = 3, limit }, context) {
        const web = await jira.webAddress(context)
        const data = await writeListing(context, {
          name,
          limit,
          page: await stepsOf(jira.treeOf(ref, depth, context)),
          brief: ({ issue, ...place }) => ({ ...jira.briefOf(issue, web), ...place }),
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
      permissions: jira.needing(),
      description: 'Reads the comments of an issue as Markdown, the oldest first.',
      example: { name: 'comments.json', ref: 'WEB-12' },
      entry: entryOf({ ref: Key, limit: Limit }),
      data: jira.CommentsData,
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          async page(start: number = 0) {
            const found = await jira.commentsPage(ref, start, 'created', context)
            const read = async (each: jira.JiraComment) => ({ ...each, text: await adfToMarkdown(each.body) })
            return { ...found, items: await Promise.all(found.items.map(read)) }
          },
          brief: ({ id, author, created, text, jsdPublic }) => {
            return { id, author: author?.displayName ?? null, created, text, public: jsdPublic ?? true }
          },
        })
        return { text: `${data.items.length} of ${data.total} comments of ${ref}`, data }
      },
    },
    search: {
      direction: 'source',
      effect: 'read',
      permissions: jira.needing(),
      description: 'Finds issues by a query in JQL.',
      example: { name: 'open.json', ref: 'project = WEB and status = Open', limit: 50 },
      entry: entryOf({
        ref: text('A query in JQL that is bounded by a condition, such as `project = WEB and status = Open`.'),
        limit: Limit,
      }),
      data: jira.IssuesData,
      async run({ name, ref, limit }, context) {
        const web = await jira.webAddress(context)
        const data = await writeListing(context, {
          name,
          limit,
          page: (cursor: string | undefined, wanted) =>
            jira.searchPage(ref, { cursor, wanted, fields: ['*navigable'] }, context),
          brief: issue => jira.briefOf(issue, web),
        })
        return { text: `${data.items.length} issues${data.truncated ? ', and there are more' : ''}`, data }
      },
    },
    get_attachments: {
      direction: 'source',
      effect: 'read',
      permissions: jira.needing(),
      description: 'Downloads the attachments of an issue into a folder that has the name of the entry.',
      example: { name: 'attachments', ref: 'WEB-12' },
      entry: entryOf({
        ref: Key,
        filename: Type.Optional(text(`${Filename} that is downloaded; without it all are downloaded.`)),
        limit: Limit,
      }),
      data: jira.AttachmentsData,
      async run({ ref, ...entry }, context) {
        const issue = await jira.withAttachments(ref, context)
        const web = await jira.webAddress(context)
        const data = await jira.download(issue, entry, context)
        const text = `${data.total} attachments of ${issue.key}${data.truncated ? ', and there are more' : ''}`
        return { text, data: { ...jira.briefOf(issue, web), ...data } }
      },
    },
    add_comment: {
      direction: 'target',
      effect: 'once',
      permissions: jira.needing('ADD_COMMENTS'),
      description: 'Adds a comment to an issue.',
      example: { name: 'comment', ref: 'WEB-12', file: 'files/write/comment.md' },
      entry: entryOf({
        ref: Key,
        file: filePath('The path of the text of the comment, in Markdown.'),
        public: Type.Optional(
          Type.Boolean({
            default: true,
            description: 'Whether the customers of a service project see the comment; false makes it an internal note.',
          }),
        ),
      }),
      data: jira.CommentData,
      async run({ ref, file, public: isPublic = true }, context) {
        const document = await markdownToAdf(await readText(context, file, COMMENT_MOST))
        return addComment(ref, document, { internal: !isPublic }, context)
      },
      async find({ ref }, context) {
        const found = await jira.commented(ref, context)
        if (found.length === 0) return null
        const issue = await jira.getIssue(ref, context)
        const web = await jira.webAddress(context)
        return foundAmong(found.map(({ id }) => jira.commentResult(issue, id, web)))
      },
    },
    add_attachment: {
      direction: 'target',
      effect: 'once',
      permissions: jira.needing('CREATE_ATTACHMENTS'),
      description: 'Attaches a file to an issue, unless the issue already has it with the same name and content.',
      example: { name: 'report', ref: 'WEB-12', file: 'files/report/report.pdf' },
      entry: entryOf({
        ref: Key,
        file: filePath('The path of the file.'),
        filename: Type.Optional(text(`${Filename}; the default is the name of the file.`)),
      }),
      data: jira.AttachmentData,
      async run({ ref, file: path, filename = basename(path) }, context) {
        const file = await context.read(path)
        const issue = await beforehand(() => jira.withAttachments(ref, context))
        const web = await beforehand(() => jira.webAddress(context))
        const { id, isNew } = await jira.attach(issue, { file, filename }, context)
        return attachmentResult(issue, { id, filename, size: file.size, isNew }, web)
      },
      async find({ ref, file: path, filename = basename(path) }, context) {
        const file = await context.read(path)
        const issue = await jira.withAttachments(ref, context)
        const web = await jira.webAddress(context)
        const ids = await jira.attached(issue, { file, filename }, context)
        return foundAmong(ids.map(id => attachmentResult(issue, { id, filename, size: file.size, isNew: true }, web)))
      },
    },
    transition: {
      direction: 'target',
      effect: 'once',
      permissions: ({ comment }) => moving(comment),
      description: 'Moves an issue to another status, and comments on it if wanted.',
      example: { name: 'done', ref: 'WEB-12', to: 'Done' },
      entry: entryOf(
        {
          ref: Key,
          to: Type.Optional(To),
          file: Type.Optional(filePath('The path of a file that contains what `to` would be.')),
          comment: Type.Optional(text('A comment in Markdown that is added after the move.')),
        },
        needsOne('to', 'file'),
      ),
      data: jira.MoveData,
      async run(entry, context) {
        return transition(entry.ref, await wordOf(context, entry.to, entry.file), entry.comment, context)
      },
      async find(entry, context) {
        if (!(await jira.moved(entry.ref, await wordOf(context, entry.to, entry.file), context))) return null
        if (entry.comment !== undefined && (await jira.commented(entry.ref, context)).length === 0) return null
        return jira.moveResult(await jira.readWritten(entry.ref, context), await jira.webAddress(context))
      },
    },
    create_issue: {
      direction: 'target',
      effect: 'once',
      permissions: jira.needing('CREATE_ISSUES'),
      description: 'Creates the issues of a file. Those that name their key exist already and are left alone.',
      example: { name: 'issues', file: 'files/write/issues.json' },
      entry: entryOf({ file: Dispatch }),
      data: jira.WrittenData,
      async run({ file }, context) {
        const issues = await readNewIssues(context, file)
        const web = await beforehand(() => jira.webAddress(context))
        // Issues that an earlier attempt created are kept, because it may have failed in the middle of the list.
        const again = issues.length > 1 && context.attempt > 1
        const done = again ? await beforehand(() => jira.created(issues, context)) : null
        const fields = await beforehand(() => jira.fieldsFor(issues, context))
        const keys = keysById(issues)
        const made: string[] = []
        for (const [at, issue] of issues.entries()) {
          const key = issue.key ?? done?.get(at)?.[0] ?? (await jira.create(issue, at, { fields, keys }, context))
          if (issue.id !== undefined) keys.set(`${issue.id}`, key)
          made.push(key)
        }
        return jira.issuesResult('created', await jira.readBack(made, context), web)
      },
      async find({ file }, context) {
        const issues = await readNewIssues(context, file)
        const done = await jira.created(issues, context)
        const made = issues.map(({ key }, at) => key ?? done.get(at)?.[0])
        if (!made.every(key => key !== undefined)) return null
        const web = await jira.webAddress(context)
        const second = [...done.values()].flatMap(([, ...others]) => others)
        return foundAmong([
          jira.issuesResult('created', await jira.readBack(made, context), web),
          ...(await jira.readBack(second, context)).map(issue => jira.issuesResult('created', [issue], web)),
        ])
      },
    },
    update_issue: {
      direction: 'target',
      effect: 'idempotent',
      permissions: jira.needing('EDIT_ISSUES'),
      description: 'Changes the summary, description, labels and parent of the issues of a file.',
      example: { name: 'issue', ref: 'WEB-12', file: 'files/write/issue.json' },
      entry: entryOf({ ref: Type.Optional(Key), file: Dispatch }),
      data: jira.WrittenData,
      run: (entry, context) => update(entry, jira.mainFields, context),
    },
    update_fields: {
      direction: 'target',
      effect: 'idempotent',
      permissions: jira.needing('EDIT_ISSUES'),
      description: 'Changes other fields of the issues of a file, which are named by their id or name.',
      example: { name: 'fields', ref: 'WEB-12', file: 'files/write/fields.json' },
      entry: entryOf({ ref: Type.Optional(Key), file: Dispatch }),
      data: jira.WrittenData,
      run: (entry, context) => update(entry, jira.ownFields, context),
    },
  },
  notify: {
    description: 'Adds a comment to an issue or moves it, when an event of a run happens.',
    effect: 'once',
    permissions: ({ action, message }) => (action === 'transition' ? moving(message) : jira.needing('ADD_COMMENTS')),
    example: { action: 'add_comment', ref: 'WEB-12' },
    entry: Type.Object(
      {
        action: Type.Enum(['add_comment', 'transition'], { description: 'What is done with the issue.' }),
        ref: Key,
        message: Type.Optional(text('The comment in Markdown; the default is a sentence about the event.')),
        to: Type.Optional(To),
      },
      {
        additionalProperties: false,
        anyOf: [{ properties: { action: { const: 'add_comment' } } }, { required: ['to'] }],
      },
    ),
    async run({ action, ref, message, to }, context) {
      if (action === 'transition') return transition(ref, `${to}`, message, context)
      const document = message === undefined ? jira.plainDocument(context.event!.message) : await markdownToAdf(message)
      return addComment(ref, document, {}, context)
    },
  },
})

const moving = (comment: string | undefined) =>
  jira.needing('TRANSITION_ISSUES', ...(comment === undefined ? [] : (['ADD_COMMENTS'] as const)))

function attachmentResult(
  issue: jira.Issue,
  { isNew, ...made }: { id: string; filename: string; size: number; isNew: boolean },
  web: string,
): AgentResult {
  const { id, filename, size } = made
  const brief = jira.briefOf(issue, web)
  return {
    text: `${brief.key} ${isNew ? 'has the new attachment' : 'had the attachment already:'} ${filename}`,
    data: { ...brief, attachment_id: id, filename, size },
    external: { id, url: brief.url },
  }
}

async function addComment(
  ref: string,
  document: AdfNode,
  options: { internal?: boolean },
  context: Context,
): Promise<AgentResult> {
  const issue = await beforehand(() => jira.getIssue(ref, context))
  const web = await beforehand(() => jira.webAddress(context))
  const { id } = await jira.comment(ref, document, context, options)
  return jira.commentResult(issue, id, web)
}

async function transition(ref: string, to: string, comment: string | undefined, context: Context) {
  const before = context.attempt > 1
  const issue = await beforehand(() => jira.getIssue(ref, context))
  const web = await beforehand(() => jira.webAddress(context))
  if (!before || !(await beforehand(() => jira.moved(ref, to, context)))) await jira.move(issue, to, context)
  if (comment !== undefined && !(before && (await jira.commented(ref, context)).length > 0)) {
    await jira.comment(ref, await markdownToAdf(comment), context)
  }
  return jira.moveResult(await jira.readWritten(ref, context), web)
}

/** Writes to each issue of the file the fields that `fieldsOf` returns. An issue without such fields is left alone. */
async function update(
  { ref, file }: { ref?: string | undefined; file: string },
  fieldsOf: (issue: IssueDraft, known: jira.Known, context: Context) => Promise<JsonObject>,
  context: Context,
): Promise<AgentResult> {
  const issues = await readKnownIssues(context, file, ref)
  const known = { fields: await jira.fieldsFor(issues, context), keys: keysById(issues) }
  const web = await jira.webAddress(context)
  const written: jira.Issue[] = []
  for (const issue of issues) {
    const key = issue.key!
    const fields = await fieldsOf(issue, known, context)
    if (Object.keys(fields).length > 0) written.push(await jira.edit(key, fields, context))
    else context.log(`${file} has no fields for ${key}`)
  }
  if (written.length > 0) return jira.issuesResult('updated', written, web)
  throw new AgentError(`[${context.callName}] ${file} must have fields to write for at least one issue`, {
    code: 'invalid_request',
    sent: 'no',
  })
}
