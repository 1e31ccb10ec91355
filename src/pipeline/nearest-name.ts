/**
 * The names most like a misspelt one, the nearest first, at most three: those within two edits or a third of its length,
 * and those that differ in case, `-`, `_` or a leading path only.
 */
export function nearestNames(given: string, names: Iterable<string>): string[] {
  const reach = Math.max(2, Math.floor(given.length / 3));
  return [...names]
    .map((name) => ({ name, distance: folded(name) === folded(given) ? 0 : edits(folded(given), folded(name)) }))
    .filter(({ name, distance }) => distance <= reach && distance < name.length)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, 3)
    .map(({ name }) => name);
}

/** ` Did you mean a or b?`, or an empty text where no name is near. */
export function didYouMean(given: string, names: Iterable<string>): string {
  const near = nearestNames(given, names);
  return near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
}

function folded(name: string): string {
  return name.slice(0, 200).toLowerCase().replace(/[-_ ]/g, '');
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function edits(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      let best = Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[other.length] ?? 0;
}
