import { Worker } from 'node:worker_threads';
import { loadedExtensions } from 'rocev2/internal/driver';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import type { ThreadTask } from './run-thread.js';

export function runInThread(document: unknown, signal: AbortSignal): Promise<ScenarioResult | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./run-thread.js', import.meta.url), {
      workerData: { document, extensions: loadedExtensions() } satisfies ThreadTask,
    });
    const stop = () => {
      resolve(undefined);
      void thread.terminate();
    };
    signal.addEventListener('abort', stop, { once: true });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => {
      signal.removeEventListener('abort', stop);
      reject(new Error(`a run ended with code ${code}`));
    });
  });
}
