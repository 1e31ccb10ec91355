import { cut, widthOf } from './width.js';

/** A part of a line with its colour, so that a line is measured and cut by what is seen. */
export interface Piece {
  readonly text: string;
  readonly paint?: (text: string) => string;
}

/** Pieces as one line of at most `columns`, with `…` where it was cut. */
export function lineOf(pieces: readonly Piece[], columns: number): string {
  let room = columns;
  let line = '';
  for (const [index, { text, paint }] of pieces.entries()) {
    // A line that is full shows by a mark in its last column that more follows.
    const follows = pieces.slice(index + 1).some((piece) => piece.text.trim() !== '');
    const fits = widthOf(text) + (follows ? 1 : 0) <= room;
    const shown = fits ? text : cut(follows && widthOf(text) <= room ? `${text}…` : text, room);
    line += paint ? paint(shown) : shown;
    if (!fits) break;
    room -= widthOf(shown);
  }
  return line;
}

/** Parts in as few lines as they need, none of which is broken unless it is longer than a line itself. */
export function flow(parts: readonly Piece[], columns: number, gap: string): string[] {
  const lines: Piece[][] = [];
  let room = 0;
  for (const part of parts) {
    const line = lines.at(-1);
    const needed = widthOf(gap) + widthOf(part.text);
    if (line && needed <= room) {
      line.push({ text: gap }, part);
      room -= needed;
    } else {
      lines.push([part]);
      room = columns - widthOf(part.text);
    }
  }
  return lines.map((line) => lineOf(line, columns));
}
