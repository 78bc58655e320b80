// Reads HTML and XML of others. The library looks through all open elements at each end tag, so that it takes a time that
// grows with the square of the nesting. Here only so many are open; what is deeper is reported as an empty element,
// and its content belongs to the element around it.

import { Parser, type ParserOptions } from 'htmlparser2'

type Handler = NonNullable<ConstructorParameters<typeof Parser>[0]>

const MOST_OPEN = 300

export class BoundedParser extends Parser {
  readonly #open: { depth: number }
  /** Whether the element that begins is one too many. */
  #isFull = false

  constructor({ onopentagname, onclosetag, ...handler }: Partial<Handler>, options: ParserOptions) {
    const open = { depth: 0 }
    super(
      {
        ...handler,
        onopentagname(name) {
          open.depth++
          onopentagname?.(name)
        },
        onclosetag(name, isImplied) {
          open.depth--
          onclosetag?.(name, isImplied)
        },
      },
      options,
    )
    this.#open = open
  }

  override onopentagname(start: number, end: number): void {
    this.#isFull = this.#open.depth >= MOST_OPEN
    super.onopentagname(start, end)
  }

  override onclosetag(start: number, end: number): void {
    this.#isFull = false
    super.onclosetag(start, end)
  }

  protected override isVoidElement(name: string): boolean {
    return this.#isFull || super.isVoidElement(name)
  }
}
