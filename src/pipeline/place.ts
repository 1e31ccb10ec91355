/** A place in a pipeline's file, as those name it who know the pipeline and not the file. */
export type Place =
  /** A setting, by its path; where it is not written, the nearest that encloses it. */
  | { readonly kind: 'setting'; readonly path: readonly PropertyKey[] }
  /** A check, by its place in the pipeline's list. */
  | { readonly kind: 'check'; readonly index: number }
  /** A column of the query's result, by its place among `of`. */
  | { readonly kind: 'column'; readonly index: number; readonly of: number; readonly name: string }
  /** The SELECT that gives the query's columns. */
  | { readonly kind: 'select' }
  /** As a server counts: characters of the query's text before it, from 0. */
  | { readonly kind: 'query'; readonly characters: number };
