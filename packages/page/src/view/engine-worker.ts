/** Runs scenes in a worker. `index.html` contains its program as text, as pages of file:// cannot load workers. */

import type { FileReply, FileRequest, RunReply, RunRequest } from './messages.js';

const PROGRAM = document.getElementById('worker-program')!.textContent;

function startWorker(): Worker {
  return new Worker(URL.createObjectURL(new Blob([PROGRAM], { type: 'text/javascript' })));
}

/** Replies to earlier requests are dropped. */
export class EngineWorker {
  #worker = startWorker();
  #request = 0;
  #hasOwnCode = false;

  /** With own code, the next request ends the worker: the code may not return. */
  run(request: Omit<RunRequest, 'kind' | 'request'>, hasOwnCode: boolean, onReply: (reply: RunReply) => void): void {
    this.#ask({ ...request, kind: 'run' }, onReply);
    this.#hasOwnCode = hasOwnCode;
  }

  read(request: Omit<FileRequest, 'kind' | 'request'>, onReply: (reply: FileReply) => void): void {
    this.#ask({ ...request, kind: 'file' }, onReply);
  }

  /** Ends what is in progress. */
  stop(): void {
    this.#hasOwnCode = false;
    this.#worker.terminate();
    this.#worker = startWorker();
  }

  #ask<R extends { readonly request: number }>(
    asked: Omit<RunRequest, 'request'> | Omit<FileRequest, 'request'>,
    onReply: (reply: R) => void,
  ): void {
    if (this.#hasOwnCode) this.stop();
    const request = ++this.#request;
    this.#worker.onmessage = ({ data }: MessageEvent<R>) => {
      if (data.request === request) onReply(data);
    };
    this.#worker.postMessage({ ...asked, request });
  }
}
