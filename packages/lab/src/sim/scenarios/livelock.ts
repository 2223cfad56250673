/**
 * The livelock of go-back-0 (Guo et al., SIGCOMM'16, §4.1): 4 MiB messages from A over W to B, W drops every packet
 * whose IP identification ends in 0xff.
 */

import type { ScenarioFile } from '../scenario/schema.js';

function livelock(
  recovery: 'go-back-0' | 'go-back-n' | 'selective-repeat',
  op: 'write' | 'read' | 'send' = 'write',
): ScenarioFile {
  return {
    name: `livelock-${recovery}${op === 'write' ? '' : `-${op}`}`,
    title: `One packet in 256 is lost, recovered by ${recovery}`,
    source: "SIGCOMM'16 §4.1",
    duration: '50ms',
    topology: { kind: 'pair', rate: '40Gbps', delay: '500ns' },
    nic: { recovery, mtu: 1024, timeout: 8 },
    faults: 'h0>h1:ip-id-lsb=0xff',
    flows: [{ kind: 'flows', from: 'h0', to: 'h1', op, message: '4MiB', outstanding: 4 }],
    assertions:
      recovery === 'go-back-0'
        ? [{ name: 'nothing is delivered', value: 'summary.goodputBps', max: 0 }]
        : [{ name: 'it makes progress', value: 'summary.efficiency', min: recovery === 'go-back-n' ? 0.8 : 0.98 }],
  };
}

export const LIVELOCK_SCENARIOS: readonly ScenarioFile[] = [
  livelock('go-back-0'),
  livelock('go-back-n'),
  livelock('selective-repeat'),
  livelock('go-back-0', 'read'),
  livelock('go-back-n', 'read'),
];
