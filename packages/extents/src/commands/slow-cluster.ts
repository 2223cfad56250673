import { counted, type Output } from '@rocev2/command';
import type { ClusterStatus } from '../index.js';
import { REPLICAS } from '../metadata-schema.js';

const TIMEOUT_MS = 8000;
const LOOK_MS = 1000;
const STATUS_MS = 3000;

/** Says once if `work` makes no progress for 8 s, with the cause. */
export async function sayingIfSlow<T>(
  work: Promise<T>,
  output: Pick<Output, 'note'>,
  status: () => Promise<ClusterStatus>,
  progress: () => number = () => 0,
): Promise<T> {
  let last = progress();
  let stillMs = 0;
  let isDone = false;
  const timer = setInterval(() => {
    const now = progress();
    stillMs = now === last ? stillMs + LOOK_MS : 0;
    last = now;
    if (stillMs < TIMEOUT_MS) return;
    clearInterval(timer);
    void whySlow(status).then((why) => {
      if (!isDone) output.note(`nothing has been written for 8 s: ${why}; Ctrl-C ends the wait`);
    });
  }, LOOK_MS);
  try {
    return await work;
  } finally {
    isDone = true;
    clearInterval(timer);
  }
}

async function whySlow(status: () => Promise<ClusterStatus>): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, STATUS_MS, undefined);
  });
  const found = await Promise.race([status().catch(() => undefined), late]);
  clearTimeout(timer);
  if (found === undefined) return 'no manager that leads answers';
  const taking = found.nodes.filter(({ state }) => state === 'up');
  if (taking.length < REPLICAS)
    return `writes wait while fewer than three nodes take data, and ${counted(taking.length, 'node')} of ${found.nodes.length} do ('rocev2 extents status' shows them)`;
  return `${counted(taking.length, 'node')} take data, so one of them is slow, or fewer than three have room for two extents ('rocev2 extents status' shows the space)`;
}
