/**
 * Loss, reordering and round-trip time to a host without a program there: SIDR_REQ for an unserved service (IBTA vol. 1
 * §12.11), which every RDMA CM answers at once and statelessly.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { buildMad, encodeIpPrivateData, GsiChannel, parseMad, udpServiceId } from 'rocev2/internal/cm';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import type { RdmaDevice } from 'rocev2/internal/verbs';

/** A port of RDMA_PS_UDP that is reserved, so that nobody serves it. */
const UNSERVED_PORT = 1;
const SOURCE_PORT = 0xc000;
const PKEY = 0xffff;
const LINGER_MS = 500;

export interface PathProbeOptions {
  /** Requests to send, 1..65536. */
  readonly count: number;
  readonly intervalMs: number;
  readonly dscp: number;
  readonly signal: AbortSignal;
}

/** What came back. */
export interface PathReport {
  /** Requests sent. */
  readonly sent: number;
  /** Requests that were answered. */
  readonly answered: number;
  /** Answers beyond the first of a request. */
  readonly duplicates: number;
  /** Answers that came after the answer to a later request. */
  readonly reordered: number;
  /** From request to answer, nanoseconds; null without an answer. */
  readonly rttNs: { readonly min: number; readonly median: number; readonly p99: number; readonly max: number } | null;
}

export async function probePath(
  device: RdmaDevice,
  remote: IpAddress,
  { count, intervalMs, dscp, signal }: PathProbeOptions,
): Promise<PathReport> {
  const tally = new AnswerTally();
  const channel = await GsiChannel.open(
    device,
    (source, bytes) => {
      if (!source.equals(remote)) return;
      const mad = parseMad(bytes);
      if (typeof mad === 'object' && mad.name === 'SIDR_REP') tally.answered(mad.fields.requestId, nowNs());
    },
    dscp,
  );
  try {
    const endpoints = { source: device.address, destination: remote, sourcePort: SOURCE_PORT };
    const privateData = encodeIpPrivateData(endpoints, new Uint8Array(0));
    for (let i = 0; i < count && !signal.aborted; i++) {
      const requestId = tally.sent(nowNs());
      const serviceId = udpServiceId(UNSERVED_PORT);
      channel.send(remote, buildMad('SIDR_REQ', BigInt(requestId), { requestId, pkey: PKEY, serviceId, privateData }));
      await delay(intervalMs);
    }
    for (let waitedMs = 0; waitedMs < LINGER_MS && !tally.isComplete && !signal.aborted; waitedMs += 10)
      await delay(10);
  } finally {
    await channel.close();
  }
  return tally.report();
}

export class AnswerTally {
  readonly #sentNs: number[] = [];
  readonly #rttNs: number[] = [];
  readonly #seen = new Set<number>();
  #duplicates = 0;
  #reordered = 0;
  #newest = 0;

  sent(timeNs: number): number {
    return this.#sentNs.push(timeNs);
  }

  answered(requestId: number, timeNs: number): void {
    const sentNs = this.#sentNs[requestId - 1];
    if (sentNs === undefined) return;
    if (this.#seen.has(requestId)) {
      this.#duplicates++;
      return;
    }
    this.#seen.add(requestId);
    this.#rttNs.push(timeNs - sentNs);
    if (requestId < this.#newest) this.#reordered++;
    else this.#newest = requestId;
  }

  get isComplete(): boolean {
    return this.#seen.size === this.#sentNs.length;
  }

  report(): PathReport {
    const times = [...this.#rttNs].sort((one, other) => one - other);
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
    return {
      sent: this.#sentNs.length,
      answered: times.length,
      duplicates: this.#duplicates,
      reordered: this.#reordered,
      rttNs: times.length === 0 ? null : { min: times[0], median: at(0.5), p99: at(0.99), max: times.at(-1)! },
    };
  }
}
