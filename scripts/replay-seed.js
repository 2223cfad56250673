// Runs one seed of the simulation and prints its report: npm run replay -- SEED
import { startVitest } from 'vitest/node';

const seed = process.argv[2];
if (!/^\d+$/.test(seed ?? '')) {
  console.error('usage: npm run replay -- SEED');
  process.exit(2);
}
process.env.SEED = seed;
await startVitest('test', ['test/sim/replay.long.ts'], {
  config: 'vitest.long.config.ts',
  watch: false,
  reporters: ['verbose'],
});
