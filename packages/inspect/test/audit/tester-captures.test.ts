/**
 * The tester of `rocev2 conform` sends what nobody should send, and our own target answers as it has to. In a capture of that the audit has to accuse the
 * tester, and never the target: the hardest captures there are for an audit that must not accuse the innocent.
 */

import { expect, it } from 'vitest';
import { runSimulated } from '../conform/simulated-target.js';
import { audited } from './golden.js';

it.each([
  [4, '192.0.2.1', '192.0.2.2'],
  [6, '2001:db8::1', '2001:db8::2'],
] as const)('names the tester alone over IPv%d, wherever the capture was made', async (family, tester, target) => {
  const { captured } = await runSimulated({ family });
  for (const capturedAt of [undefined, tester, target]) {
    const { findings, rules } = audited(captured, capturedAt === undefined ? {} : { capturedAt });
    const violations = findings.filter(({ verdict }) => verdict === 'violation');
    expect(violations.filter(({ flow }) => !flow.startsWith(`${tester} ->`))).toEqual([]);
    expect(violations.map(({ rule }) => rule)).toEqual(
      expect.arrayContaining([11, 16, 19, 23, 25, 26, 27, 28, 29, 30, 63]),
    );
    expect(violations.filter(({ rule }) => rule === 84)).toEqual([]); // what the tester sends to nobody is a right CNP
    expect(rules.filter(({ rule, passed }) => [24, 54, 59, 68].includes(rule) && passed > 0)).toHaveLength(4);
  }
});
