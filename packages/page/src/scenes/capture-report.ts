/** What the page shows of a capture: its packets, a ladder of each connection, and the verdicts of the audit. */

import type { LadderConnection } from '@rocev2/command/plot';
import { Audit, type AuditReport, type CaptureDamage, type CapturedPacket, CaptureStream } from '@rocev2/inspect';
import {
  CapturePackets,
  laddersOf,
  type PacketCells,
  packetCells,
  ruleOf,
  type Severity,
} from '@rocev2/inspect/internal/page';
import { ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, NIC, scenarioOf } from './scenario-of.js';

const ROCE_UDP_PORT = 4791;
const LINKTYPE_ETHERNET = 1;
const EXAMPLE_NS = 100_000;

/** A rule with the result of the audit. */
interface ReportedRule {
  readonly rule: number;
  readonly title: string;
  readonly severity: Severity;
  readonly verdict: AuditReport['rules'][number]['verdict'];
  readonly passed: number;
  readonly violations: number;
  readonly cannotTell: number;
}

export interface CaptureReport {
  /** Of all packets of the file. */
  readonly audit: AuditReport;
  /** Rules with at least one case: violations first. */
  readonly rules: readonly ReportedRule[];
  /** Of the first 20,000 RoCEv2 packets. */
  readonly connections: readonly LadderConnection[];
  /** The first 20,000 RoCEv2 packets. */
  readonly packets: readonly PacketCells[];
  /** Sentences about packets that are not shown. */
  readonly remarks: readonly string[];
  /** Why there is no RoCEv2 packet. */
  readonly whyNothing?: string;
}

const ORDER = ['violation', 'cannot tell', 'pass'] as const;

/** Takes the packets of one capture in order. */
class CaptureReader {
  readonly #audit = new Audit({ fitsRates: true });
  readonly #cells: PacketCells[] = [];
  readonly #packets = new CapturePackets(ROCE_UDP_PORT, (packet) => this.#cells.push(packetCells(packet)));

  take(captured: CapturedPacket): void {
    this.#audit.take(captured);
    this.#packets.take(captured);
  }

  report(damage?: CaptureDamage): CaptureReport {
    const audit = this.#audit.report();
    const { packets, remarks } = this.#packets.entries(damage);
    const rules = ORDER.flatMap((wanted) => audit.rules.filter(({ verdict }) => verdict === wanted)).map((result) => {
      const { title, severity } = ruleOf(result.rule)!;
      return { ...result, title, severity };
    });
    return {
      audit,
      rules,
      connections: packets.length === 0 ? [] : laddersOf(packets),
      packets: this.#cells,
      remarks,
      ...(audit.packets.roce === 0 && { whyNothing: this.#audit.whyNothing }),
    };
  }
}

/**
 * The report on a file; undefined if it was given up. `onProgress` takes the share that was read, 0..1, and resolves to
 * false to give up. Rejects if the file cannot be read.
 */
export async function readCapture(
  file: Blob,
  onProgress: (done: number) => Promise<boolean> | boolean,
): Promise<CaptureReport | undefined> {
  const stream = CaptureStream.of(file);
  const reader = new CaptureReader();
  let bytes = 0;
  for await (const packets of stream.chunks()) {
    for (const packet of packets) {
      reader.take(packet);
      bytes += packet.bytes.length;
    }
    if (!(await onProgress(Math.min(1, bytes / file.size)))) return undefined;
  }
  return reader.report(stream.damage);
}

/** Captured at the receiver of a link that loses and damages packets. */
export async function exampleCapture(seed: number): Promise<CaptureReport> {
  const reader = new CaptureReader();
  const scenario = scenarioOf({
    name: 'example',
    seed,
    duration: EXAMPLE_NS,
    nic: { ...NIC, recovery: 'go-back-n', inflight: 64 },
    payload: 'real',
    faults: 'h0>h1:random=0.02;h0>h1:random=0.01,corrupt',
    flows: [flowsOf({ from: 'h0', to: 'h1', message: 65_536, outstanding: 2 })],
  });
  const onFrame = (timeNs: number, frame: Uint8Array) => reader.take(captured(timeNs, frame));
  const run = await ScenarioRun.prepare(scenario, { observer: { host: 'h1', onFrame } });
  run.start();
  await run.connectUntil(EXAMPLE_NS);
  run.runUntil(EXAMPLE_NS);
  return reader.report();
}

function captured(timeNs: number, bytes: Uint8Array): CapturedPacket {
  return {
    timestampNs: BigInt(Math.round(timeNs)),
    interfaceId: 0,
    linkType: LINKTYPE_ETHERNET,
    bytes,
    originalLength: bytes.length,
    comment: undefined,
  };
}
