// Whether the page is being printed: what is folded or drawn in part on the screen is drawn as a whole then. What has still to be
// loaded does not come in time.

import { signal } from '@preact/signals'

export const printing = signal(false)

addEventListener('beforeprint', () => {
  printing.value = true
})
addEventListener('afterprint', () => {
  printing.value = false
})
