/** `process.exit()` of a program whose devices are open. */

import { describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { isBuilt, Program } from './executable.js';

const batched = batchedUdpAvailable() === undefined ? ['mmsg'] : [];

describe.runIf(isBuilt)('process.exit() with open devices', () => {
  for (const io of ['dgram', ...batched]) {
    for (const engine of ['inline', 'worker']) {
      it(`ends the program at once: ${io}, ${engine}`, { timeout: 30_000 }, async () => {
        const program = Program.fixture('exits-with-open-devices.mjs', io, engine);
        try {
          expect(await program.ended(), program.stderr).toBe(7);
        } finally {
          program.kill('SIGKILL');
        }
      });
    }
  }
});
