import PQueue from 'p-queue';
import type { SweepControl, SweepResult, SweepTask } from './points.js';
import { runInThread } from './run-in-thread.js';

export async function sweepHere(
  tasks: readonly SweepTask[],
  options: SweepControl & { readonly jobs: number },
): Promise<SweepResult[]> {
  const queue = new PQueue({ concurrency: options.jobs });
  const over = new AbortController();
  const stop = AbortSignal.any([options.signal, over.signal]);
  let done = 0;
  const runOne = async ({ point, document }: SweepTask): Promise<SweepResult | undefined> => {
    const result = await runInThread(document, stop);
    if (result === undefined) return undefined;
    options.onDone(++done);
    return { point, result };
  };
  try {
    const results = await Promise.all(tasks.map((task) => queue.add(() => runOne(task))));
    return results.filter((result) => result !== undefined);
  } finally {
    over.abort();
  }
}
