import { writeFileSync } from 'node:fs';
import { it } from 'vitest';
import { runSeed } from './run-seed.js';
it('hashes', { timeout: 3_000_000 }, async () => {
  const lines: string[] = [];
  for (let seed = 1; seed <= 2000; seed++) {
    const r = await runSeed(seed);
    lines.push(`${seed} ${r.traceHash} ${r.packets} ${r.lostPackets} ${r.operations} ${r.failures.length}`);
  }
  writeFileSync(process.env.HASH_OUT!, `${lines.join('\n')}\n`);
});
