// wiki: reads and writes pages of Confluence Cloud.
//
//   settings: base_url (https://acme.atlassian.net; a trailing /wiki is accepted), email, api_token
//   get_page     sources: [{ name, ref: page id }]            Markdown; storage format when the name ends in .html or
//                                                             .xml, the vendor's record when it ends in .json
//   search       sources: [{ name, ref: CQL, limit? }]        `type = page and space = DOCS and text ~ "release"`
//   create_page  target_entries: [{ name, ref: space key, title, file, parent? }]      parent: a page id
//   update_page  target_entries: [{ name, ref: page id, title, file }]
//
// `file` is Markdown, or storage format when it ends in .html or .xml. An update replaces the whole page. Of its
// macros, Markdown keeps only code blocks, panels (as quotes), mentions, images and links to pages; use storage format
// for the others. Permissions: the account must see the space and be allowed to add pages to it. Scopes, if the token
// has scopes: read:page:confluence, write:page:confluence, read:space:confluence, search:confluence, and
// read:confluence-user for `doctor`. A created page ends with an invisible anchor that contains the idempotency key,
// and an updated page has the key in the message of its version, so that a write whose reply was lost can be found
// again. Titles are unique in a space.
// https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-page/
// https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-search/

import {
  AgentError,
  type AgentResult,
  agent,
  beforehand,
  entryOf,
  type JsonObject,
  Limit,
  readText,
  Type,
  writeListing,
} from 'cadre'
import {
  type AtlassianContext,
  AtlassianSettings,
  atlassian,
  lacking,
  markdownToStorage,
  siteOf,
  storageToMarkdown,
} from 'cadre/vendors'

/** Number of results in one page of a search. */
const PAGE = 100
/** Maximum size of a page; Confluence refuses larger ones. */
const PAGE_MOST = 5 * 1024 * 1024
const READ = 'see the page (read:page:confluence)'
const TAKEN = 'titles are unique in a space: choose another title, or change the existing page with update_page'
const WRITE = 'add and edit pages of the space (write:page:confluence)'

const Text = Type.String({ minLength: 1 })
const Title = Type.String({ minLength: 1, maxLength: 255 })
const PageId = Type.String({ pattern: '^[0-9]+$', 'x-expected': 'the number of a page' })
const SpaceKey = Type.String({ pattern: '^~?[A-Za-z0-9._-]+$', 'x-expected': 'the key of a space' })

interface Page extends JsonObject {
  id: string
  status: string
  title: string
  version: { number: number; message?: string }
  body: { storage?: { value: string } }
  _links: { webui?: string; base?: string }
}

interface Found extends JsonObject {
  content?: { id: string; type: string; title: string }
  title: string
  excerpt?: string
  url?: string
  entityType?: string
  lastModified?: string
}

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and writes pages of Confluence.',
  settings: AtlassianSettings,
  async doctor(context) {
    const call = atlassian(context)
    const who = await call<{ displayName: string }>('get the account', '/wiki/rest/api/user/current')
    const one = { query: { limit: 1 } }
    const missing = await lacking({
      'read:space:confluence': () => call('list spaces', '/wiki/api/v2/spaces', one),
      'read:page:confluence': () => call('list pages', '/wiki/api/v2/pages', one),
      'search:confluence': () => searchPage('type = page', undefined, 1, context),
    })
    return { who: who.displayName, missing, text: `${siteOf(context)}; the permission to edit depends on the space` }
  },
  actions: {
    get_page: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: PageId }),
      async run({ name, ref }, context) {
        const page = await getPage(ref, context)
        const isRecord = name.endsWith('.json')
        await context.write(name, isRecord ? page : await fileText(page.body.storage?.value ?? '', name))
        return resultOf(page, `page ${ref}: ${page.title}`, context)
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
          page: (cursor, wanted) => searchPage(ref, cursor, wanted, context),
          brief: found => briefOf(found, context),
        })
        return { text: `${data.items.length} of ${data.total} results`, data }
      },
    },
    create_page: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({
        ref: SpaceKey,
        title: Title,
        file: Text,
        parent: Type.Optional(Type.Union([Text, Type.Integer()])),
      }),
      async run({ ref, title, file, parent }, context) {
        const value = (await storageOf(file, context)) + markOf(context)
        const body = {
          spaceId: await beforehand(() => spaceId(ref, context)),
          status: 'current',
          title,
          ...(parent !== undefined && { parentId: `${parent}` }),
          body: { representation: 'storage', value },
        }
        const options = { method: 'POST', body, scope: WRITE, hints: { 400: TAKEN, 409: TAKEN } }
        const page = await atlassian(context)<Page>(`create page in ${ref}`, '/wiki/api/v2/pages', options)
        return resultOf(page, `created page ${page.id}: ${title}`, context)
      },
      async find({ ref, title }, context) {
        const query = { 'space-id': await spaceId(ref, context), title, status: 'current', 'body-format': 'storage' }
        const options = { query, scope: READ }
        const path = '/wiki/api/v2/pages'
        const { results, _links } = await atlassian(context)<{ results: Page[]; _links?: { base?: string } }>(
          `look for page in ${ref}`,
          path,
          options,
        )
        const page = results.find(({ body }) => body.storage?.value.includes(context.key))
        if (!page) return null
        const links = { ...(_links?.base && { base: _links.base }), ...page._links }
        return resultOf({ ...page, _links: links }, `created page ${page.id}: ${title}`, context)
      },
    },
    update_page: {
      direction: 'target',
      effect: 'idempotent',
      entry: entryOf({ ref: PageId, title: Title, file: Text }),
      async run({ ref, title, file }, context) {
        const value = await storageOf(file, context)
        const page = await updatePage(ref, title, value, context)
        return resultOf(page, `updated page ${ref} to version ${page.version.number}`, context)
      },
    },
  },
})

async function getPage(id: string, context: AtlassianContext): Promise<Page> {
  const options = { query: { 'body-format': 'storage' }, scope: READ }
  return await atlassian(context)<Page>(`get page ${id}`, `/wiki/api/v2/pages/${id}`, options)
}

const isStorage = (file: string) => /\.(html|xml)$/i.test(file)

/** The content of a page in the format that the file name selects. */
async function fileText(storage: string, name: string): Promise<string> {
  return isStorage(name) ? storage : storageToMarkdown(storage)
}

/** The storage format of a page, from a file of the run or the workspace. */
async function storageOf(file: string, context: AtlassianContext): Promise<string> {
  const text = await readText(context, file, PAGE_MOST)
  return isStorage(file) ? text : markdownToStorage(text)
}

/** The mark with the idempotency key. It is an anchor, which is invisible on the page. */
function markOf({ key }: AtlassianContext): string {
  return `<p><ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">cadre-${key}</ac:parameter></ac:structured-macro></p>`
}

async function spaceId(key: string, context: AtlassianContext): Promise<string> {
  const options = { query: { keys: key }, scope: 'see the space (read:space:confluence)' }
  const { results } = await atlassian(context)<{ results: { id: string; key: string }[] }>(
    `get space ${key}`,
    '/wiki/api/v2/spaces',
    options,
  )
  const space = results.find(found => found.key === key) ?? results[0]
  if (space) return space.id
  const hint = 'check ref: the key of a space is in its address, after /spaces/'
  throw new AgentError(`[${context.place}] there is no space ${key} that the account may see`, {
    code: 'not_found',
    hint,
    sent: 'no',
  })
}

/**
 * Writes the next version of a page, and tries once more if someone else has written a version in the meantime. A
 * version with our key was written by this entry.
 */
async function updatePage(id: string, title: string, value: string, context: AtlassianContext): Promise<Page> {
  const mark = `cadre ${context.key}`
  for (let tries = 1; ; tries++) {
    const page = await getPage(id, context)
    if (page.version.message?.includes(mark)) return page
    if (page.status !== 'current') {
      const hint = 'restore or publish the page first'
      throw new AgentError(`[${context.place}] page ${id} is ${page.status}`, {
        code: 'invalid_state',
        hint,
        sent: 'no',
      })
    }
    const body = {
      id,
      status: 'current',
      title,
      body: { representation: 'storage', value },
      version: { number: page.version.number + 1, message: mark },
    }
    try {
      const options = { method: 'PUT', body, scope: WRITE, hints: { 400: TAKEN } }
      return await atlassian(context)<Page>(`update page ${id}`, `/wiki/api/v2/pages/${id}`, options)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'conflict' || tries > 1) throw error
      context.log(`page ${id} has a newer version; trying once more`)
    }
  }
}

function resultOf(page: Page, text: string, context: AtlassianContext): AgentResult {
  const url = `${page._links.base ?? `${siteOf(context)}/wiki`}${page._links.webui ?? `/pages/${page.id}`}`
  const data = { id: page.id, url, title: page.title, version: page.version.number }
  return { text, data, external: { id: page.id, url } }
}

/**
 * A page of search results. Confluence returns the address of the next page, with a cursor or, on older sites, a start
 * offset.
 */
async function searchPage(cql: string, cursor: string | undefined, wanted: number, context: AtlassianContext) {
  const query = { cql, limit: Math.min(wanted, PAGE), excerpt: 'none', ...(cursor && JSON.parse(cursor)) }
  const options = { query, scope: 'search:confluence' }
  const reply = await atlassian(context)<{
    results: Found[]
    totalSize?: number
    _links?: { next?: string }
  }>('search', '/wiki/rest/api/search', options)
  const next = reply._links?.next && new URL(reply._links.next, siteOf(context)).searchParams
  const from = next && (next.get('cursor') ? { cursor: next.get('cursor') } : { start: next.get('start') })
  return { items: reply.results, next: from ? JSON.stringify(from) : null, total: reply.totalSize }
}

function briefOf({ content, title, url, entityType, lastModified }: Found, context: AtlassianContext) {
  return {
    id: content?.id ?? null,
    type: content?.type ?? entityType ?? null,
    title: content?.title ?? title.replaceAll(/@@@(end)?hl@@@/g, ''),
    url: url ? `${siteOf(context)}/wiki${url}` : null,
    last_modified: lastModified ?? null,
  }
}
