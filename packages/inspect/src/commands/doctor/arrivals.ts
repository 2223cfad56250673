/** What a capture of a test says of the way back: traffic classes as they arrived, and whether the packets keep the rules. */

import { CaptureStream } from 'rocev2/internal/capture';
import { readU24 } from 'rocev2/internal/core';
import { CNP, ECN_CE, type IpAddress, UDP_BYTES } from 'rocev2/internal/packet';
import { Audit, type AuditReport } from '../../audit/audit.js';
import { SEEN_UDP, Sighting } from '../../audit/sighting.js';

const GSI_QPN = 1;

/** Packets of one kind from the peer. */
export interface ArrivedClasses {
  /** How many came with which DSCP. */
  readonly dscps: Readonly<Record<number, number>>;
  /** How many came with ECN codepoint 0 to 3. */
  readonly ecns: readonly [number, number, number, number];
}

/** What came from the peer. */
export interface Arrivals {
  /** Datagrams of connection management. */
  readonly management: ArrivedClasses;
  /** Packets of connections, without CNPs. */
  readonly connections: ArrivedClasses;
  /** How many packets to the peer's queue pairs were sent marked (ECN CE). */
  readonly marksSent: number;
  /** How many congestion notifications came. */
  readonly cnps: number;
  /** What an audit of the capture found. */
  readonly audit: AuditReport;
}

/** Reads the capture, which was made at `local`. */
export async function readArrivals(path: string, local: IpAddress, remote: IpAddress): Promise<Arrivals> {
  const audit = new Audit({ capturedAt: local.text });
  const seen = new Sighting();
  const management = emptyClasses();
  const connections = emptyClasses();
  let cnps = 0;
  let marksSent = 0;
  const stream = await CaptureStream.open(path);
  for await (const chunk of stream.chunks()) {
    for (const captured of chunk) {
      audit.take(captured);
      if (seen.read(captured, 0, 0) !== SEEN_UDP || seen.isCut) continue;
      if (isFrom(seen, local) && seen.ecn === ECN_CE) marksSent++;
      if (!isFrom(seen, remote)) continue;
      const bth = seen.udp + UDP_BYTES;
      if (seen.bytes[bth] === CNP) cnps++;
      else {
        const classes = readU24(seen.bytes, bth + 5) === GSI_QPN ? management : connections;
        classes.dscps[seen.dscp] = (classes.dscps[seen.dscp] ?? 0) + 1;
        classes.ecns[seen.ecn]++;
      }
    }
  }
  return { management, connections, marksSent, cnps, audit: audit.report() };
}

function isFrom({ bytes, ip, family }: Sighting, address: IpAddress): boolean {
  const [at, length] = family === 4 ? [ip + 12, 4] : [ip + 8, 16];
  return address.family === family && address.bytes.every((byte, i) => i >= length || bytes[at + i] === byte);
}

function emptyClasses() {
  const dscps: Record<number, number> = {};
  const ecns: [number, number, number, number] = [0, 0, 0, 0];
  return { dscps, ecns };
}
