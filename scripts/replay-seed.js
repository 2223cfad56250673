// Runs one seed of the simulation, or of the fuzz run, and prints its report: npm run replay -- SEED [fuzz]
import { startVitest } from 'vitest/node';

const [seed, suite = 'sim'] = process.argv.slice(2);
if (!/^\d+$/.test(seed ?? '') || !['sim', 'fuzz'].includes(suite)) {
  console.error('usage: npm run replay -- SEED [fuzz]');
  process.exit(2);
}
process.env.SEED = seed;
await startVitest('test', [`test/${suite}/replay.long.ts`], {
  config: 'vitest.long.config.ts',
  watch: false,
  reporters: ['verbose'],
});
