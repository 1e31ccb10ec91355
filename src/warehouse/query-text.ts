import type { ParameterName, Query } from '../pipeline/pipeline.js';

/** A query's text with its parameters counted from $1, though it is written to run in another's statement. */
export function textAlone(query: Query): string {
  return textBehind(query, []).text;
}

/** A query's text for a statement that has parameters already: it counts on behind them. The statement's then, too. */
export function textBehind(
  { pieces, slots }: Query,
  parameters: readonly ParameterName[],
): { readonly text: string; readonly parameters: readonly ParameterName[] } {
  const names = [...new Set([...parameters, ...slots.map(({ name }) => name)])];
  const written = pieces.map((piece, i) => {
    const slot = slots[i];
    return slot ? `${piece}($${names.indexOf(slot.name) + 1}::${slot.type})` : piece;
  });
  return { text: written.join(''), parameters: names };
}
