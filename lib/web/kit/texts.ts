// Every text of the pages passes through this file before it is shown. Invisible characters (marks of direction, characters
// without a shape) become their names, so that no name can look like another one, or reverse the text beside it.

import { options, type VNode } from 'preact'
import { named } from '../../text/unseen.ts'

/** Attributes that people read. */
const READ = ['title', 'aria-label', 'placeholder', 'alt']

const before = options.vnode
options.vnode = vnode => {
  const { type, props } = vnode as VNode<Record<string, unknown> | string>
  // Preact makes a node for each text, whose properties are the text.
  if (type === null && typeof props === 'string') Object.assign(vnode, { props: named(props) })
  else if (typeof type === 'string' && typeof props === 'object') {
    for (const name of READ) {
      const text = props[name]
      if (typeof text === 'string') props[name] = named(text)
    }
  }
  before?.(vnode)
}
