/** Hosts that write to one at the same time over one switch, or from which it reads, in virtual time, with every counter at hand. */

import { Simulation } from '../../packages/lab/src/sim/simulation.js';
import { star } from '../../packages/lab/src/sim/topology.js';
import type { SwitchConfig } from '../../packages/lab/src/switch/switch-config.js';
import type { SwitchPortCounters } from '../../packages/lab/src/switch/switch-counters.js';
import type { RateControlOptions } from '../../src/dcqcn/rate-controls.js';
import type { CounterName } from '../../src/memory/ring/counters.js';
import type { RecoveryOptions } from '../../src/retransmit/recovery-schemes.js';
import { Access } from '../../src/verbs/access.js';
import type { RdmaDevice } from '../../src/verbs/device.js';
import type { ProtectionDomain } from '../../src/verbs/protection-domain.js';
import { connectQp } from './pair.js';

export interface IncastOptions {
  /** Default: the hosts write. `read`: the one reads from all of them. */
  readonly op?: 'write' | 'read';
  readonly senders: number;
  /** Of each. */
  readonly bytes: number;
  readonly rateBps: number;
  /** Of a cable. */
  readonly delayNs: number;
  readonly mtu: 1024 | 4096;
  readonly recovery: RecoveryOptions;
  readonly rateControl?: RateControlOptions;
  readonly inflightPackets?: number;
  readonly timeout?: number;
  readonly switchConfig?: SwitchConfig;
  readonly faults?: string;
  /** Samples the queue of the port to the receiver so often. */
  readonly sampleNs?: number;
  /** When the run ends, whether or not all is done. */
  readonly untilNs?: number;
}

export interface IncastResult {
  /** When each sender was done, in their order; Infinity: it was not. */
  readonly doneNs: readonly number[];
  /** Sums over all hosts. */
  readonly hosts: Readonly<Record<CounterName, number>>;
  /** Of the port to the receiver. */
  readonly port: Readonly<SwitchPortCounters>;
  /** Bytes that waited there, every `sampleNs`. */
  readonly queue: readonly number[];
  /** All bytes arrived as they were sent. */
  readonly isWhole: boolean;
}

/** Runs it. */
export async function writeIncast(options: IncastOptions): Promise<IncastResult> {
  const { op = 'write', senders, bytes, mtu, recovery, rateControl, faults, sampleNs, untilNs = 100e6 } = options;
  const simulation = new Simulation({
    topology: star(senders + 1, { rateBps: options.rateBps, delayNs: options.delayNs }),
    pathMtu: mtu,
    switchConfig: options.switchConfig ?? {},
    ...(faults !== undefined && { faults }),
  });
  const to = `h${senders}`;
  const receiver = await simulation.device(to);
  const pd = await receiver.createPd();
  const target = await pd.regMr(senders * bytes, Access.REMOTE_ALL);
  const devices = [receiver];
  const doneNs = Array<number>(senders).fill(Number.POSITIVE_INFINITY);
  let isWhole = true;
  const looks: Array<() => void> = [];
  const attr = {
    timeout: options.timeout ?? 10,
    inflightPackets: options.inflightPackets ?? 256,
    ...(rateControl !== undefined && { rateControl }),
  };
  for (let i = 0; i < senders; i++) {
    const from = `h${i}`;
    const device = await simulation.device(from);
    devices.push(device);
    const own = await queuePairOf(device);
    const peer = await queuePairOf(receiver, pd);
    await connectQp(
      own.qp,
      { address: simulation.address(to), qpn: peer.qp.qpn, psn: 0 },
      { psn: 0, mtu, recovery, attr },
    );
    await connectQp(
      peer.qp,
      { address: simulation.address(from), qpn: own.qp.qpn, psn: 0 },
      { psn: 0, mtu, recovery, attr },
    );
    const source = await own.pd.regMr(bytes, Access.REMOTE_ALL);
    for (let at = 0; at < bytes; at++) source.bytes[at] = (at * 7 + i) & 255;
    if (op === 'write') {
      own.qp.postSend({
        opcode: 'RDMA_WRITE',
        sges: [source.sge()],
        remoteAddr: target.addr + BigInt(i * bytes),
        rkey: target.rkey,
      });
    } else {
      peer.qp.postSend({
        opcode: 'RDMA_READ',
        sges: [target.sge(i * bytes, bytes)],
        remoteAddr: source.addr,
        rkey: source.rkey,
      });
    }
    const { cq } = op === 'write' ? own : peer;
    const look = (): void => {
      const completion = cq.pollOne();
      if (completion === undefined) return;
      doneNs[i] = completion.statusName === 'SUCCESS' ? simulation.nowNs : Number.NaN;
      isWhole &&= source.bytes.equals(target.bytes.subarray(i * bytes, (i + 1) * bytes));
    };
    if (op === 'write') simulation.onActivity(from, look);
    else looks.push(look);
  }
  if (op === 'read') {
    simulation.onActivity(to, () => {
      for (const look of looks) look();
    });
  }
  const queue: number[] = [];
  const isDone = () => doneNs.every((ns) => ns !== Number.POSITIVE_INFINITY);
  for (let ns = sampleNs ?? Number.POSITIVE_INFINITY; ns <= untilNs; ns += sampleNs ?? 0) {
    simulation.at(ns, () => {
      if (!isDone()) queue.push(simulation.queuedBytes('s0', to));
    });
  }
  simulation.run({ done: isDone, untilNs });
  const hosts = {} as Record<CounterName, number>;
  for (const device of devices) {
    for (const [name, count] of Object.entries(device.counters())) {
      hosts[name as CounterName] = (hosts[name as CounterName] ?? 0) + count;
    }
  }
  return { doneNs, hosts, port: simulation.counters('s0')[to], queue, isWhole: isWhole && isDone() };
}

async function queuePairOf(device: RdmaDevice, domain?: ProtectionDomain) {
  const pd = domain ?? (await device.createPd());
  const cq = await device.createCq(16);
  return { pd, cq, qp: await pd.createQp({ sendCq: cq }) };
}
