import { type CompletionQueue, completionError, type WorkCompletion } from '../../verbs/completion-queue.js';

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
