/** Runs scenes in a worker, whose program is inside that of the page. */

import type { RunReply, RunRequest } from './messages.js';

/** The text of `worker.ts`, bundled by scripts/page.js. */
declare const WORKER_PROGRAM: string;

export class EngineWorker {
  readonly #worker = new Worker(URL.createObjectURL(new Blob([WORKER_PROGRAM], { type: 'text/javascript' })));
  #request = 0;

  constructor(onReply: (reply: RunReply) => void) {
    this.#worker.onmessage = ({ data }: MessageEvent<RunReply>) => {
      if (data.request === this.#request) onReply(data);
    };
  }

  /** Replies to earlier requests are dropped. */
  run(request: Omit<RunRequest, 'request'>): void {
    this.#worker.postMessage({ ...request, request: ++this.#request });
  }
}
