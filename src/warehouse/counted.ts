/** A count with its noun, for a sentence: `1 row`, `3 rows`. */
export function counted(count: number, noun = 'row'): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
