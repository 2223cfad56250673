import { cpus } from 'node:os';

function ticks(): { readonly busy: number; readonly all: number } {
  let busy = 0;
  let all = 0;
  for (const { times } of cpus()) {
    const sum = times.user + times.nice + times.sys + times.irq + times.idle;
    all += sum;
    busy += sum - times.idle;
  }
  return { busy, all };
}

export function cpuLoad(): () => number {
  const start = ticks();
  return () => {
    const now = ticks();
    return now.all === start.all ? 0 : (100 * (now.busy - start.busy)) / (now.all - start.all);
  };
}
