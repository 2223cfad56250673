/** Serves a completion queue until it is closed: every work completion is handed on, errors of the queue itself end it. */

import { type CompletionQueue, completionError, type WorkCompletion } from '../../verbs/completion-queue.js';

/** `onFailure` hears of failed work, of an overrun, and of what `onSuccess` throws. */
export function serveCompletions(
  cq: CompletionQueue,
  onSuccess: (wc: WorkCompletion) => void,
  onFailure: (error: Error) => void,
): void {
  cq.serve({
    onCompletion: (wc) => {
      if (wc.status === 0) onSuccess(wc);
      else onFailure(completionError(wc));
    },
    onFailure,
  });
}
