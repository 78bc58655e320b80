// `GET /openapi/json`, and `GET /openapi` for people; without credential. What makes them is loaded when first asked for.

import { Type } from '../../type.ts'
import { type Api, anyone } from '../api.ts'
import type { Document, Info } from './document.ts'

/** The page runs no script and loads nothing. */
const PAGE_HEADERS = {
  'content-type': 'text/html;charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

export function openapiRoutes(api: Api, info: Info): void {
  let made: Promise<Document> | undefined
  const document = () => {
    made ??= import('./document.ts').then(({ openapiDocument }) => openapiDocument(api, info))
    return made
  }
  const declared = { access: anyone, query: Type.Object({}) }
  api.get('/openapi/json', { ...declared, media: 'application/json', summary: 'This document' }, async () =>
    Response.json(await document()),
  )
  api.get('/openapi', { ...declared, media: 'text/html', summary: 'This document as a page' }, async () => {
    const { openapiPage } = await import('./page.ts')
    return new Response(openapiPage(await document()), { headers: PAGE_HEADERS })
  })
}
