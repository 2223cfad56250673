import { type CompletionQueue, completionError, type WorkCompletion } from '../../verbs/completion-queue.js';

/** Serves both completion queues of a queue pair; `onFailure` may be called again. */
export function serveCompletions(
  [sendCq, recvCq]: readonly [CompletionQueue, CompletionQueue],
  onSent: (wrId: number) => void,
  onReceive: (wc: WorkCompletion) => void,
  onFailure: (error: Error) => void,
): void {
  const serve = (cq: CompletionQueue, onSuccess: (wc: WorkCompletion) => void) =>
    cq.serve({
      onCompletion: (wc) => {
        if (wc.status === 0) onSuccess(wc);
        else onFailure(completionError(wc));
      },
      onFailure,
    });
  serve(sendCq, ({ wrId }) => onSent(Number(wrId)));
  serve(recvCq, onReceive);
}
