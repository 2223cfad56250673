/** The end of a program, or of a thread, whose devices are open. */

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

describe.runIf(isBuilt)('a thread that ends with an open device', () => {
  for (const io of batched) {
    for (const way of ['terminate', 'exit', 'throw']) {
      it(`leaves the program alone: ${io}, ${way}`, { timeout: 30_000 }, async () => {
        const program = Program.fixture('threads-with-open-devices.mjs', io, way);
        try {
          expect(await program.ended(), program.stderr).toBe(0);
          expect(program.stdout).toContain('both threads have ended');
        } finally {
          program.kill('SIGKILL');
        }
      });
    }
  }
});
