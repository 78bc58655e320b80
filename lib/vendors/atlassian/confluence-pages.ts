// Pages of Confluence: reading, searching and writing them so that a write whose reply was lost can be found again. A
// created page ends with an invisible anchor that contains the idempotency key, and an updated page has the key in the
// message of its version.
// https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-page/
// https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-search/

import { AgentError } from '../../agent/core/agent-error.ts'
import type { Diagnosis } from '../../agent/define.ts'
import { beforehand } from '../../agent/entry.ts'
import { lacking } from '../../agent/json-api.ts'
import { pauseToRetry } from '../../agent/retries.ts'
import type { JsonObject } from '../../json.ts'
import { Reply } from './confluence-replies.ts'
import { type AtlassianContext, atlassian, siteOf } from './site.ts'

/** Number of results in one page of a search. */
const PAGE = 100
export const READ = 'see the page (read:page:confluence)'
const WRITE = 'add and edit pages of the space (write:page:confluence)'
const TAKEN = 'titles are unique in a space: choose another title, or change the existing page with update_page'
const PAGES = '/wiki/api/v2/pages'
/** Milliseconds before each look for a page whose title is taken: a list may show it later. */
const LOOKS = [0, 1_000, 3_000]

export interface Links {
  webui?: string
  base?: string
  next?: string
}

export interface Page extends JsonObject {
  id: string
  status: string
  title: string
  version: { number: number; message?: string | null }
  body: { storage?: { value: string } }
}

export function confluence(context: AtlassianContext) {
  return atlassian('confluence', context)
}

export async function examine(context: AtlassianContext): Promise<Diagnosis> {
  const call = confluence(context)
  const who = { scope: 'read:confluence-user', reply: Reply.account }
  const { displayName } = await call<{ displayName: string }>('get the account', '/wiki/rest/api/user/current', who)
  let web = siteOf(context)
  const missing = await lacking({
    async 'read:space:confluence'() {
      const options = { query: { limit: 1 }, reply: Reply.spaces }
      const { _links } = await call<{ _links?: Links }>('list spaces', '/wiki/api/v2/spaces', options)
      web = _links?.base?.replace(/\/wiki$/, '') ?? web
    },
    'read:page:confluence': () => call('list pages', PAGES, { query: { limit: 1 }, reply: Reply.pages }),
    'search:confluence': () => searchPage('type = page', undefined, 1, context),
  })
  return { who: displayName, missing, text: `${web}; the permission to edit depends on the space` }
}

/** The page with its content in storage format. */
export async function getPage(id: string, context: AtlassianContext): Promise<Page> {
  const options = { query: { 'body-format': 'storage' }, scope: READ, reply: Reply.pageWithBody }
  return await confluence(context)<Page>(`get page ${id}`, `${PAGES}/${id}`, options)
}

/** What results show of a page. Its address is the one that Confluence names, because the gateway's is not for people. */
export function briefOf(page: Page, context: AtlassianContext) {
  const { webui = `/pages/${page.id}`, base } = (page._links ?? {}) as Links
  return {
    id: page.id,
    url: webAddress(base, context) + webui,
    title: page.title,
    version: page.version.number,
  }
}

/** The address that precedes the `webui` of a reply. */
function webAddress(base: string | undefined, context: AtlassianContext): string {
  return base ?? `${siteOf(context)}/wiki`
}

async function spaceId(key: string, context: AtlassianContext): Promise<string> {
  const options = { query: { keys: key }, scope: 'see the space (read:space:confluence)', reply: Reply.spaces }
  const { results } = await confluence(context)<{ results: { id: string; key: string }[] }>(
    `get space ${key}`,
    '/wiki/api/v2/spaces',
    options,
  )
  const space = results.find(found => found.key === key) ?? results[0]
  if (space) return space.id
  const hint = 'check ref: the key of a space is in its address, after /spaces/'
  throw new AgentError(`[${context.callName}] there is no space ${key} that the account may see`, {
    code: 'not_found',
    hint,
    sent: 'no',
  })
}

/** The mark with the idempotency key. It is an anchor, which is invisible on the page. */
function markOf({ key }: AtlassianContext): string {
  return `<p><ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">cadre-${key}</ac:parameter></ac:structured-macro></p>`
}

/**
 * Creates a page with this content in storage format. Confluence refuses a second page of the title, so the page of an
 * earlier attempt is the answer to its refusal.
 */
export async function createPage(
  { space, title, parent, value }: { space: string; title: string; parent: string | undefined; value: string },
  context: AtlassianContext,
): Promise<Page> {
  const body = {
    spaceId: await beforehand(() => spaceId(space, context)),
    status: 'current',
    title,
    ...(parent !== undefined && { parentId: parent }),
    body: { representation: 'storage', value: value + markOf(context) },
  }
  const hints = {
    400: TAKEN,
    409: TAKEN,
    404: `check that the account may add pages to ${space}${parent === undefined ? '' : `, and that page ${parent} exists`}`,
  }
  const options = { method: 'POST', body, scope: WRITE, hints, reply: Reply.page }
  const call = confluence(context)
  try {
    return await call<Page>(`create page "${title}" in ${space}`, PAGES, options)
  } catch (error) {
    if (!(error instanceof AgentError) || !['rejected', 'conflict'].includes(error.code)) throw error
    for (const wait of /title/i.test(error.message) ? LOOKS : [0]) {
      await pauseToRetry(wait, context.signal)
      const found = await titled(body.spaceId, { space, title }, context)
      const made = marked(found, context)
      if (made) return made
      if (found.results.length > 0) break
    }
    throw error
  }
}

/** The page that this entry created, or null. */
export async function createdPage(space: string, title: string, context: AtlassianContext): Promise<Page | null> {
  return marked(await titled(await spaceId(space, context), { space, title }, context), context)
}

interface Pages {
  results: Page[]
  _links?: Links
}

/** The page of this title, in a list of at most one. */
function titled(
  spaceId: string,
  { space, title }: { space: string; title: string },
  context: AtlassianContext,
): Promise<Pages> {
  const query = { 'space-id': spaceId, title, status: 'current', 'body-format': 'storage' }
  const options = { query, scope: READ, reply: Reply.pages }
  return confluence(context)<Pages>(`look for page "${title}" in ${space}`, PAGES, options)
}

/** The page with the mark of this entry. */
function marked({ results, _links }: Pages, context: AtlassianContext): Page | null {
  const page = results.find(({ body }) => body?.storage?.value.includes(context.key))
  if (!page) return null
  const base = _links?.base === undefined ? {} : { base: _links.base }
  return { ...page, _links: { ...base, ...(page._links as JsonObject | undefined) } }
}

/** What the comment of a version says: which entry wrote it, with which content. */
export function versionMark({ key }: AtlassianContext, sha256: string): string {
  return `cadre ${key} ${sha256.slice(0, 16)}`
}

/**
 * Writes the next version of a page, and tries once more if someone else has written a version in the meantime. A
 * version with our key was written by this entry; with our key and content, it is not written again.
 */
export async function updatePage(id: string, title: string, value: string, context: AtlassianContext): Promise<Page> {
  const mark = versionMark(context, new Bun.CryptoHasher('sha256').update(JSON.stringify([title, value])).digest('hex'))
  for (let tries = 1; ; tries++) {
    const page = await getPage(id, context)
    if (page.version.message?.includes(mark)) return page
    if (page.status !== 'current') {
      const hint = 'restore or publish the page first'
      throw new AgentError(`[${context.callName}] page ${id} is ${page.status}`, {
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
      const options = { method: 'PUT', body, scope: WRITE, hints: { 400: TAKEN }, reply: Reply.page }
      return await confluence(context)<Page>(`update page ${id}`, `${PAGES}/${id}`, options)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'conflict' || tries > 1) throw error
      context.log(`page ${id} has a newer version; trying once more`)
    }
  }
}

interface Found extends JsonObject {
  title: string
}

/**
 * A page of search results, and the address that precedes theirs. Confluence returns the address of the next page, with
 * a cursor or, on older sites, a start offset.
 */
export async function searchPage(cql: string, cursor: string | undefined, wanted: number, context: AtlassianContext) {
  const query = { cql, limit: Math.min(wanted, PAGE), excerpt: 'none', ...(cursor && JSON.parse(cursor)) }
  const options = { query, scope: 'search:confluence', reply: Reply.found }
  const reply = await confluence(context)<{ results: Found[]; totalSize?: number; _links?: Links }>(
    'search',
    '/wiki/rest/api/search',
    options,
  )
  const next = reply._links?.next && new URL(reply._links.next, siteOf(context)).searchParams
  const from = next && (next.get('cursor') ? { cursor: next.get('cursor') } : { start: next.get('start') })
  return {
    items: reply.results,
    next: from ? JSON.stringify(from) : null,
    total: reply.totalSize,
    base: reply._links?.base,
  }
}

/** What results show of something that was found. `base` is the address that precedes its own. */
export function resultOf(found: Found, base: string | undefined, context: AtlassianContext) {
  const { content, title, url, entityType, lastModified } = found as Found & {
    content?: { id: string; type: string; title: string }
    url?: string
    entityType?: string
    lastModified?: string
  }
  return {
    id: content?.id ?? null,
    type: content?.type ?? entityType ?? null,
    title: content?.title ?? title.replaceAll(/@@@(end)?hl@@@/g, ''),
    url: url ? webAddress(base, context) + url : null,
    last_modified: lastModified ?? null,
  }
}
