/** Which data packets request an acknowledgement: each reason by itself, and what the packet does without it. */

import { describe, expect, it } from 'vitest';
import { AckRequestPolicy } from '../../src/qp/ack-request-policy.js';

const WINDOW = 64;

/** What differs from a packet in the middle of a message, early in a large window, of an uncontrolled connection. */
interface Situation {
  limitsBytes?: boolean;
  isPaced?: boolean;
  wantsTelemetry?: boolean;
  repairsSinglePackets?: boolean;
  isForced?: boolean;
  isArbitrated?: boolean;
  inFlight?: number;
  window?: number;
  isLast?: boolean;
  isRetransmission?: boolean;
  isRttSampleDue?: boolean;
}

function decide(situation: Situation, policy = new AckRequestPolicy()): boolean {
  policy.limitsBytes = situation.limitsBytes ?? false;
  policy.isPaced = situation.isPaced ?? false;
  policy.wantsTelemetry = situation.wantsTelemetry ?? false;
  policy.repairsSinglePackets = situation.repairsSinglePackets ?? false;
  if (situation.isForced) policy.force();
  policy.onWindow(situation.inFlight ?? 0, situation.window ?? WINDOW, situation.isArbitrated ?? false);
  return policy.decide(
    situation.isLast ?? false,
    situation.isRetransmission ?? false,
    situation.isRttSampleDue ?? false,
  );
}

/** Packets in the middle of a message until one requests an acknowledgement, that one included. */
function packetsPerRequest(policy: AckRequestPolicy, window: number): number {
  for (let packets = 1; ; packets++) if (decide({ window }, policy)) return packets;
}

describe('a data packet requests an acknowledgement', () => {
  it('not in the middle of a message without a reason', () => {
    expect(decide({})).toBe(false);
  });

  const reasons: [reason: string, requests: Situation, control: Situation][] = [
    ['when it ends its message', { isLast: true }, { isLast: false }],
    ['when its round trip is to be measured', { isRttSampleDue: true }, { isRttSampleDue: false }],
    ['after a timeout', { isForced: true }, { isForced: false }],
    ['when the rate control limits bytes in flight', { limitsBytes: true }, { limitsBytes: false }],
    ['when data carry telemetry', { wantsTelemetry: true }, { wantsTelemetry: false }],
    ['when the window is a turn of a paced flow', { isArbitrated: true, isPaced: true }, { isArbitrated: true }],
    ['when the paced flow has turns, not without', { isArbitrated: true, isPaced: true }, { isPaced: true }],
    [
      'when it is repaired by itself',
      { isRetransmission: true, repairsSinglePackets: true },
      { isRetransmission: true, repairsSinglePackets: false },
    ],
    [
      'when single packets are repaired, only if it is sent again',
      { isRetransmission: true, repairsSinglePackets: true },
      { isRetransmission: false, repairsSinglePackets: true },
    ],
    ['when it is the last of the window', { inFlight: WINDOW - 1 }, { inFlight: WINDOW - 2 }],
  ];
  it.each(reasons)('%s', (_, requests, control) => {
    expect(decide(requests)).toBe(true);
    expect(decide(control)).toBe(false);
  });

  it('in every quarter of a window', () => {
    const policy = new AckRequestPolicy();
    expect([packetsPerRequest(policy, 64), packetsPerRequest(policy, 64), packetsPerRequest(policy, 256)]).toEqual([
      16, 16, 64,
    ]);
  });

  it('in every 128 packets of a larger window', () => {
    expect(packetsPerRequest(new AckRequestPolicy(), 512)).toBe(128);
    expect(packetsPerRequest(new AckRequestPolicy(), 4096)).toBe(128);
  });

  it('counted from the last one that did, for whichever reason', () => {
    const policy = new AckRequestPolicy();
    for (let k = 0; k < 10; k++) decide({}, policy);
    expect(decide({ isLast: true }, policy)).toBe(true);
    expect(packetsPerRequest(policy, 64)).toBe(16);
  });

  it('once for a timeout', () => {
    const policy = new AckRequestPolicy();
    expect([decide({ isForced: true }, policy), decide({}, policy)]).toEqual([true, false]);
  });

  it('forced by a timeout, though another reason has come as well', () => {
    const policy = new AckRequestPolicy();
    expect([decide({ isForced: true, isLast: true }, policy), decide({}, policy)]).toEqual([true, false]);
  });

  it('of a new connection as if nothing had been sent before', () => {
    const policy = new AckRequestPolicy();
    for (let k = 0; k < 10; k++) decide({}, policy);
    policy.force();
    policy.reset();
    expect(packetsPerRequest(policy, 64)).toBe(16);
  });
});
