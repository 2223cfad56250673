/** The path MTU drops under a live connection, and the system knows of it: a network namespace whose loopback interface changes its MTU. */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { repeated } from '../support/repetitions.js';

/** Far more than it takes; machines are busy at times. */
const LIMIT_MS = 100_000;
const FIXTURE = fileURLToPath(new URL('./fixtures/shrinking-link.mjs', import.meta.url));
const BYTES = 20_000;
const ENGINES = [
  ['inline, node:dgram', { engine: 'inline', io: 'dgram' }],
  ['inline, sendmmsg', { engine: 'inline', io: 'mmsg' }],
  ['worker', { engine: 'worker', io: 'mmsg' }],
] as const;

/** A user that may make a network namespace, and the tools for it. */
const hasNamespaces = spawnSync('unshare', ['-rn', 'ip', 'link', 'show', 'lo']).status === 0;

describe.runIf(isBuilt && hasNamespaces)(
  'the MTU of the link drops to 1500 under a connection of path MTU 4096',
  () => {
    it.each(repeated(1, ENGINES))(
      '%s: the error names both, both ends learn of it, and a new connection fits',
      { timeout: 2 * LIMIT_MS },
      (_, device) => {
        const { stdout, stderr } = spawnSync(
          'unshare',
          ['-rn', process.execPath, FIXTURE, JSON.stringify({ device, bytes: BYTES })],
          {
            encoding: 'utf8',
            timeout: LIMIT_MS,
          },
        );
        expect(stderr, stderr).toBe('');
        expect(JSON.parse(stdout)).toEqual({
          mtu: 4096,
          before: 'done',
          received: BYTES,
          small: 'done',
          large: expect.stringMatching(
            /^ERR_ROCE_COMPLETION .*the path MTU of the connection is 4096, and no more than 1024 gets through to 127\.0\.0\.1 by now: connect again with mtu: 1024/,
          ),
          other: 'ERR_ROCE_CLOSED the peer has closed the connection',
          afterwards: 'done',
          receivedAgain: BYTES,
        });
      },
    );
  },
);
