/** One line of `repave doctor`. */
export interface Finding {
  readonly state: 'fine' | 'unsure' | 'wrong';
  readonly text: string;
  /** What to do about it. */
  readonly advice?: string;
  /** A server did not answer. */
  readonly unreachable?: boolean;
}

export function fine(text: string): Finding {
  return { state: 'fine', text };
}

/** Works, but look at it. */
export function unsure(text: string, advice?: string): Finding {
  return { state: 'unsure', text, advice };
}

export function wrong(text: string, advice?: string): Finding {
  return { state: 'wrong', text, advice };
}
