/**
 * sU-RDMA's static flow control (Bai et al., NSDI'23, §3): messages are cut into chunks of one size, one per connection
 * in flight.
 */

import type { ScenarioFile } from '../scenario/schema.js';

function incast(
  name: string,
  title: string,
  message: string,
  outstanding: number,
  assertion: NonNullable<ScenarioFile['assertions']>[number],
): ScenarioFile {
  return {
    name,
    title: `Web-search flows of four hosts to one at 28 Gb/s, ${title}`,
    source: "NSDI'23 §3: one chunk in flight per connection; its size is not published",
    duration: '100ms',
    topology: { kind: 'star', hosts: 5, rate: '40Gbps', delay: '1us' },
    nic: { timeout: 14 },
    switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 4_194_304 } },
    flows: [{ kind: 'poisson', from: 'h0..h3', to: 'h4', offered: '28Gbps', message, outstanding }],
    assertions: [assertion],
  };
}

export const CHUNK_SCENARIOS: readonly ScenarioFile[] = [
  incast('chunks-off', 'all of a message at once', '1MiB', 64, {
    name: 'senders are paused',
    value: 'summary.pauseFrames',
    min: 1,
  }),
  incast('chunks-on', 'in chunks of 64 KiB, one at a time', '64KiB', 1, {
    name: 'no port is paused',
    value: 'summary.pauseFrames',
    max: 0,
  }),
];
