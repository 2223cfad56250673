/** A target in virtual time, and a tester that is connected to it by a wire which may lose packets. Also bundled with a mutated engine (mutants.ts). */

import { ConnectionManager } from '../../../../src/cm/connection-manager.js';
import { randomUnit, SeededRandom } from '../../../../src/core/random.js';
import { IpAddress } from '../../../../src/packet/address.js';
import { CapturePort } from '../../../../src/port/capture/capture-port.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { LINKTYPE_RAW } from '../../../../src/port/capture/pcapng-blocks.js';
import type { PacketSink } from '../../../../src/port/capture/pcapng-file.js';
import { datagramOf, type Port, type RxDatagram, TxBatch } from '../../../../src/port/datagram.js';
import type { RecoveryOptions } from '../../../../src/retransmit/recovery-schemes.js';
import { RdmaDevice } from '../../../../src/verbs/device.js';
import { until } from '../../../../test/support/virtual-time.js';
import { EventQueue } from '../../../lab/src/sim/event-queue.js';
import { SimHost } from '../../../lab/src/sim/sim-host.js';
import { virtualClock } from '../../../lab/src/sim/virtual-clock.js';
import { AgentConnector } from '../../src/conform/agent-connector.js';
import { CASES } from '../../src/conform/cases.js';
import { CmConnector } from '../../src/conform/cm-connector.js';
import { Evidence } from '../../src/conform/evidence.js';
import { Management } from '../../src/conform/management.js';
import type { Connector } from '../../src/conform/peer.js';
import { ConformService } from '../../src/conform/service.js';
import type { TestCase } from '../../src/conform/step.js';
import { type CaseResult, type TargetFacts, Tester } from '../../src/conform/tester.js';
import { TestWire } from '../../src/conform/wire.js';
import { SimulatedAgent } from './simulated-agent.js';

const FLIGHT_NS = 10_000;
const PORT = 18_526;
const ADDRESSES = {
  4: ['192.0.2.1', '192.0.2.2'],
  6: ['2001:db8::1', '2001:db8::2'],
} as const;

export interface SimulatedRun {
  readonly seed?: number;
  readonly family?: 4 | 6;
  readonly mtu?: number;
  /** Share of packets that are lost, 0..1, in each direction. */
  readonly loss?: number;
  /** Default: all. */
  readonly cases?: readonly TestCase[];
  /** The service is no target of ours: its REP has no private data. */
  readonly isForeign?: boolean;
  /** How queue pairs are had; default cm. */
  readonly via?: 'cm' | 'agent';
  /** Of the target; not by an agent. Default: the standard's. */
  readonly recovery?: RecoveryOptions;
}

export interface SimulatedOutcome {
  readonly facts: TargetFacts | string;
  readonly results: readonly CaseResult[];
  /** Packets that the tester sent. */
  readonly sent: number;
  readonly unsound: number;
  /** All packets, as the tester sees them. */
  readonly captured: readonly CapturedPacket[];
}

/** Keeps what a capture would have, beside the evidence of the tester. */
class Recording implements PacketSink {
  readonly packets: CapturedPacket[] = [];
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  writePacket(interfaceId: number, timestampNs: bigint, packet: Uint8Array): boolean {
    const bytes = packet.slice();
    const { length } = bytes;
    this.packets.push({
      timestampNs,
      interfaceId,
      linkType: LINKTYPE_RAW,
      bytes,
      originalLength: length,
      comment: undefined,
    });
    return this.#evidence.writePacket(interfaceId, timestampNs, packet);
  }
}

/** The tester's end of the simulated wire. */
class SimulatedPort implements Port {
  readonly description = 'a simulated wire';
  readonly udpPort = 4791;
  readonly pathMtuMax = 4096;
  readonly ipIdPolicy = 'sequential';
  readonly fixedSourcePort = undefined;
  readonly counters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly receiveBudgetPackets = Number.POSITIVE_INFINITY;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause = () => {};
  onError = () => {};
  readonly address: IpAddress;
  readonly #batch: TxBatch;
  readonly #send: (datagram: RxDatagram) => void;

  constructor(address: IpAddress, send: (datagram: RxDatagram) => void) {
    this.address = address;
    this.#batch = new TxBatch(1, address);
    this.#send = send;
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  beginBatch(): TxBatch {
    this.#batch.count = 0;
    return this.#batch;
  }

  sendBatch(batch: TxBatch): void {
    this.#send(datagramOf(batch, 0));
  }
}

/** Runs the cases against our own NIC. */
export async function runSimulated(run: SimulatedRun = {}): Promise<SimulatedOutcome> {
  const { seed = 1, family = 4, mtu = 256, loss = 0, cases = CASES, isForeign = false, via = 'cm', recovery } = run;
  const events = new EventQueue();
  const clock = virtualClock(events);
  const random = new SeededRandom(seed);
  const [here, there] = ADDRESSES[family].map((text) => IpAddress.parse(text));
  const host = new SimHost({ address: there, events, random: random.stream('nic') });
  const lossy = random.stream('loss');
  const fly = (arrive: () => void) => {
    if (loss === 0 || randomUnit(lossy) >= loss) events.after(FLIGHT_NS, arrive);
  };
  const port = new SimulatedPort(here, (datagram) => fly(() => host.receive(datagram)));
  host.connect((batch) => {
    const datagram = datagramOf(batch, 0);
    fly(() => port.onDatagram(datagram));
    return events.nowNs;
  });
  const evidence = new Evidence();
  const recording = new Recording(evidence);
  const captured = new CapturePort(port, recording, 0, () => BigInt(events.nowNs));
  const wire = new TestWire(captured, clock, there, true);
  const work = async (): Promise<SimulatedOutcome> => {
    const device = await RdmaDevice.over(host);
    const testers = random.stream('tester');
    let connector: Connector;
    if (via === 'agent') connector = new AgentConnector(await SimulatedAgent.create(device), wire, testers);
    else {
      const manager = await ConnectionManager.open(device, { clock, random: random.stream('cm') });
      void (isForeign
        ? acceptAll(manager, device)
        : (await ConformService.create(device, recovery)).serve(manager.listen(PORT)));
      connector = new CmConnector(new Management(wire, testers), { port: PORT, idlePort: PORT + 1 });
    }
    const tester = new Tester({ wire, connector, evidence }, { mtu, answerMs: 50, quietMs: 5 });
    const facts = await tester.meet();
    const results: CaseResult[] = [];
    for (const testCase of cases) results.push(await tester.run(testCase));
    return { facts, results, sent: wire.sent, unsound: wire.unsound, captured: recording.packets };
  };
  return until(events, work());
}

/** A service that knows nothing of tests. */
async function acceptAll(manager: ConnectionManager, device: RdmaDevice): Promise<void> {
  const pd = await device.createPd();
  const cq = await device.createCq(16);
  for await (const request of manager.listen(PORT)) {
    const qp = await pd.createQp({ sendCq: cq });
    request.accept(qp).catch(() => {});
  }
}

/** Names of the cases that failed, or differ. */
export function failed({ results }: SimulatedOutcome): string[] {
  return results.filter(({ verdict }) => verdict === 'failed' || verdict === 'differs').map(({ name }) => name);
}
