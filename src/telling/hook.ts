/** Where a notice goes. */
export interface Hook {
  /** Which of a worker's hooks it is: what one was told, another may not have been. */
  readonly kind: 'url' | 'command';
  /**
   * Delivers one document, as the text that is signed. Resolves once the hook has taken it; throws {@link NotTold}, and the
   * signal's reason once that is aborted.
   */
  tell(document: string, signal: AbortSignal): Promise<void>;
}

/** A hook has not taken a document, or may have and did not say so. Its message holds no URL but the host, and no secret. */
export class NotTold extends Error {
  override readonly name = 'NotTold';
}
