// The only table of transitions between the states of receipts, which record writes to other systems. The statements of
// `store/receipts.ts` take their fences from it, and no other code removes a receipt. Pure.
//
//   none → sent → done              the reply, or the other system, has confirmed the write
//           │ └─→ none              proof that nothing was written
//           ├───→ partial           a part of it was written, which its result says, and the rest was not
//           │      ├─→ sent         the rest is sent; what is refused then, or a person clears, is `partial` as before
//           │      └─→ unknown      this home was copied, and the other one may have sent the rest
//           └───→ unknown           the reply was lost: it is in doubt, and is not sent again
//                  ├─→ done         the other system shows the write, or a person says that it is there, which is asked
//                  │                for again (`unknown`) when a person repeats the phase
//                  ├─→ none         the other system, which sees every write at once, does not show it
//                  └─→ presumed     the settling time is over, and the other system still does not show it; or a person
//                       │           wants it sent again
//                       ├─→ none    by the order of a person, unless another look shows it
//                       ├─→ done    the other system shows it after all
//                       ├─→ unknown this home was copied, and the other one may have written it since
//                       └─→ sent    it is sent again, after another look; what is refused then is `presumed` as before

export type ReceiptState = 'sent' | 'partial' | 'unknown' | 'presumed' | 'done'

/** What happens to a receipt. */
export type ReceiptEvent =
  /** The request is about to leave. */
  | 'send'
  /** The write is there. */
  | 'confirm'
  /** A part of the write is there, and the rest certainly is not. */
  | 'part'
  /** The request ended without an answer that says whether the write is there. */
  | 'lose'
  /** No byte has left, or the other system has refused the request as a whole. */
  | 'refuse'
  /** A look-up that sees every write at once does not show it. */
  | 'disprove'
  /** A look-up that may lag does not show it after the settling time. */
  | 'presume'
  /** This home was copied, and the home that it was copied from may have written it. */
  | 'doubt'
  /** A person has looked, and wants it sent again. */
  | 'order'
  /** A look-up does not show the write that a person wants sent again, and it is about to be sent. */
  | 'clear'
  /** The phase is repeated, and only a person says that its write is there. */
  | 'repeat'

const FROM: Record<ReceiptEvent, readonly ReceiptState[]> = {
  send: ['presumed', 'partial'],
  confirm: ['sent', 'unknown', 'presumed'],
  part: ['sent'],
  lose: ['sent'],
  refuse: ['sent'],
  disprove: ['unknown', 'presumed'],
  presume: ['unknown'],
  doubt: ['sent', 'partial', 'unknown', 'presumed'],
  order: ['sent', 'unknown', 'presumed'],
  clear: ['presumed'],
  repeat: ['done'],
}

/** By event: the states in which it may happen, as an SQL list for the WHERE of a statement. */
export const RECEIPT_FENCE = Object.fromEntries(
  Object.entries(FROM).map(([event, states]) => [event, states.map(state => `'${state}'`).join(', ')]),
) as Record<ReceiptEvent, string>
