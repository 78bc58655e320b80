// wiki: reads and writes pages of Confluence Cloud.
//
//   settings: base_url (https://acme.atlassian.net; a trailing /wiki is accepted), email, api_token
//   get_page         sources: [{ name, ref: page id }]            Markdown; storage format when the name ends in .html or
//                                                                 .xml, the vendor's record when it ends in .json
//   search           sources: [{ name, ref: CQL, limit? }]        `type = page and space = DOCS and text ~ "release"`
//   get_attachments  sources: [{ name, ref: page id, filename?, limit? }]      into files/<phase>/<name>/<file name>
//   create_page      target_entries: [{ name, ref: space key, title, file, parent? }]      parent: a page id
//   update_page      target_entries: [{ name, ref: page id, title, file }]
//   add_attachment   target_entries: [{ name, ref: page id, file, filename? }]  a new version where the name exists
//
// `file` is Markdown, or storage format when it ends in .html or .xml. An update replaces the whole page. A page that is
// read as Markdown keeps what its macros say: code, panels and included pages, files, Jira issues, tasks and status.
// Of these, Markdown writes back only code blocks, tasks, mentions, images and links to pages and files; use storage
// format to keep the others.
//
// A token with scopes needs the base_url https://api.atlassian.com/ex/confluence/<cloud id>, and the scopes
// read:page:confluence, write:page:confluence, read:space:confluence, search:confluence, read:user:confluence for the
// names of mentioned people, read:attachment:confluence and write:attachment:confluence for attachments, and
// read:confluence-user for `doctor`. Permissions: the account must see the space and be allowed to add pages to it.
//
// What a repetition after a lost reply meets. create_page: titles are unique in a space, so Confluence refuses a second
// page, and the one that ends with an invisible anchor with the idempotency key is the result. update_page and
// add_attachment: the key and a hash of the content in the comment of the version, so that there is no second one; the
// name of an attachment is unique on its page.
// https://developer.atlassian.com/cloud/confluence/rest/v2/intro/

import { basename } from 'node:path'
import { type AgentResult, agent, entryOf, Limit, listingOf, readText, Type, writeListing } from 'cadre'
import {
  type AtlassianContext,
  AtlassianSettings,
  apiAddress,
  atlassianApi,
  attachmentFields,
  confluence,
  filePath,
  markdownToStorage,
  nullable,
  problemsOfSite,
  storageToMarkdown,
} from 'cadre/vendors'

/** Maximum size of a page; Confluence refuses larger ones. */
const PAGE_MOST = 5 * 1024 * 1024
const READ = 'read:page:confluence'

const text = (description: string) => Type.String({ minLength: 1, description })
const Title = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'The title of the page, which no other page of the space may have.',
})
const PageId = Type.String({
  pattern: '^[0-9]+$',
  'x-expected': 'the number of a page',
  description: 'The number of the page, which is in its address after /pages/.',
})
const SpaceKey = Type.String({
  pattern: '^~?[A-Za-z0-9._-]+$',
  'x-expected': 'the key of a space',
  description: 'The key of the space, which is in its address after /spaces/.',
})
const File = filePath('The path of the content: Markdown, or storage format if the name ends in .html or .xml.')

const page = {
  id: Type.String({ description: 'The number of the page.' }),
  url: Type.String({ description: 'Its address in a browser.' }),
  title: Type.String({ description: 'Its title.' }),
}
const PageData = Type.Object({ ...page, version: Type.Integer({ description: 'The number of its version.' }) })
const FoundData = listingOf({
  id: nullable(Type.String(), { description: 'The number of the page, or of what else was found.' }),
  type: nullable(Type.String(), { description: 'What it is, such as `page`.' }),
  title: Type.String({ description: 'Its title.' }),
  url: nullable(Type.String(), { description: 'Its address in a browser.' }),
  last_modified: nullable(Type.String(), { description: 'When it was changed.' }),
})
const version = Type.Integer({ description: 'The number of its version.' })

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and writes pages of Confluence.',
  settings: AtlassianSettings,
  check: settings => problemsOfSite('confluence', settings),
  addresses: settings => [apiAddress(settings)],
  account: atlassianApi,
  doctor: confluence.examine,
  actions: {
    get_page: {
      direction: 'source',
      effect: 'read',
      permissions: [READ],
      description:
        'Reads a page as Markdown; as storage format if the name ends in .html or .xml; or its record as .json.',
      example: { name: 'page.md', ref: '123456' },
      entry: entryOf({ ref: PageId }),
      data: PageData,
      async run({ name, ref }, context) {
        const page = await confluence.getPage(ref, context)
        const isRecord = name.endsWith('.json')
        await context.write(name, isRecord ? page : await fileText(page.body.storage!.value, name, context))
        return resultOf(page, `page ${ref}: ${page.title}`, context)
      },
    },
    search: {
      direction: 'source',
      effect: 'read',
      permissions: ['search:confluence'],
      description: 'Finds pages and other content by a query in CQL.',
      example: { name: 'pages.json', ref: 'type = page and space = DOCS and text ~ "release"' },
      entry: entryOf({
        ref: text('A query in CQL, such as `type = page and space = DOCS and text ~ "release"`.'),
        limit: Limit,
      }),
      data: FoundData,
      async run({ name, ref, limit }, context) {
        let base: string | undefined
        const data = await writeListing(context, {
          name,
          limit,
          async page(cursor: string | undefined, wanted) {
            const found = await confluence.searchPage(ref, cursor, wanted, context)
            base = found.base
            return found
          },
          brief: found => confluence.resultOf(found, base, context),
        })
        return { text: `${data.items.length} of ${data.total} results`, data }
      },
    },
    get_attachments: {
      direction: 'source',
      effect: 'read',
      permissions: [READ],
      description: 'Downloads the attachments of a page into a folder that has the name of the entry.',
      example: { name: 'attachments', ref: '123456' },
      entry: entryOf({
        ref: PageId,
        filename: Type.Optional(text('The name of the attachment that is downloaded; without it all are downloaded.')),
        limit: Limit,
      }),
      data: listingOf({ ...attachmentFields, version }, { id: page.id }),
      async run({ ref, ...entry }, context) {
        const data = await confluence.download(ref, entry, context)
        const text = `${data.total} attachments of page ${ref}${data.truncated ? ', and there are more' : ''}`
        return { text, data: { id: ref, ...data } }
      },
    },
    create_page: {
      direction: 'target',
      effect: 'once',
      permissions: [READ, 'read:space:confluence'],
      description: 'Creates a page in a space.',
      example: { name: 'page', ref: 'DOCS', title: 'Release 1.4', file: 'files/write/page.md' },
      entry: entryOf({
        ref: SpaceKey,
        title: Title,
        file: File,
        parent: Type.Optional(
          Type.Union([Type.String({ minLength: 1 }), Type.Integer()], {
            description: 'The number of the page below which the new page is created.',
          }),
        ),
      }),
      data: PageData,
      async run({ ref, title, file, parent }, context) {
        const value = await storageOf(file, context)
        const under = parent === undefined ? undefined : `${parent}`
        const page = await confluence.createPage({ space: ref, title, parent: under, value }, context)
        return resultOf(page, `created page ${page.id}: ${title}`, context)
      },
      sees: 'at once',
      async find({ ref, title }, context) {
        const page = await confluence.createdPage(ref, title, context)
        return page && resultOf(page, `created page ${page.id}: ${title}`, context)
      },
    },
    update_page: {
      direction: 'target',
      effect: 'idempotent',
      permissions: [READ],
      description: 'Replaces the title and the whole content of a page with a new version.',
      example: { name: 'page', ref: '123456', title: 'Release 1.4', file: 'files/write/page.md' },
      entry: entryOf({ ref: PageId, title: Title, file: File }),
      data: PageData,
      async run({ ref, title, file }, context) {
        const value = await storageOf(file, context)
        const page = await confluence.updatePage(ref, title, value, context)
        return resultOf(page, `updated page ${ref} to version ${page.version.number}`, context)
      },
    },
    add_attachment: {
      direction: 'target',
      effect: 'idempotent',
      permissions: [READ],
      description: 'Attaches a file to a page. A file whose name the page already has becomes a new version.',
      example: { name: 'report', ref: '123456', file: 'files/report/report.pdf' },
      entry: entryOf({
        ref: PageId,
        file: filePath('The path of the file.'),
        filename: Type.Optional(text('The name of the attachment; the default is the name of the file.')),
      }),
      data: Type.Object({
        ...page,
        attachment_id: Type.String({ description: 'The id of the attachment.' }),
        filename: Type.String({ description: 'Its name.' }),
        size: Type.Integer({ description: 'How many bytes it has.' }),
      }),
      async run({ ref, file: path, filename = basename(path) }, context) {
        const file = await context.read(path)
        const page = await confluence.getPage(ref, context)
        const { id, isNew } = await confluence.attach(ref, file, filename, context)
        const { url } = confluence.briefOf(page, context)
        return {
          text: `page ${ref} ${isNew ? 'has the new attachment' : 'had the attachment already:'} ${filename}`,
          data: { id: ref, url, title: page.title, attachment_id: id, filename, size: file.size },
          external: { id, url },
        }
      },
    },
  },
})

const isStorage = (file: string) => /\.(html|xml)$/i.test(file)

/** The content of a page in the format that the file name selects. */
async function fileText(storage: string, name: string, context: AtlassianContext): Promise<string> {
  return isStorage(name) ? storage : storageToMarkdown(storage, await confluence.namesIn(storage, context))
}

/** The storage format of a page, from a file of the run or the workspace. */
async function storageOf(file: string, context: AtlassianContext): Promise<string> {
  const content = await readText(context, file, PAGE_MOST)
  return isStorage(file) ? content : markdownToStorage(content)
}

function resultOf(
  page: Parameters<typeof confluence.briefOf>[0],
  text: string,
  context: AtlassianContext,
): AgentResult {
  const data = confluence.briefOf(page, context)
  return { text, data, external: { id: page.id, url: data.url } }
}
