// Markdown as elements of the page. No part of the text is read as HTML: tags are shown as text. Links lead only to pages of
// other sites. Images are links, because the page loads nothing from other sites.

import type { Token, Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { tokensOf } from './markdown-tokens.ts'
import { ExternalLink, ScrollTable } from './parts.tsx'

/** Deeper lists and quotes are shown as text. */
const DEEPEST = 20

export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => tokensOf(text), [text])
  if (tokens) return <div class="markdown">{blocks(tokens, 0)}</div>
  return (
    <>
      <p class="quiet">This file is shown as it is written, because it is too large or too intricate to be laid out.</p>
      <pre class="prose">{text}</pre>
    </>
  )
}

const blocks = (tokens: readonly Token[], depth: number): JSX.Element[] =>
  tokens.map((token, index) => <Block key={index} of={token} depth={depth} />)

const inline = (tokens: readonly Token[] | undefined, depth: number): JSX.Element[] =>
  (tokens ?? []).map((token, index) => <Inline key={index} of={token} depth={depth} />)

function Block({ of, depth }: { of: Token; depth: number }): ComponentChildren {
  if (depth > DEEPEST) return <p>{of.raw}</p>
  const token = of as Tokens.Generic
  const inside = () => inline(token.tokens, depth + 1)
  switch (of.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null
    case 'heading': {
      // The page has headings of its own above these.
      const Heading = `h${Math.min(6, token.depth + 2)}` as 'h3'
      return <Heading class={`heading-${token.depth}`}>{inside()}</Heading>
    }
    case 'hr':
      return <hr />
    case 'code':
      return <pre>{token.text}</pre>
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [], depth + 1)}</blockquote>
    case 'list':
      return <List of={of as Tokens.List} depth={depth} />
    case 'table':
      return <Table of={of as Tokens.Table} depth={depth} />
    case 'paragraph':
      return <p>{inside()}</p>
    case 'text':
      return <>{token.tokens ? inside() : plain(token.text)}</>
    default:
      return <p class="wrap">{of.raw.trim()}</p>
  }
}

function List({ of: { ordered, start, items }, depth }: { of: Tokens.List; depth: number }) {
  const rows = items.map(({ task, checked, tokens }, index) => (
    <li key={index} class={task ? 'task' : ''}>
      {task && <input type="checkbox" checked={checked ?? false} disabled aria-label={checked ? 'done' : 'open'} />}
      {blocks(tokens, depth + 1)}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
}

function Table({ of: { header, rows }, depth }: { of: Tokens.Table; depth: number }) {
  return (
    <ScrollTable head={header.map(cell => inline(cell.tokens, depth + 1))}>
      {rows.map((row, index) => (
        <tr key={index}>
          {row.map((cell, column) => (
            <td key={column}>{inline(cell.tokens, depth + 1)}</td>
          ))}
        </tr>
      ))}
    </ScrollTable>
  )
}

function Inline({ of, depth }: { of: Token; depth: number }): ComponentChildren {
  if (depth > DEEPEST) return <>{of.raw}</>
  const token = of as Tokens.Generic
  const inside = () => inline(token.tokens, depth + 1)
  switch (of.type) {
    case 'strong':
      return <strong>{inside()}</strong>
    case 'em':
      return <em>{inside()}</em>
    case 'del':
      return <del>{inside()}</del>
    case 'codespan':
      return <code>{token.text}</code>
    case 'br':
      return <br />
    case 'link':
      return <ExternalLink url={token.href}>{inside()}</ExternalLink>
    case 'image':
      return <ExternalLink url={token.href}>{token.text || token.href}</ExternalLink>
    case 'escape':
      return <>{token.text}</>
    case 'text':
      return <>{token.tokens ? inside() : plain(token.text)}</>
    case 'checkbox':
      return null
    default:
      return <>{of.raw}</>
  }
}

const CHARACTERS: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Text with the usual character references replaced. */
const plain = (text: string): string =>
  text.replaceAll(/&(?:#(\d{1,7})|([a-z]+));/g, (whole, code, name) => {
    if (name !== undefined) return CHARACTERS[name] ?? whole
    return Number(code) <= 0x10ffff ? String.fromCodePoint(Number(code)) : whole
  })
