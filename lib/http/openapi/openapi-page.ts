// The OpenAPI document as one page for people. It has no script and loads nothing from other hosts.

import type { Document, Operation } from './document.ts'

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
summary { cursor: pointer; padding: .3rem 0 }
code, pre { font: 13px/1.5 ui-monospace, monospace }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885; border-radius: 6px }
details { border-bottom: 1px solid #8883 }
small { opacity: .75 }
`

export function openapiPage({ info, paths }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )
  const sections = [...Map.groupBy(operations, ({ operation }) => operation.tags[0]!)].map(
    ([tag, those]) =>
      `<h2>${text(tag)}</h2>${those.map(({ name, operation }) => operationHtml(name, operation)).join('')}`,
  )
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(info.title)}</title><style>${STYLE}</style>
<h1>${text(info.title)} <small>${text(info.version)}</small></h1>
<p>${text(info.description)} As a document for programs: <a href="/openapi/json">/openapi/json</a>.</p>
${sections.join('\n')}
</html>
`
}

function operationHtml(name: string, { summary = '', description = '', parameters, requestBody }: Operation): string {
  const body = requestBody?.content['application/json']?.schema
  const schemasOf = (of: typeof parameters) => Object.fromEntries((of ?? []).map(({ name, schema }) => [name, schema]))
  const headers = parameters?.filter(each => each.in === 'header') ?? []
  const others = parameters?.filter(each => each.in !== 'header') ?? []
  const taken = [
    ...(others.length > 0 ? [`<p>Query</p><pre>${json(schemasOf(others))}</pre>`] : []),
    ...(headers.length > 0 ? [`<p>Headers</p><pre>${json(schemasOf(headers))}</pre>`] : []),
    ...(body ? [`<p>Body</p><pre>${json(body)}</pre>`] : []),
  ].join('')
  return `<details><summary><code>${text(name)}</code> <small>${text(summary)}</small></summary><p>${text(description)}</p>${taken}</details>`
}

const json = (value: unknown): string => text(JSON.stringify(value, null, 2))

function text(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
