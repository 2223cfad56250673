/** Serves a completion queue until it is closed: every work completion is handed on, errors of the queue itself end it. */

import { type CompletionQueue, completionError, type WorkCompletion } from '../../verbs/completion-queue.js';

/** Resolves when the queue is closed; `onFailure` hears of failed work and of an overrun. */
export async function serveCompletions(
  cq: CompletionQueue,
  onSuccess: (wc: WorkCompletion) => void,
  onFailure: (error: Error) => void,
): Promise<void> {
  try {
    for await (const wc of cq) {
      if (wc.status === 0) onSuccess(wc);
      else onFailure(completionError(wc));
    }
  } catch (error) {
    onFailure(error as Error);
  }
}
