/** Runs scenes in a worker. `index.html` contains its program as text, as pages of file:// cannot load workers. */

import type { FileReply, FileRequest, RunReply, RunRequest } from './messages.js';

const PROGRAM = document.getElementById('worker-program')!.textContent;

/** Replies to earlier requests are dropped. */
export class EngineWorker {
  readonly #worker = new Worker(URL.createObjectURL(new Blob([PROGRAM], { type: 'text/javascript' })));
  #request = 0;

  run(request: Omit<RunRequest, 'kind' | 'request'>, onReply: (reply: RunReply) => void): void {
    this.#ask({ ...request, kind: 'run' }, onReply);
  }

  read(request: Omit<FileRequest, 'kind' | 'request'>, onReply: (reply: FileReply) => void): void {
    this.#ask({ ...request, kind: 'file' }, onReply);
  }

  #ask<R extends { readonly request: number }>(
    asked: Omit<RunRequest, 'request'> | Omit<FileRequest, 'request'>,
    onReply: (reply: R) => void,
  ): void {
    const request = ++this.#request;
    this.#worker.onmessage = ({ data }: MessageEvent<R>) => {
      if (data.request === request) onReply(data);
    };
    this.#worker.postMessage({ ...asked, request });
  }
}
