/** Runs scenes in a worker. `index.html` contains its program as text, as pages of file:// cannot load workers. */

import type { RunReply, RunRequest } from './messages.js';

const PROGRAM = document.getElementById('worker-program')!.textContent;

export class EngineWorker {
  readonly #worker = new Worker(URL.createObjectURL(new Blob([PROGRAM], { type: 'text/javascript' })));
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
