/** Incast on shallow buffers: what loss recovery is worth with pauses and without (IRN: Mittal et al., SIGCOMM'18). */

import type { ScenarioFile } from '../scenario/schema.js';

/** IRN's defaults: 240 KB a port, and at most a bandwidth-delay product of 110 packets in flight. */
const PORT_PACKETS = 217;
const BDP_PACKETS = 110;
/**
 * 1.05 ms a try. With half of it, a flow that go-back-N starves gives up (RETRY_EXC_ERR) before the others are done.
 */
const TIMEOUT_CODE = 8;

function incast(recovery: 'go-back-n' | 'selective-repeat', isLossless: boolean): ScenarioFile {
  return {
    name: `incast-${recovery}${isLossless ? '-pfc' : ''}`,
    title: `Incast of 8 on 240 KB a port, ${recovery}, ${isLossless ? 'with' : 'without'} PFC`,
    source: "SIGCOMM'18 (IRN)",
    duration: '60ms',
    topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '2us' },
    nic: { recovery, inflight: BDP_PACKETS, timeout: TIMEOUT_CODE },
    switch: isLossless
      ? { pfc: { priorities: [0] }, buffer: { totalBytes: 3 * 240_000 } }
      : { queuePackets: PORT_PACKETS },
    flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: '4MiB' }],
    assertions: [{ name: 'every flow ends', value: 'summary.completions.count', min: 8 }],
  };
}

export const RECOVERY_SCENARIOS: readonly ScenarioFile[] = [
  incast('go-back-n', true),
  incast('selective-repeat', true),
  incast('go-back-n', false),
  incast('selective-repeat', false),
];
