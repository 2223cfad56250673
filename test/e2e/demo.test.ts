import { describe, expect, it } from 'vitest';
import type { DemoResult } from '../../packages/lab/src/commands/demo-command.js';
import { documentOf } from '../support/documents.js';
import { isBuilt, Program } from './executable.js';

describe.skipIf(!isBuilt)('rocev2 demo', () => {
  it('verifies every operation and shows the livelock', async () => {
    const demo = Program.rocev2('demo', '--json', '--seconds', '0.3');
    expect(await demo.ended(), demo.stderr).toBe(0);
    const { verified, operations, livelock } = documentOf('demo', demo.stdout) as unknown as DemoResult;
    expect(verified).toBe(true);
    expect(operations.steps.map((s: { step: string; verified: boolean }) => [s.step, s.verified])).toEqual([
      ['SEND', true],
      ['WRITE', true],
      ['READ', true],
      ['FETCH_ADD', true],
      ['CMP_SWAP', true],
    ]);
    expect(operations.packetsDropped).toBeGreaterThan(0);
    expect(livelock.runs).toHaveLength(6);
    for (const { scheme, messagesCompleted } of livelock.runs) {
      if (scheme === 'go-back-0') expect(messagesCompleted).toBe(0);
      else expect(messagesCompleted).toBeGreaterThan(0);
    }
    expect(demo.stderr).toBe('');
  });
});
