/** How much room texts take on a terminal, and how they are made to take less. */

/** Characters that a terminal draws two columns wide: East Asian wide and full-width ones, and emoji. */
const WIDE =
  /[\u1100-\u115f\u231a\u231b\u2329\u232a\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2630-\u2637\u2648-\u2653\u267f\u268a-\u268f\u2693\u26a1\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\u2e80-\u303e\u3041-\u4dbf\u4dc0-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1d300}-\u{1d376}\u{1f004}\u{1f0cf}\u{1f18e}-\u{1f19a}\u{1f1e6}-\u{1f2ff}\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f7e0}-\u{1f7f0}\u{1f90c}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Marks and what joins characters: drawn over the one before. */
const OVER = /^[\p{Mn}\p{Me}\u200b-\u200d\ufeff]+$/u;

/** Most texts: each character is a column. */
const PLAIN = /^[ -~]*$/;

const GRAPHEMES = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Columns that a text takes. It has no control characters: see {@link oneLine}. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const grapheme of graphemesOf(text)) width += widthOfGrapheme(grapheme);
  return width;
}

function widthOfGrapheme(grapheme: string): number {
  // The second sign makes an emoji of the one before it.
  if (WIDE.test(grapheme) || grapheme.includes('\ufe0f')) return 2;
  return OVER.test(grapheme) ? 0 : 1;
}

/** Cut to `columns`, with `…` at the end where something was left out. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  return columns < 1 ? '' : `${head(text, columns - 1)}…`;
}

/** The same with `…` in the middle: what differs between two names stands at their ends. */
export function cutMiddle(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns < 1) return '';
  const before = head(text, Math.ceil((columns - 1) / 2));
  return `${before}…${tail(text, columns - 1 - widthOf(before))}`;
}

/** Filled up with spaces to `columns`. */
export function pad(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)));
}

/** A text as one line that can do nothing to a terminal: control characters and line ends are spaces, several of them one. */
export function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex -- these are what must not reach a terminal
  return text.replace(/[\u0000-\u0020\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ').trim();
}

function head(text: string, columns: number): string {
  return PLAIN.test(text) ? text.slice(0, columns) : taken(graphemesOf(text), columns).join('');
}

function tail(text: string, columns: number): string {
  if (PLAIN.test(text)) return text.slice(Math.max(0, text.length - columns));
  return taken(graphemesOf(text).reverse(), columns).reverse().join('');
}

function graphemesOf(text: string): string[] {
  return [...GRAPHEMES.segment(text)].map(({ segment }) => segment);
}

/** As many of the graphemes, from the first, as have room. */
function taken(graphemes: readonly string[], columns: number): string[] {
  let room = columns;
  const tooFar = graphemes.findIndex((grapheme) => (room -= widthOfGrapheme(grapheme)) < 0);
  return graphemes.slice(0, tooFar < 0 ? undefined : tooFar);
}
