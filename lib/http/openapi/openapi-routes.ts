// `GET /openapi/json`, and `GET /openapi` for people, without a credential. The code for it is loaded on the first
// request.

import { type AnyElysia, Elysia } from 'elysia'
import { httpKit } from '../kit.ts'
import type { Document, Info } from './document.ts'

/** The page runs no script and loads nothing. */
const PAGE_HEADERS = {
  'content-type': 'text/html;charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

/** Describes every route of the app, including those that are added later. */
export const openapi =
  (info: Info) =>
  <App extends AnyElysia>(app: App): App => {
    let made: Promise<Document> | undefined
    const document = () => {
      made ??= import('./document.ts').then(({ openapiDocument }) => openapiDocument(app, info))
      return made
    }
    const page = async () => {
      const { openapiPage } = await import('./openapi-page.ts')
      return new Response(openapiPage(await document()), { headers: PAGE_HEADERS })
    }
    const routes = new Elysia({ name: 'openapi', prefix: '/openapi' })
      .use(httpKit())
      .get('', page, { open: true, media: 'text/html', detail: { summary: 'This document as a page' } })
      .get('/json', async () => Response.json(await document()), {
        open: true,
        media: 'application/json',
        detail: { summary: 'This document' },
      })
    app.use(routes)
    return app
  }
