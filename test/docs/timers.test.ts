/**
 * Tests wait for events, not for time: a timer in test/ says on its line, or on the one before, why no event does (`timer: a limit`,
 * `timer: the fault`, ...). Waiting for what calls nobody back is `test/support/eventually.ts`; time that is simulated has no timers.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGES, sourcesOf } from '../structure/product-files.js';

/** What lets real time pass, in programs and in the shell scripts they start. */
const TIMERS = [
  /\bset(Timeout|Interval)\b(?! as )/, // An import under another name is one of the next line.
  /^import (?!\{ setImmediate\b).* from '(node:)?timers\/promises'/,
  /\bAtomics\.wait\(/,
  /\bwaitForTimeout\b/,
  /\btime\.sleep\(/,
  /\bsleep ([\d.]|\$[\w({])/,
  /\bsleep:\d/, // An operation of the interop suite's verbs programs.
];
const REASON = /\btimer: \w/;
const SUFFIX = /\.(ts|js|mjs|py)$/;
/** A program beside the tests: it boots guests, and its loops ask a guest again and again. */
const RIG = join('test', 'interop', 'rig', '/');

/** Lines with a timer and no reason, as `LINE: text`. */
function unreasoned(text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, i) => {
    if (!TIMERS.some((timer) => timer.test(line))) return [];
    return REASON.test(line) || REASON.test(lines[i - 1] ?? '') ? [] : [`${i + 1}: ${line.trim()}`];
  });
}

it('every timer in test/ has a reason', () => {
  const files = readdirSync('test', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== basename(import.meta.filename))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => SUFFIX.test(file) && !file.startsWith(RIG));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) => unreasoned(readFileSync(file, 'utf8')).map((line) => `${file}:${line}`));
  expect(found).toEqual([]);
});

describe('a timer without one is found', () => {
  it.each([
    'await new Promise((resolve) => setTimeout(resolve, 50));',
    'const ticking = setInterval(tick, 10);',
    "import { setTimeout as delay } from 'node:timers/promises';",
    "import timers from 'timers/promises';",
    'Atomics.wait(cell, 0, 0, 20);',
    'await page.waitForTimeout(300);',
    'time.sleep(0.3)',
    "await rig.exec('sleep 60');",
    'for i in $(seq 9); do try && break; sleep 0.1; done',
    'sleep $PAUSE',
    "operations: 'sync sleep:100'",
    '// timer: too far away\n\nsetTimeout(stop, 5);',
    'setTimeout(stop, 5); // timer:',
  ])('%s', (text) => {
    expect(unreasoned(text)).toHaveLength(1);
  });
});

describe('what is none, or has one, is left alone', () => {
  it.each([
    "import { setImmediate as nextTurn } from 'node:timers/promises';",
    'await ends.sleep(5_000);',
    'await eventually(() => done);',
    'sleep: (ms) => pause(ms),',
    'setTimeout(stop, 5); // timer: a limit',
    '// timer: the fault\nsetInterval(block, 200, 190);',
    'sleep 1 # timer: the pace of the disk',
  ])('%s', (text) => {
    expect(unreasoned(text)).toEqual([]);
  });
});

/**
 * Timers of the product are those of a `Clock`: it decides whether the time has come, and `SYSTEM_CLOCK` sets a timer of
 * Node again that fires early. Files with a timer of Node itself, by what an early or late one does there:
 */
const PRODUCT_TIMERS = {
  'The clock decides when it fires, and it is set again.': [
    'src/driver/system-clock.ts',
    'src/driver/event-loop-poller.ts',
    'packages/lab/src/live/linked-switch.ts',
  ],
  'It limits how long something may take; a millisecond is no difference.': [
    'src/cm/control-channel.ts',
    'src/cm/fixed-channel.ts',
    'src/cm/packet-keys.ts',
    'src/cm/perftest-wire.ts',
    'src/storage-rpc/nbd/nbd-device.ts',
    'src/storage-rpc/nbd/server-connection.ts',
    'packages/cli/src/commands/pingpong-command.ts',
    'packages/cli/src/executable.ts',
    'packages/cli/src/transfer/perftest-meeting.ts',
    'packages/cli/src/transfer/perftest-rounds.ts',
    'packages/command/src/interruption.ts',
    'packages/command/src/peer-watch.ts',
    'packages/command/src/processes/child-service.ts',
    'packages/extents/src/commands/serve.ts',
    'packages/extents/src/commands/slow-cluster.ts',
    'packages/inspect/src/commands/doctor/service-test.ts',
    'packages/lab/src/commands/livelock/livelock-endpoint-process.ts',
    'packages/lab/src/commands/switch-report.ts',
  ],
  'It is the pause before the next attempt, or the next look.': [
    'src/port/frame/udp-frame-port.ts',
    'src/port/shm/shm-port.ts',
    'packages/cli/src/disk/followed-disk.ts',
    'packages/cli/src/disk/remote-disk.ts',
    'packages/cli/src/transfer/transfer-round.ts',
    'packages/dashboard/src/commands/estats/top.ts',
    'packages/dashboard/src/page/packet-player.ts',
    'packages/extents/src/commands/cluster.ts',
    'packages/extents/src/commands/family.ts',
    'packages/extents/src/commands/status.ts',
    'packages/extents/src/commands/stream-backend.ts',
    'packages/inspect/src/commands/conform/via.ts',
    'packages/inspect/src/commands/doctor/path-probe.ts',
    'packages/inspect/src/commands/doctor/udp-probe.ts',
    'packages/lab/src/commands/sim/sweep/redis-executor.ts',
  ],
};
/** An interval fires again by itself. A socket's own timeout is a limit. */
const NODE_TIMER = /(?<![.\w])setTimeout\(|^import (?!\{ setImmediate\b).* from '(node:)?timers(\/promises)?'/m;

describe('timers of Node in the product', () => {
  const listed = Object.values(PRODUCT_TIMERS).flat();

  it('are in the listed files only, and those have one', () => {
    const found = PACKAGES.flatMap(sourcesOf).filter((path) => NODE_TIMER.test(readFileSync(path, 'utf8')));
    expect(found.toSorted()).toEqual(listed.toSorted());
  });

  it.each(['setTimeout(wake, 5);', "import { setTimeout as delay } from 'node:timers/promises';"])(
    'are found: %s',
    (text) => {
      expect(NODE_TIMER.test(`const a = 1;\n${text}\n`)).toBe(true);
    },
  );

  it.each(['socket.setTimeout(5);', 'let timer: ReturnType<typeof setTimeout>;'])('are not: %s', (text) => {
    expect(NODE_TIMER.test(text)).toBe(false);
  });
});
