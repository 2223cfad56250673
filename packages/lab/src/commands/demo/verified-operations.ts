/**
 * SEND, WRITE, READ, FETCH_ADD and CMP_SWAP between two processes over a lossy switch. B verifies received messages and
 * its memory; A verifies what it read and what each atomic returned.
 */

import { ChildService, whileAlive } from '@rocev2/command';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { SWITCH_PROGRAM, type SwitchService } from '../../live/switch-program.js';
import type { DemoEndpointService } from './demo-endpoint-process.js';

/** Addresses inside the frames, from the range set aside for benchmarks (RFC 2544). */
const ADDRESS_A = '198.18.0.1';
const ADDRESS_B = '198.18.0.2';
const ENDPOINT_PROGRAM = new URL('./demo-endpoint-process.js', import.meta.url);

export const DEMO_LOSS_RULE = 'random=0.01';
const SEED = 1;

const MIB = 1024 * 1024;
const REGION_BYTES = 4 * MIB;
const ADDS = 100;
const ADDEND = 3n;

/** One operation and its result. */
export interface VerifiedStep {
  /** Name of the step, such as `WRITE`. */
  readonly step: string;
  /** Description of the step. */
  readonly text: string;
  /** Payload moved. */
  readonly bytes: number;
  /** Duration. */
  readonly seconds: number;
  /** Whether every byte was correct. */
  readonly verified: boolean;
}

/** The first part of `demo --json`. */
export interface VerifiedOperations {
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Recovery scheme of both ends. */
  readonly recovery: string;
  /** The steps, in order. */
  readonly steps: readonly VerifiedStep[];
  /** Packets that the switch forwarded. */
  readonly packetsForwarded: number;
  /** Packets that the switch's fault rule dropped. */
  readonly packetsDropped: number;
}

type Endpoint = ChildService<DemoEndpointService>;

interface Operation {
  readonly step: string;
  readonly text: string;
  readonly bytes: number;
  run(a: Endpoint, b: Endpoint): Promise<boolean>;
}

const OPERATIONS: readonly Operation[] = [
  {
    step: 'SEND',
    text: 'A sends 1 MiB into a buffer that B has posted',
    bytes: MIB,
    async run(a, b) {
      const [, isRight] = await Promise.all([
        a.call('send', { bytes: MIB, seed: 1 }),
        b.call('receive', { bytes: MIB, seed: 1 }),
      ]);
      return isRight;
    },
  },
  {
    step: 'WRITE',
    text: "A writes 4 MiB into B's memory; B's program is not involved",
    bytes: REGION_BYTES,
    async run(a, b) {
      await a.call('write', { bytes: REGION_BYTES, seed: 2 });
      return b.call('hasPattern', { bytes: REGION_BYTES, seed: 2 });
    },
  },
  {
    step: 'READ',
    text: "A reads 4 MiB of B's memory",
    bytes: REGION_BYTES,
    async run(a, b) {
      await b.call('fillRegion', { bytes: REGION_BYTES, seed: 3 });
      return a.call('read', { bytes: REGION_BYTES, seed: 3 });
    },
  },
  {
    step: 'FETCH_ADD',
    text: `A adds 3 to a number in B's memory ${ADDS} times; none is lost, none happens twice`,
    bytes: ADDS * 8,
    async run(a, b) {
      await b.call('setNumber', { value: 0n });
      const isInOrder = await a.call('fetchAdd', { count: ADDS, add: ADDEND });
      return isInOrder && (await b.call('number', {})) === BigInt(ADDS) * ADDEND;
    },
  },
  {
    step: 'CMP_SWAP',
    text: 'A takes a lock, and cannot take it a second time',
    bytes: 16,
    async run(a, b) {
      await b.call('setNumber', { value: 0n });
      const first = await a.call('compareSwap', { expected: 0n, desired: 77n });
      const second = await a.call('compareSwap', { expected: 0n, desired: 88n });
      return first === 0n && second === 77n && (await b.call('number', {})) === 77n;
    },
  },
];

export async function runVerifiedOperations(onStep: (step: VerifiedStep) => void): Promise<VerifiedOperations> {
  await using fabric = new ChildService<SwitchService>('the switch', SWITCH_PROGRAM);
  await using a = new ChildService<DemoEndpointService>('endpoint a', ENDPOINT_PROGRAM);
  await using b = new ChildService<DemoEndpointService>('endpoint b', ENDPOINT_PROGRAM);
  return await whileAlive([fabric, a, b], runAll(fabric, a, b, onStep));
}

async function runAll(
  fabric: ChildService<SwitchService>,
  a: Endpoint,
  b: Endpoint,
  onStep: (step: VerifiedStep) => void,
): Promise<VerifiedOperations> {
  const ports = await fabric.call('open', { ports: ['a', 'b'], loss: DEMO_LOSS_RULE, seed: SEED });
  await Promise.all([
    a.call('open', { address: ADDRESS_A, switchPort: ports['a'] }),
    b.call('open', { address: ADDRESS_B, switchPort: ports['b'] }),
  ]);
  const port = await b.call('listen', { regionBytes: REGION_BYTES });
  const [{ mtu, recovery }] = await Promise.all([a.call('connect', { port }), b.call('accept', {})]);
  const steps: VerifiedStep[] = [];
  for (const { step, text, bytes, run } of OPERATIONS) {
    const startNs = nowNs();
    const verified = await run(a, b);
    const seconds = (nowNs() - startNs) / NS_PER_S;
    steps.push({ step, text, bytes, seconds, verified });
    onStep(steps.at(-1)!);
  }
  const counters = Object.values(await fabric.call('counters', {}));
  await Promise.all([a.call('close', {}), b.call('close', {})]);
  return {
    mtu,
    recovery,
    steps,
    packetsForwarded: counters.reduce((sum, { tx_packets }) => sum + tx_packets, 0),
    packetsDropped: counters.reduce((sum, { tx_dropped_fault }) => sum + tx_dropped_fault, 0),
  };
}
