/** A capture that breaks a rule is kept, and the failure shows its packets: what happens once in a hundred runs can be looked at afterwards. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { auditOf, expectCleanFile } from './capture-file.js';
import { goldenPath } from './golden.js';

const GOLDEN = goldenPath('send-rc-mtu1024-v4.pcapng');
const ICRC = 11;
let folder: string;
let damaged: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-capture-file-'));
  damaged = join(folder, 'damaged.pcapng');
  const bytes = readFileSync(GOLDEN);
  bytes[Math.floor(bytes.length / 2)] ^= 1; // A byte of a payload.
  writeFileSync(damaged, bytes);
});
afterAll(() => rmSync(folder, { recursive: true }));

it('says nothing of a capture that keeps all rules', async () => {
  await expectCleanFile(GOLDEN, await auditOf(GOLDEN));
});

it('says nothing of a rule that is expected to be broken', async () => {
  await expectCleanFile(damaged, await auditOf(damaged), [ICRC]);
});

it('keeps a capture that breaks a rule, and prints what broke it', async () => {
  const failure = await expectCleanFile(damaged, await auditOf(damaged)).catch((error: Error) => error.message);
  expect(failure).toMatch(/^a capture breaks rules 11; it is kept as /);
  expect(failure).toMatch(/violation, .* -> .*: the packet carries the ICRC [0-9a-f]{8}; [0-9a-f]{8} is correct/);
  expect(failure).toMatch(/^> .*SEND/m);
  const [, kept] = /it is kept as (.*)/.exec(failure as string)!;
  expect(readFileSync(kept).equals(readFileSync(damaged))).toBe(true);
  rmSync(dirname(kept), { recursive: true });
});
