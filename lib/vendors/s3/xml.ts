// The XML of S3: elements with texts, without attributes that matter.

import { BoundedParser } from '../../schema/bounded-parser.ts'

export interface Element {
  name: string
  text: string
  children: Element[]
}

/** The root element; null when the text has none. */
export function parseXml(xml: string): Element | null {
  const root: Element = { name: '', text: '', children: [] }
  const open = [root]
  const parser = new BoundedParser(
    {
      onopentagname(name) {
        const element: Element = { name, text: '', children: [] }
        open.at(-1)!.children.push(element)
        open.push(element)
      },
      ontext(text) {
        open.at(-1)!.text += text
      },
      onclosetag() {
        if (open.length > 1) open.pop()
      },
    },
    { xmlMode: true },
  )
  parser.end(xml)
  return root.children[0] ?? null
}

export function textOf(element: Element | null, name: string): string | undefined {
  return element?.children.find(child => child.name === name)?.text
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
